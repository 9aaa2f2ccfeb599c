"""The command line of inference."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from traincheck_infer.cli import infer
from traincheck_relations.testing.traces import TraceBuilder, train
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


def test_the_summary_says_what_was_left_out_and_why(write_run: WriteRun) -> None:
    """Candidates of one name are a few; what became of each is told."""
    result = run("-f", write_run())

    lines = result.output.splitlines()
    start = lines.index("Left out were candidates")
    left_out = [line for line in lines[start + 1 :] if line.startswith("  ")][:-2]
    assert any(line.endswith("that another invariant implies") for line in left_out)
    candidates = int(result.output.partition(" among ")[2].split()[0])
    found = len(read_invariants([Path("invariants.json")]))
    assert sum(int(line.split()[0]) for line in left_out) == candidates - found


def test_a_run_that_contradicts_is_named_with_its_folder(write_run: WriteRun) -> None:
    """A person finds the run whose steps clear no gradients."""
    run("-f", write_run("good", 9), "-o", "good.json")
    other = TraceBuilder(Path("other"), run_id="other")
    train(other.rank(), 9, stuck=("model.fc1.weight", "model.fc2.weight"), since=4)
    other.write()

    result = run("-f", "good", "other")

    assert "that a run contradicts" in result.output
    assert "by run other in other" in result.output


def test_each_invariant_is_a_sentence_with_its_condition() -> None:
    """A person reads what is claimed, and when: what the program defines, of its model."""
    trace = TraceBuilder(Path("good"))
    rank = trace.rank()
    train(rank, 6)
    for step in range(6, 12):
        rank.step(step)
        with rank.call("__main__.objective"), rank.call("__main__.distance"):
            pass
    trace.write()

    run("-f", "good")

    told = {one.text_description for one in read_invariants([Path("invariants.json")])}
    (conditional,) = [each for each in told if " when it is " in each]
    assert conditional == (
        "Each call of __main__.objective calls __main__.distance "
        "when it is the same model, by the names of its parameters"
    )


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


def test_options_of_earlier_versions_are_accepted_and_do_nothing(write_run: WriteRun) -> None:
    """Each says so, and the file is the same."""
    folder = write_run()
    run("-f", folder)

    inert = ["-b", "polars", "--disable-precond-sampling", "--precond-sampling-threshold", "100"]
    result = run("-f", folder, "-o", "other.json", *inert)

    assert result.exit_code == 0, result.output
    assert "note: --backend does nothing" in result.stderr
    assert "without sampling" in result.stderr
    assert Path("other.json").read_bytes() == Path("invariants.json").read_bytes()


def test_invariants_that_stand_there_are_kept(write_run: WriteRun) -> None:
    """Nothing is lost silently; what is written again unchanged is not kept twice."""
    run("-f", write_run())
    earlier = Path("invariants.json").read_bytes()

    again = run("-f", "good")
    assert not Path("invariants.json.bak").exists()
    other = run("-f", write_run("other", 9, unused=["model.bn.weight"]))

    assert "kept" not in again.stderr
    assert "kept as invariants.json.bak" in other.stderr
    assert Path("invariants.json.bak").read_bytes() == earlier
    assert Path("invariants.json").read_bytes() != earlier
    assert sorted(path.name for path in Path().iterdir()) == [
        "good",
        "invariants.json",
        "invariants.json.bak",
        "other",
    ]


def test_a_file_of_something_else_is_not_replaced(write_run: WriteRun) -> None:
    """A slip of the pen must not cost a script."""
    Path("train.py").write_text("import torch")

    result = run("-f", write_run(), "-o", "train.py")

    assert result.exit_code == 2
    assert "train.py exists and holds no invariants" in result.stderr
    assert Path("train.py").read_text() == "import torch"


def test_runs_of_different_trackers_are_told(tmp_path: Path, write_run: WriteRun) -> None:
    """What one of them can't see is missing; the runs are named."""
    other = TraceBuilder(tmp_path / "sampled", run_id="sampled", tracker="sampler")
    train(other.rank(), 6)
    other.write()

    result = run("-f", write_run(), "sampled")

    assert result.exit_code == 0, result.output
    assert "one tracker (sampler: sampled; subclass: good)" in result.stderr
    assert {each.tracker for each in read_invariants([Path("invariants.json")])} == {None}


