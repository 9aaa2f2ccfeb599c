"""What the documentation shows is true."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from traincheck_trace_schema.codec import dumps, loads, structure_record
from traincheck_trace_schema.invariant_file import invariant_id, read_invariants
from traincheck_trace_schema.plan_file import read_plan
from traincheck_trace_schema.progress_file import read_progress
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.reading.form import MAX_DEPTH
from traincheck_trace_schema.reading.lines import MAX_LINE
from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.results_file import read_summary, read_verdicts
from traincheck_trace_schema.summary import summarise
from traincheck_trace_schema.suppression_file import read_suppressions
from traincheck_trace_schema.validation import FileCheck, validate
from traincheck_trace_schema.values import PAYLOADS

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGE = Path(__file__).parents[1]
DOCS = PACKAGE / "docs"
PAGE = (DOCS / "trace.md").read_text("utf-8")
CONFORMANCE = PACKAGE / "tests" / "conformance" / "1.0"
VALID, NOT_VALID = CONFORMANCE / "valid", CONFORMANCE / "not_valid"
MINIMAL = VALID / "minimal" / "trace_r0.json"


def _blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [block for of, block in blocks if of == language]


def _problems(path: Path) -> Sequence[str]:
    return [found.what for found in FileCheck(path).findings()]


def test_each_kind_of_record_has_a_valid_example() -> None:
    """The examples of the page validate, can be read, and leave no kind out."""
    records = [loads(line) for block in _blocks("trace.md", "json") for line in block.splitlines()]

    for record in records:
        validate("trace", record)
        structure_record(record)

    assert {record["kind"] for record in records} == {cls.kind for cls in get_args(TraceRecord)}


def test_the_examples_of_records_are_one_shard(tmp_path: Path) -> None:
    """Read one after the other, as they stand on the page, they contradict one another nowhere."""
    path = tmp_path / "trace_r0.json"
    path.write_text("".join(_blocks("trace.md", "json")))

    assert _problems(path) == []
    run = open_run(path, strict=True)
    assert len([*run.stream()]) > len(path.read_text().splitlines())
    assert run.notes() == ()


def test_each_encoding_of_a_value_has_a_valid_example() -> None:
    """The table of values shows what the schema accepts, and leaves no encoding out."""
    _, _, section = PAGE.partition("## Values")
    values = [loads(text) for text in re.findall(r"`(\{.*?\})`", section)]

    for value in values:
        validate(
            "trace",
            {"kind": "call_end", "thread": 1, "seq": 1, "step": 0, "id": 1, "function": "f"}
            | {"result": value},
        )

    assert {key for value in values for key in value} == PAYLOADS.keys()


def test_the_complete_shard_is_valid_and_says_what_the_page_says(tmp_path: Path) -> None:
    """Two steps, of which the first changes the weight; nothing is missing."""
    path = tmp_path / "trace_r0.json"
    (shard,) = _blocks("trace.md", "jsonl")
    path.write_text(shard)

    assert _problems(path) == []
    summary = summarise(open_run([tmp_path], strict=True))
    assert summary.processes[0].steps.count == 2
    assert summary.variables["model.weight"].changes == 1
    assert summary.incomplete_because == ()


def test_the_invariant_is_valid_and_its_id_is_explained(tmp_path: Path) -> None:
    """The file of the page can be read, and its id is the one that the page describes."""
    path = tmp_path / "invariants.json"
    path.write_text(*_blocks("invariants.md", "jsonl"))

    assert _problems(path) == []
    (invariant,) = read_invariants([path])
    own = invariant_id(invariant.relation, invariant.params, invariant.precondition)
    assert invariant.id == own == _described_id(loads(path.read_text()))


def _described_id(raw: dict[str, Any]) -> str:
    import hashlib  # noqa: PLC0415  as in another program
    import json  # noqa: PLC0415

    def sort_lists(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: sort_lists(item) for key, item in value.items()}
        return sorted(map(sort_lists, value), key=dumps) if isinstance(value, list) else value

    content = [raw["relation"], raw["params"], sort_lists(raw["precondition"])]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def test_the_plan_is_valid(tmp_path: Path) -> None:
    """The file of the page can be read."""
    path = tmp_path / "plan.json"
    path.write_text(*_blocks("plan.md", "json"))

    assert _problems(path) == []
    assert read_plan(path).observe == ("torch.optim.Optimizer.step",)


def test_the_results_are_valid(tmp_path: Path) -> None:
    """The files of the page can be read, and their totals fit."""
    summary, verdicts = tmp_path / "violations_summary.json", tmp_path / "failed.log"
    summary.write_text(*_blocks("results.md", "json"))
    verdicts.write_text(*_blocks("results.md", "jsonl"))

    assert _problems(summary) == _problems(verdicts) == []
    assert read_summary(summary).checked == len(read_verdicts(verdicts)) == 3


def test_the_suppressions_are_valid(tmp_path: Path) -> None:
    """The file of the page can be read."""
    path = tmp_path / "invariants.suppressed.jsonl"
    path.write_text(*_blocks("suppressions.md", "jsonl"))

    assert _problems(path) == []
    assert [each.pattern for each in read_suppressions(path)] == [
        "ce994210421541ae",
        "torch.nn.functional.*",
    ]


def test_the_progress_is_valid(tmp_path: Path) -> None:
    """The file of the page can be read."""
    path = tmp_path / "progress.json"
    path.write_text(*_blocks("progress.md", "json"))

    assert _problems(path) == []
    assert read_progress(path).awaited == (1,)


@pytest.mark.parametrize("page", [PACKAGE / "README.md", *sorted(DOCS.glob("*.md"))], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    """Each file that a page links is there."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_readme_links_each_page() -> None:
    """None can only be found by looking into the folder."""
    links = re.findall(r"\]\(docs/([^)]+)\)", (PACKAGE / "README.md").read_text("utf-8"))

    assert sorted(links) == sorted(page.name for page in DOCS.glob("*.md"))


