"""Reports of runs that never were, and their page as a tree."""

from __future__ import annotations

from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import attrs
import pytest

from traincheck_check.judging.outcome import Outcome
from traincheck_check.reporting.api import Report, Session
from traincheck_check.reporting.html.reporter import HtmlReporter
from traincheck_check.reporting.html.sink import HtmlSink
from traincheck_trace_schema.occasion import Evidence, Place, Reference
from traincheck_trace_schema.results import (
    RankProgress,
    Summary,
    Suppressed,
    Timeline,
    Verdict,
    Violation,
    ViolationGroup,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traincheck_trace_schema.invariants import Invariant

STEP = "torch.optim.Adam.step"
WRITTEN = datetime(2031, 5, 6, 7, 8, 9, tzinfo=timezone.utc)


def place(step: int, rank: int = 0, **fields: Any) -> Place:
    return Place(step=step, stage="training", rank=rank, **fields)


def record(step: int, requires_grad: object, **fields: Any) -> Evidence:
    """Return a record of a parameter, as a trace has it."""
    told = {"kind": "var", "event": "changed", "seq": 40 + step, "step": step, "id": 7, **fields}
    return Evidence(
        rank=0,
        shard="trace_r0_p1000.json",
        record={
            "names": ["model.head.weight"],
            **told,
            "attributes": {"requires_grad": requires_grad},
        },
    )


@attrs.define
class Told:
    """What is told of a run; each violation is a group of its own, unless one is given."""

    place = staticmethod(place)
    record = staticmethod(record)

    violations: list[Violation] = attrs.field(factory=list)
    titles: list[str] = attrs.field(factory=list)
    look_at: str = "whether the learning rate is zero"
    failed: list[Verdict] = attrs.field(factory=list)
    not_triggered: list[Verdict] = attrs.field(factory=list)
    passed: int = 5
    warnings: tuple[str, ...] = ()
    more: dict[str, Any] = attrs.field(factory=dict)  # fields of the summary

    def broken(  # noqa: PLR0913  each is a way in which violations differ
        self,
        title: str = "nothing was changed",
        *,
        group: int | None = None,
        expected: str = "Each step changes something",
        first: Place | None = None,
        ranks: Sequence[int] = (0,),
        counts: Mapping[int, int] | None = None,
        known: bool = False,
        variables: Sequence[str] = (),
        evidence: Sequence[Evidence] = (),
        reference: Reference | None = None,
    ) -> None:
        """Add a violation."""
        number = len(self.titles) if group is None else group
        if group is None:
            self.titles.append(title)
        first = first or place(3, function=STEP, source="train.py:10")
        counts = counts or {first.step: 1}
        total = sum(counts.values()) * len(ranks)
        violation = Violation(
            invariant_id=f"id{len(self.violations)}",
            relation="Toy",
            text_description=expected,
            first=first,
            last=attrs.evolve(first, step=max(counts)),
            occurrences=total,
            ranks=tuple(ranks),
            variables=tuple(variables),
            happened=title,
            group=number,
            known=known,
            timeline=tuple(
                Timeline(rank=rank, width=1, counts={str(at): n for at, n in counts.items()})
                for rank in ranks
            ),
            reference=reference,
        )
        self.violations.append(violation)
        self.failed.append(
            Verdict(
                invariant_id=violation.invariant_id,
                relation="Toy",
                text_description=expected,
                verdict="failed",
                occasions=2 * total,
                violations=total,
                first=first,
                evidence=tuple(evidence),
            )
        )

    def silent(self, text: str, kind: str, reason: str) -> None:
        """Add an invariant that was not triggered."""
        self.not_triggered.append(
            Verdict(
                invariant_id=f"silent{len(self.not_triggered)}",
                relation="Toy",
                text_description=text,
                verdict="not_triggered",
                occasions=0,
                violations=0,
                reason=reason,
                reason_kind=kind,
            )
        )

    def report(self, name: str = "", folder: Path = Path("results")) -> Report:
        """Return it."""
        kinds = [each.reason_kind for each in self.not_triggered]
        summary: dict[str, Any] = {
            "checked": len(self.failed) + self.passed + len(self.not_triggered),
            "failed": len(self.failed),
            "passed": self.passed,
            "not_triggered": len(self.not_triggered),
            "known": sum(each.known for each in self.violations),
            "complete": True,
            "violations": tuple(sorted(self.violations, key=lambda each: each.group)),
            "groups": tuple(map(self._group, range(len(self.titles)))),
            "unjudged": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
            "ranks": (RankProgress(rank=0, steps=10, recorded=10, first=0, last=9, ended=True),),
            **self.more,
        }
        outcome = Outcome(
            summary=Summary(**summary),
            failed=tuple(self.failed),
            passed=(),
            not_triggered=tuple(self.not_triggered),
        )
        return Report(name=name, folder=folder, outcome=outcome, warnings=self.warnings)

    def _group(self, number: int) -> ViolationGroup:
        members = [each for each in self.violations if each.group == number]
        return ViolationGroup(
            id=number,
            title=self.titles[number],
            diagnosis="",
            look_at=self.look_at,
            first=members[0].first,
            invariant_ids=tuple(each.invariant_id for each in members),
        )


@attrs.frozen
class Reporting:
    """A session whose page is written into a folder."""

    sink: HtmlSink
    path: Path

    def page(self, *reports: Report, is_over: bool = True) -> str:
        """Tell reports, end the session if it is over, and return the page."""
        for report in reports:
            self.sink.update(report)
        if is_over:
            self.sink.close()
        return self.path.read_text(encoding="utf-8")


@pytest.fixture
def tell() -> type[Told]:
    """Return the class, to make what is told of a run, the places in it, and its records."""
    return Told


class _Tree(HTMLParser):
    """Reads a page as a tree; a tag that is not closed, or closed in vain, is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.builder = ET.TreeBuilder()
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.builder.start(tag, {name: value or "" for name, value in attributes})
        self.open.append(tag)
        if tag in {"meta", "link"}:
            self.handle_endtag(tag)

    def handle_startendtag(self, tag, attributes):
        self.builder.start(tag, dict(attributes))
        self.builder.end(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another"
        self.builder.end(tag)

    def handle_data(self, data):
        if self.open:
            self.builder.data(data)


@pytest.fixture
def parse():
    """Return a function that reads a page as a tree."""

    def read(page: str) -> ET.Element:
        tree = _Tree()
        tree.feed(page)
        tree.close()
        assert not tree.open
        return tree.builder.close()

    return read


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def begin(tmp_path: Path):
    """Return a function that begins a session of a mode, with invariants that it checks."""

    def start(mode: str = "finished", invariants: Sequence[Invariant] = (), **values: Any):
        session = Session(
            mode=mode, output_dir=tmp_path, invariants={each.id: each for each in invariants}
        )
        sink = HtmlReporter().start({"no_html_report": False, **values}, session)
        assert sink is not None
        sink._clock = lambda: WRITTEN
        return Reporting(sink, tmp_path / "report.html")

    return start


@pytest.fixture
def rich() -> Told:
    """Return a run with something of everything: what a page looks like that has much to tell."""
    told = Told(
        passed=31,
        warnings=("ranks ended at different steps: rank 3 at step 210, the others at step 239",),
        more={
            "complete": False,
            "incomplete_because": ("trace_r3_p1003.json: rank 3 left no clean end",),
            "suppressed": 2,
            "suppressions": (
                Suppressed(
                    pattern="relation:EventOrderRelation",
                    reason="two loaders, in any order",
                    invariant_ids=("a", "b"),
                ),
            ),
            "ranks": tuple(
                RankProgress(
                    rank=rank,
                    steps=240 if rank < 3 else 211,
                    recorded=240 if rank < 2 else 60,
                    first=0,
                    last=239 if rank < 3 else 210,
                    ended=rank < 3,
                    recording_share=0.031 + rank / 100 if rank < 3 else None,
                )
                for rank in range(4)
            ),
        },
    )
    told.broken(
        f"{STEP} changed the data of none of the 2 parameters that it holds (model.head.weight, "
        "model.head.bias); 2 have requires_grad False and 2 have no gradient",
        expected="Each call of torch.optim.Optimizer.step changes the data of at least one "
        "torch.nn.Parameter that it holds",
        first=place(12, function=STEP, source="examples/digits/train.py:77"),
        ranks=(0, 1, 2, 3),
        counts={step: 1 + step // 60 for step in range(12, 211)},
        variables=("model.head.weight", "model.head.bias"),
        evidence=(
            record(12, requires_grad=False, role="parameter", storage=3),
            record(13, requires_grad=False, role="parameter"),
        ),
        reference=Reference(
            run="a8972ae336b141028b303ac2c54f5bb8",
            at=place(0, function=STEP),
            evidence=(
                record(0, requires_grad=True, role="parameter", storage=9),
                Evidence(
                    rank=0,
                    shard="trace_r0_p990.json",
                    record={"kind": "call_end", "seq": 80, "step": 0, "function": STEP},
                ),
            ),
        ),
    )
    told.broken(
        group=0, expected="Each call of torch.Tensor.backward gives model.head.weight a gradient"
    )
    told.broken(
        "the gradients of model.norm.weight differ between ranks 0 and 1",
        expected="After torch.Tensor.backward the gradients of model.norm.weight are equal on all "
        "ranks",
        first=place(40, rank=1, function="torch.Tensor.backward", source="train.py:70"),
        ranks=(1,),
        counts=dict.fromkeys(range(40, 200, 7), 1),
        evidence=(record(40, requires_grad=True, role="parameter"),),
    )
    told.broken("zero_grad is called after backward", known=True, counts={3: 1, 90: 4})
    for number in range(6):
        told.silent(
            f"Each call of torch.nn.Dropout.forward has training True, case {number}",
            "never called" if number < 4 else "precondition never met",
            "torch.nn.Dropout.forward was never called in the steps that were recorded",
        )
    return told
