"""Whole files: which document they are, what is wrong in which line, what is no problem."""

from __future__ import annotations

import gzip
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.errors import ConfigError, TraceError
from traincheck_trace_schema.invariant_file import invariant_id, write_invariants
from traincheck_trace_schema.invariants import APIParam, Invariant
from traincheck_trace_schema.occasion import Place
from traincheck_trace_schema.plan import Plan
from traincheck_trace_schema.plan_file import write_plan
from traincheck_trace_schema.results import Summary, Verdict, Violation
from traincheck_trace_schema.results_file import write_summary, write_verdicts
from traincheck_trace_schema.suppression_file import write_suppressions
from traincheck_trace_schema.suppressions import Suppression
from traincheck_trace_schema.validation import FileCheck, Finding, documents_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import TraceBuilder

PLACE = Place(step=0, stage="training", rank=0)


def _check(path: Path) -> tuple[FileCheck, list[Finding]]:
    check = FileCheck(path)
    return check, list(check.problems())


def _problems(path: Path) -> list[str]:
    return [f"{each.line}: {each.what}" for each in _check(path)[1]]


def _lines(trace: TraceBuilder) -> list[bytes]:
    records = [trace.header(), *trace.steps(0, 1)]
    footer = {"kind": "footer", "records": {"header": 1, "step": 2}}
    return [dumps(record).encode() for record in [*records, footer]]


def _write(trace: TraceBuilder, lines: list[bytes], name: str = "trace_r0.json") -> Path:
    path = trace.folder / name
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def _invariant(**changed: Any) -> Invariant:
    params = (APIParam(api_full_name="f"),)
    fields = {"relation": "R", "params": params, "precondition": {}}
    made = invariant_id("R", params, {})
    return Invariant(**{"id": made, "text_description": "t", **fields, **changed})


def _summary(**changed: Any) -> Summary:
    counts = {"checked": 1, "failed": 0, "passed": 1, "not_triggered": 0}
    return Summary(**{**counts, "complete": True, "violations": (), **changed})


def _verdict(**changed: Any) -> Verdict:
    named = {"invariant_id": "a", "relation": "R", "text_description": "t"}
    return Verdict(**{**named, "verdict": "passed", "occasions": 1, "violations": 0, **changed})


def test_a_whole_shard_is_valid(trace: TraceBuilder) -> None:
    """Nothing is said of what is right."""
    check, problems = _check(_write(trace, _lines(trace)))

    assert (check.document, check.records, check.notes, problems) == ("trace", 4, [], [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "is no JSON: expecting property name enclosed in double quotes at column 2, in"),
        (b"", "is empty"),
        (b"[1]", "is no record: it must be an object"),
        (b'{"kind":"joke"}', "field 'kind' must be one of header, "),
        (b'{"mood":1}', "field 'kind' is missing; it is one of header, "),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark"),
        (b'{"x":"\xff"}', "is no UTF-8 text: byte 0xff at column 7"),
        (b'{"x":' + b"9" * 5000 + b"}", "has a number of 5000 digits"),
        (b'{"kind":"stage","thread":1,"seq":0,"step":0}', "field 'stage' is missing"),
        (
            b'{"kind":"stage","thread":1,"seq":0.0,"step":0,"stage":"init"}',
            "field 'seq' must be an integer of at least 0 and below 2^62, got 0.0",
        ),
        (
            b'{"kind":"stage","thread":1,"seq":0e0,"step":0,"stage":"init"}',
            "field 'seq' must be an integer of at least 0 and below 2^62, got 0.0",
        ),
        (
            b'{"kind":"stage","thread":1,"thread":2,"seq":0,"step":0,"stage":"init"}',
            "has the key 'thread' twice in one object",
        ),
        (
            b'{"kind":"stage","thread":1,"seq":0,"step":0,"stage":"init","x":NaN}',
            "has the token NaN, which is no JSON",
        ),
        (
            b'{"kind":"stage","thread":1,"seq":0,"step":0,"stage":"init","x":-Infinity}',
            "has the token -Infinity, which is no JSON",
        ),
        (
            b'{"kind":"stage","thread":1,"seq":0,"step":0,"stage":"init","x":1e400}',
            "has the number 1e400, which is too large",
        ),
        (
            b'{"kind":"stage","thread":1,"seq":0,"step":0,"stage":"init","x":"\xff"}',
            "is no ",
        ),
        (
            b'{"kind":"stage","thread":1,"seq":0,"step":0,"stage":"init","x":"\\ud800"}',
            "holds half of a surrogate pair",
        ),
        (
            b'{"kind":"stage","thread":1,"seq":0,"step":0,"stage":"init","x":'
            + b"[" * 200
            + b"]" * 200
            + b"}",
            "is nested more than 200 levels deep",
        ),
    ],
)
def test_a_bad_line_is_told_and_the_rest_is_read(
    trace: TraceBuilder, line: bytes, reason: str
) -> None:
    """The line is named; what it would have told is not missed after it."""
    header, *others = _lines(trace)

    (problem,) = _problems(_write(trace, [header, line, *others[1:]]))

    assert problem.startswith(f"2: {reason}")