@pytest.mark.parametrize("page", ["../README.md", "reading.md", "live.md"])
def test_the_programs_run(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each does something with the smallest trace, and says nothing of an error."""
    shutil.copytree(MINIMAL.parent, tmp_path / "trace_folder")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"records": map(loads, MINIMAL.read_text("utf-8").splitlines())}

    for program in _blocks(page, "python"):
        exec(program, names)  # noqa: S102  it is ours

    said = capsys.readouterr().out
    assert "step 4" in said or "footer" in said
    assert not re.search("error|cannot|must", said)


def test_the_smallest_trace_is_that_of_its_file() -> None:
    """What the page shows record by record are lines of the file, in this order."""
    file = iter(MINIMAL.read_text("utf-8").splitlines())

    shown = [line for block in _blocks("producing.md", "jsonl") for line in block.splitlines()]
    assert [line for line in shown if line not in file] == []
    assert loads(shown[-1])["kind"] == "footer"


def test_the_digest_is_that_of_the_recorder() -> None:
    """The program of the page computes what it says, and what TrainCheck writes."""
    pytest.importorskip("xxhash")
    names: dict[str, Any] = {}
    (program,) = _blocks("producing.md", "python")

    exec(program, names)  # noqa: S102  it is ours

    page = (DOCS / "producing.md").read_text("utf-8")
    assert f"the digest `{names['digest']}`, from the seed {names['seed']}." in page
    torch = pytest.importorskip("torch")
    recorder = pytest.importorskip("traincheck_instrument.content.digest")
    tensor = torch.tensor([[1.0, 0.0], [-2.5, 3.25]]).t()
    assert recorder.digest_text(recorder.fingerprint(tensor)) == names["digest"]


def test_the_limits_are_those_of_the_reader() -> None:
    """The table names the numbers that the code has."""
    page = (DOCS / "producing.md").read_text("utf-8")

    assert MAX_LINE == 16 * 2**20
    assert "| a line | 16 MB (16 · 2²⁰ bytes) |" in page
    assert f"| levels of lists and objects in a record | {MAX_DEPTH} |" in page
    assert f"at most {MAX_DEPTH}\nlevels" in PAGE


@pytest.mark.parametrize("folder", sorted(VALID.iterdir()), ids=lambda folder: folder.name)
def test_what_conforms_is_valid_and_read(folder: Path) -> None:
    """Each shard is valid, without a hint; the run is read to its end, without a note."""
    assert [problem for path in folder.iterdir() for problem in _problems(path)] == []

    run = open_run(folder, strict=True)
    assert len([*run.stream()]) > len(run.shards)
    assert run.notes() == ()
    assert all(("lost" in why) == (folder.name == "gap") for why in run.incomplete_because())


def test_what_does_not_conform_is_told_as_it_is_written() -> None:
    """Each shard has one thing wrong, which is found in the line that the list names."""
    told = [
        f"{path.name}:{problem.line}: {problem.what}"
        for path in sorted(NOT_VALID.glob("*.json"))
        for problem in FileCheck(path).findings()
    ]

    assert told == (NOT_VALID / "messages.txt").read_text("utf-8").splitlines()


def test_records_around_an_evaluation_stand_as_the_page_says() -> None:
    """The stage before a pass has the old `eval_pass`, its first step the new, its end no step."""
    (path,) = (VALID / "evaluation").iterdir()
    records = [loads(line) for line in path.read_text("utf-8").splitlines()]
    around = [
        (record.get("stage") or record.get("phase") or record["kind"], *_pass_of(record))
        for record in records
        if record.get("step") == 1 and record["kind"] in {"step", "stage", "observe"}
        if record.get("call") is None
    ]

    assert around == [
        ("step", 0, None),
        *[("evaluation", 0, None), ("step", 1, 0), ("step", 1, 1), ("training", 1, None)],
        *[("evaluation", 1, None), ("step", 2, 0), ("step", 2, 1), ("training", 2, None)],
        ("step_end", 2, None),
    ]


def _pass_of(record: dict[str, Any]) -> tuple[int, int | None]:
    return record.get("eval_pass", 0), record.get("eval_step")


def test_the_planted_bug_is_found(tmp_path: Path) -> None:
    """The commands of the page learn from the smallest trace, and find the weight that stays."""
    (block,) = _blocks("producing.md", "")
    commands = [shlex.split(line) for line in block.splitlines()]
    here = str(Path(sys.executable).parent)
    if not all(shutil.which(command, path=here) for command, *_ in commands):
        pytest.skip("needs the packages that learn and check")
    shutil.copytree(VALID, tmp_path / "valid")

    learn, check = (
        subprocess.run(
            [Path(here) / command, *rest],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for command, *rest in commands
    )

    assert learn.returncode == 0, learn.stderr
    assert check.returncode == 1, check.stderr
    assert "1. rustnet.Sgd.step changed the data of none of" in check.stdout
    assert "Since:     step 3 (training)" in check.stdout