@pytest.mark.parametrize(("reason", "is_told"), [("disk", True), ("sampling", False)])
def test_gaps_that_lose_records_are_told(
    tmp_path: Path,
    reason: str,
    is_told: bool,  # noqa: FBT001
) -> None:
    """Steps that were not sampled lose nothing; both can be learnt from."""
    trace = TraceBuilder(tmp_path / "gaps", run_id="gaps")
    train(trace.rank(), 6)
    trace.rank().gap(reason, 3)
    trace.write()

    result = run("-f", "gaps")

    assert result.exit_code == 0, result.output
    assert read_invariants([Path("invariants.json")])
    told = f"trace_r0_p1000.json: at least 3 records were lost ({reason})"
    assert (f"warning: run gaps is incomplete: {told}" in result.stderr) is is_told


def test_more_runs_than_there_are_cannot_be_asked_for(write_run: WriteRun) -> None:
    """Nothing could be found; the number of runs is told."""
    result = run("-f", write_run(), "--min-runs", "2")

    assert result.exit_code == 2
    assert "--min-runs 2: the traces are of 1" in result.stderr


def _plugin(folder: Path, name: str, code: str) -> None:
    """Install a distribution that offers a relation, into a folder that is put on the path."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[traincheck.relations]\n{name} = {name}:{name}\n")


def _in_a_process(*args: str, plugins: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("traincheck-infer")
    environment = os.environ | {"PYTHONPATH": str(plugins)}
    return subprocess.run(
        [command, *args], env=environment, capture_output=True, text=True, check=False
    )


def _without_progress(told: str) -> list[str]:
    """Return the lines that do not depend on how busy the machine is."""
    return [line for line in told.splitlines() if not line.startswith("traincheck-infer: ")]


def test_a_plugin_that_cannot_be_loaded_costs_itself_only(
    tmp_path: Path, write_run: WriteRun
) -> None:
    """It is named, and an error only if it was asked for."""
    _plugin(tmp_path / "site", "Unlicensed", "raise OSError('no licence')")
    write_run()

    alone = run("-f", "good", "-o", "alone.json")
    result = _in_a_process("-f", "good", "-o", "with.json", plugins=tmp_path / "site")
    asked = _in_a_process(
        "-f", "good", "--enable-relation", "Unlicensed", plugins=tmp_path / "site"
    )

    assert alone.exit_code == result.returncode == 0, result.stderr
    (line,) = _without_progress(result.stderr)
    assert line.startswith("warning: Relation 'Unlicensed' from Unlicensed failed to load: OSError")
    assert Path("alone.json").read_bytes() == Path("with.json").read_bytes()
    assert asked.returncode == 2
    assert asked.stderr.startswith("error: Relation 'Unlicensed'")


def test_a_plugin_that_fails_is_told_in_one_line(tmp_path: Path, write_run: WriteRun) -> None:
    """Its own invariants are missing, and no others; with several processes, too."""
    code = (
        "from traincheck_relations.per_call import PerCallRelation\n"
        "class Failing(PerCallRelation):\n"
        "    name = 'Failing'\n"
        "    claim = 'is right'\n"
        "    def holds(self, call, end):\n"
        "        raise LookupError('lost')\n"
    )
    _plugin(tmp_path / "site", "Failing", code)
    write_run()
    run("-f", "good", "-o", "alone.json")

    for jobs in ("1", "2"):
        result = _in_a_process(
            "-f", "good", "-o", "with.json", "-j", jobs, plugins=tmp_path / "site"
        )

        assert result.returncode == 0, result.stderr
        assert _without_progress(result.stderr) == [
            "warning: Failing failed and was left out: LookupError: lost"
        ]
        assert Path("alone.json").read_bytes() == Path("with.json").read_bytes()


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