def test_spelling_does_not_matter(trace: TraceBuilder) -> None:
    """Spaces, escapes, order and UTF-8 are as free as JSON has them."""
    header, *others = _lines(trace)
    odd = (
        '{"step": 0,"seq" :-0, "thread":1, "kind":"st\\u0061ge", '
        '"stage":"init", "x":"ü\\ud83d\\ude00"}'
    )

    problems = _problems(_write(trace, [header, odd.encode(), others[1], b"\t" + others[2]]))

    assert problems == [
        "4: counts 0 records of kind stage; read 1",
        "4: counts 2 records of kind step; read 1",
    ]


def test_a_line_that_is_too_long_is_passed(trace: TraceBuilder) -> None:
    """No reader takes it, and it is not kept in memory."""
    header, *others = _lines(trace)
    path = _write(trace, [header, b'{"x":"' + b"a" * 17 * 2**20 + b'"}', *others[1:]])

    assert _problems(path) == ["2: is longer than 16 MB, and no reader takes it"]


@pytest.mark.parametrize("name", ["trace_r0.json", "trace_r0.json.gz"])
def test_a_cut_shard_is_no_error(trace: TraceBuilder, name: str) -> None:
    """A process that was killed leaves a valid prefix."""
    content = b"\n".join(_lines(trace))[:-30]
    path = trace.folder / name
    path.write_bytes(gzip.compress(content)[:-9] if name.endswith(".gz") else content)

    check, problems = _check(path)

    assert problems == []
    assert check.notes == ["cut in its last line"]


@pytest.mark.parametrize("content", [b"", b'{"ki'])
def test_a_shard_without_a_record_is_no_error(trace: TraceBuilder, content: bytes) -> None:
    """A process may be killed before it has written its header."""
    path = trace.folder / "trace_r0.json"
    path.write_bytes(content)

    check, problems = _check(path)

    assert (problems, check.notes) == ([], ["its process ended before it wrote its header"])


def test_another_major_version_is_told_once(trace: TraceBuilder) -> None:
    """What it holds cannot be judged here."""
    path = trace.shard(*trace.steps(3, 2, 1), version="2.0")

    (problem,) = _problems(path)

    assert "1: is traincheck.trace version 2.0, and this TrainCheck knows version 1.x" in problem


def test_a_newer_minor_version_may_have_more(trace: TraceBuilder) -> None:
    """Fields and kinds that are not known here are passed; what is known is judged."""
    future = {"kind": "mood", "seq": "high"}
    wrong = {**trace.steps(0)[0], "sampled": 3}
    path = trace.write("trace_r0.json", [trace.header(version="1.7", mood=1), future, wrong])

    check, problems = _check(path)

    assert [problem.line for problem in problems] == [3]
    assert check.notes == ["is version 1.7: what is not in 1.0 is passed"]


def test_a_kind_of_this_version_must_be_known(trace: TraceBuilder) -> None:
    """A shard of 1.0 has the kinds of 1.0."""
    (problem,) = _problems(trace.write("trace_r0.json", [trace.header(), {"kind": "mood"}]))

    assert problem.startswith("2: field 'kind' must be one of header, ")


