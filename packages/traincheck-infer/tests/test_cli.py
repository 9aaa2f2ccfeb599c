"""The command line of inference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from traincheck_infer.cli import infer
from traincheck_relations.testing import TraceBuilder
from traincheck_trace_schema.invariant_file import read_invariants
from traincheck_trace_schema.legacy.testing import OldTrace

if TYPE_CHECKING:
    from conftest import WriteRun


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(infer, list(map(str, args)))


def test_invariants_are_written_and_told(write_run: WriteRun) -> None:
    """The summary says what was read and found, where it is, and what comes next."""
    result = run("-f", write_run("one"), write_run("other"))

    assert result.exit_code == 0, result.output
    invariants = read_invariants([Path("invariants.json")])
    assert invariants
    assert "Read 2 runs: 12 training steps" in result.output
    assert f"Found {len(invariants)} invariants" in result.output
    assert "traincheck-check -f TRACE -i invariants.json" in result.output


def test_single_files_and_another_output(write_run: WriteRun) -> None:
    """Traces can be named one by one."""
    (trace,) = write_run().iterdir()

    result = run("-t", trace, "-o", "learnt.json")

    assert result.exit_code == 0, result.output
    assert read_invariants([Path("learnt.json")])


def test_relations_can_be_chosen(write_run: WriteRun) -> None:
    """What is switched off is not learnt."""
    folder = write_run()

    run("-f", folder, "--disable-relation", "APIContainRelation", "-o", "without.json")
    run("-f", folder, "--enable-relation", "APIContainRelation", "-o", "only.json")

    without, only = (read_invariants([Path(name)]) for name in ("without.json", "only.json"))
    assert {each.relation for each in without}.isdisjoint({"APIContainRelation"})
    assert {each.relation for each in only} == {"APIContainRelation"}


def test_the_same_traces_give_the_same_file(write_run: WriteRun) -> None:
    """Inference can be repeated byte for byte."""
    folder = write_run()

    run("-f", folder, "-o", "one.json")
    run("-f", folder, "-o", "other.json")

    assert Path("one.json").read_bytes() == Path("other.json").read_bytes()


def test_too_short_a_run_ends_with_a_warning(write_run: WriteRun) -> None:
    """Nothing was found, which is no error; what to do is told."""
    result = run("-f", write_run(steps=1))

    assert result.exit_code == 0, result.output
    assert "warning: no invariant was found; give longer runs" in result.stderr


def test_an_incomplete_run_is_told(tmp_path: Path, write_run: WriteRun) -> None:
    """A run that did not end cleanly can be learnt from, with a warning."""
    (trace,) = write_run().iterdir()
    lines = trace.read_text().splitlines(keepends=True)
    trace.write_text("".join(lines[:-1]))

    result = run("-f", tmp_path / "good")

    assert result.exit_code == 0, result.output
    assert "warning: run good is incomplete: " in result.stderr


def test_a_trace_without_steps_is_refused(tmp_path: Path) -> None:
    """Nothing about training can be learnt where no training step was seen."""
    trace = TraceBuilder(tmp_path / "trace")
    with trace.rank().call("torch.relu"):
        pass
    trace.write()

    result = run("-f", tmp_path / "trace")

    assert result.exit_code == 2
    assert "No training step is recorded" in result.stderr
    assert not Path("invariants.json").exists()


@pytest.mark.parametrize(
    "args", [[], ["-f", "missing"], ["-f", "empty"], ["-f", "empty", "-o", "no/folder.json"]]
)
def test_unusable_input_gets_one_line_and_exit_code_2(args: list[str]) -> None:
    """No trace given, no such folder, a folder without a trace."""
    Path("empty").mkdir()

    result = run(*args)

    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def test_an_unknown_relation_is_told_with_the_known_ones(write_run: WriteRun) -> None:
    """A slip of the pen is no empty result."""
    result = run("-f", write_run(), "--enable-relation", "APIContain")

    assert result.exit_code == 2
    assert "'APIContain'" in result.stderr
    assert "APIContainRelation" in result.stderr


def test_old_traces_are_read(tmp_path: Path) -> None:
    """What TrainCheck 0.x wrote gives invariants too."""
    trace = OldTrace(tmp_path / "old")
    thread = trace.thread()
    for step in range(1, 12):
        thread.at(step=step, stage="training")
        with thread.call("torch.optim.sgd.SGD.step"), thread.call("torch.optim.sgd.sgd"):
            pass

    result = run("-f", trace.write())

    assert result.exit_code == 0, result.output
    assert "Read 1 run: 11 training steps" in result.output
    learnt = {each.text_description for each in read_invariants([Path("invariants.json")])}
    assert learnt == {"Each call of torch.optim.SGD.step calls torch.optim.sgd.sgd"}