def test_a_document_is_what_it_says(tmp_path: Path) -> None:
    """Names mean nothing: a file says itself what it is."""
    write_invariants(tmp_path / "a.txt", [_invariant()])
    write_plan(tmp_path / "b.txt", Plan(id="p", functions=None, variables=()))
    write_summary(tmp_path / "c.txt", _summary())
    write_verdicts(tmp_path / "d.txt", [_verdict(), _verdict()])
    (tmp_path / "e.txt").write_text(dumps(unstructure(_summary())))
    write_suppressions(tmp_path / "f.txt", [Suppression(pattern="x", reason="y")])

    checks = [_check(path) for path in sorted(tmp_path.iterdir())]

    assert [problems for _, problems in checks] == [[]] * 6
    told = [(check.document, check.is_lines) for check, _ in checks]
    assert told == [
        ("invariants", True),
        ("plan", False),
        ("results", False),
        ("results", True),
        ("results", False),
        ("suppressions", True),
    ]


@pytest.mark.parametrize(
    "content", ["Dear diary", "Dear\ndiary\n", "[]", "7", '{"a": 1}', "{\n}\n", '{"kind": 3}']
)
def test_another_file_is_none_of_ours(tmp_path: Path, content: str) -> None:
    """It is told as such."""
    path = tmp_path / "a.json"
    path.write_text(content)

    check, (problem,) = _check(path)

    assert check.document == ""
    assert "document of TrainCheck" in problem.what


def test_an_id_must_fit_its_invariant(tmp_path: Path) -> None:
    """Verdicts and suppressions name invariants by their ids."""
    path = tmp_path / "i.json"
    write_invariants(path, [_invariant(), _invariant(id="mine")])

    (problem,) = _problems(path)

    assert problem.startswith("2: field 'id' must be '")
    assert problem.endswith("which its content gives; got 'mine'")


def test_a_cut_invariant_file_is_an_error(tmp_path: Path) -> None:
    """It was written at once, and no reader passes over its end."""
    path = tmp_path / "i.json"
    write_invariants(path, [_invariant(), _invariant()])
    path.write_text(path.read_text()[:-20])

    assert _problems(path) == ["2: is cut, or no line of a document of TrainCheck"]


def test_old_invariants_are_told_once(tmp_path: Path) -> None:
    """All lines of a file of 0.x are of 0.x."""
    path = tmp_path / "i.json"
    path.write_text('{"relation": "R", "params": []}\n' * 3)

    (problem,) = _problems(path)

    assert problem.startswith("1: is of TrainCheck 0.x")
    assert problem.endswith("traincheck-schema migrate IN OUT")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"checked": 7}, "field 'checked' must be 1, the sum of the verdicts; got 7"),
        ({"incomplete_because": ("x",)}, "field 'complete' is true, and 'incomplete_because' says"),
        (
            {"suppressed": 2},
            "field 'suppressed' must be 0, the number of ids in 'suppressions'; got 2",
        ),
        (
            {"failed": 1, "passed": 0},
            "field 'failed' must be 0, the number of violations; got 1",
        ),
        (
            {
                "failed": 1,
                "passed": 0,
                "violations": (
                    Violation(
                        invariant_id="a",
                        relation="R",
                        text_description="t",
                        first=PLACE,
                        last=PLACE,
                        occurrences=1,
                        ranks=(0,),
                        group=4,
                    ),
                ),
            },
            "field 'violations[0].group' must be the id of a group; got 4",
        ),
    ],
)
def test_a_summary_must_not_contradict_itself(
    tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    """Its totals and its groups fit its violations."""
    path = tmp_path / "s.json"
    write_summary(path, _summary(**changed))

    (problem,) = _problems(path)

    assert problem.startswith(f"None: {reason}")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"violations": 1}, "says passed and has 1 violations"),
        ({"verdict": "failed", "violations": 2}, "has 2 violations on 1 occasions"),
    ],
)
def test_a_verdict_must_not_contradict_itself(
    tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    """Failed is what has violations."""
    path = tmp_path / "failed.log"
    write_verdicts(path, [_verdict(), _verdict(**changed)])

    assert _problems(path) == [f"2: {reason}"]


def test_a_folder_is_what_is_ours_in_it(trace: TraceBuilder) -> None:
    """Shards and verdict logs by name, other JSON if it says so."""
    names = ["trace_a.json", "trace_b.json.gz", "failed.log", "plan.json", "notes.txt", "log.txt"]
    for name in names:
        (trace.folder / name).touch()
    (trace.folder / "inner").mkdir()

    found = {path.name: is_maybe for path, is_maybe in documents_in([trace.folder])}

    assert found == {
        "failed.log": False,
        "plan.json": True,
        "trace_a.json": False,
        "trace_b.json.gz": False,
    }


def test_a_folder_without_documents_is_refused(tmp_path: Path) -> None:
    """It is not taken for valid, nor is a path that is not there."""
    with pytest.raises(ConfigError, match="holds no document of TrainCheck"):
        list(documents_in([tmp_path]))
    with pytest.raises(ConfigError, match="there is no such file or folder"):
        list(documents_in([tmp_path / "nothing"]))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A symbolic link to itself, say."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(TraceError, match="cannot be read"):
        _check(tmp_path / "loop")


def test_memory_does_not_grow_with_the_shard(tmp_path: Path) -> None:
    """A shard of four times the records takes no more memory."""

    def content(count: int) -> Iterator[str]:
        yield from (
            f'{{"kind":"step","thread":1,"seq":{seq},"step":{seq},"sampled":true}}\n'
            for seq in range(count)
        )

    peaks = []
    for count in (20_000, 80_000):
        path = tmp_path / "trace_r0.json"
        with path.open("w") as file:
            file.writelines(content(count))
        tracemalloc.start()
        assert len(_problems(path)) == 1  # no header
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] < 1.2 * peaks[0]


@given(data=st.data())
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_damaged_files_have_problems_and_no_traceback(
    data: st.DataObject, trace: TraceBuilder
) -> None:
    """Whatever bytes a file holds, validating it ends, and says which lines are wrong."""
    content = bytearray(b"\n".join(_lines(trace)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = trace.folder / "trace_r0.json"
    path.write_bytes(content)

    for problem in _check(path)[1]:
        assert problem.what


@pytest.mark.parametrize(
    "content",
    [
        b"\n".join(b'{"kind": "step",\n"seq": 1}' for _ in range(40)),
        b"[\n" + b'{"kind":\n"step"},\n' * 40 + b"{}\n]",
        b'[{"kind":"step"}]\n',
        b"INFO step 1\n" * 40,
        '{"kind":"header"}\n'.encode("utf-16") * 40,
    ],
)
def test_what_is_no_json_lines_is_told_once(trace: TraceBuilder, content: bytes) -> None:
    """An indented document, a list, a log, another encoding: one problem, not one a line."""
    path = trace.folder / "trace_r0.json"
    path.write_bytes(content)

    (problem,) = _problems(path)

    assert problem.startswith("1: ")
    assert problem.rstrip(")").endswith("a trace is JSON Lines, one record a line")


def test_a_field_that_looks_like_another_is_hinted_at(trace: TraceBuilder) -> None:
    """Once in a file, wherever it lies; what looks like nothing is passed."""
    tensor = {"shape": [0], "dtype": "float32", "device": "cpu", "diggest": "a:1"}
    call = {
        **trace.steps(0)[0],
        "kind": "call_begin",
        "id": 1,
        "functon": "f",
        "function": "f",
        "args": {"x": {"tensor": tensor}},
        "mood": "fine",
    }
    header = trace.header(recording={"mode": "full", "functons": []})
    path = trace.write("trace_r0.json", [header, call, {**call, "seq": 1, "id": 2}])

    hints = [each.what for each in FileCheck(path).findings() if each.severity == "hint"]

    assert hints == [
        "field 'recording.functons' is not known; is 'recording.functions' meant?",
        "is in step 0, which no step record began",
        "field 'tensor.diggest' is not known; is 'tensor.digest' meant?",
    ]


def test_a_name_that_readers_pass_over_is_hinted_at(trace: TraceBuilder) -> None:
    """The trace is valid, and nobody would find it in its folder."""
    path = _write(trace, _lines(trace), "mytrace.jsonl")

    (found,) = FileCheck(path).findings()

    assert (found.severity, found.line) == ("hint", None)
    assert "they take trace_*.json and trace_*.json.gz" in found.what


def test_subfolders_are_looked_into_and_links_are_not(trace: TraceBuilder) -> None:
    """A migrated case has its trace in a folder beside its invariants."""
    inner = trace.shard(name="case/trace/trace_r0.json")
    (trace.folder / "case" / "loop").symlink_to(trace.folder)

    assert [path for path, _ in documents_in([trace.folder])] == [inner]
