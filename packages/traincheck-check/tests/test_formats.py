"""What is printed for programs: a document a run, or annotations of a workflow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from traincheck_check.commands.check import check
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.suppression_file import write_suppressions
from traincheck_trace_schema.suppressions import Suppression

if TYPE_CHECKING:
    from conftest import WriteRun

FC2 = "model.fc2.weight"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(*args: object) -> list[str]:
    words = [*map(str, args), "-o", "results", "--no-html-report"]
    return CliRunner().invoke(check, words).stdout.splitlines()


def test_json_is_a_document_for_each_run(write_run: WriteRun, claims_file: Path) -> None:
    """And nothing else stands on stdout."""
    folders = write_run("good"), write_run("stuck", stuck=[FC2])

    lines = printed("-f", *folders, "-i", claims_file, "--format", "json")

    told = {document["run"]: document for document in map(loads, lines)}
    assert told["good"]["summary"]["failed"] == 0
    assert told["stuck"]["summary"]["failed"] == 1
    assert told["stuck"]["folder"] == "results/stuck"


def test_github_is_told_of_each_group_at_its_source_line(
    write_run: WriteRun, claims_file: Path
) -> None:
    """And how much applied."""
    lines = printed("-f", write_run(stuck=[FC2]), "-i", claims_file, "--format", "github")

    (error,) = [line for line in lines if line.startswith("::error ")]
    assert "file=train.py,line=10," in error
    assert lines[-1].startswith("::notice title=TrainCheck::3 of 4 invariants applied")


def test_github_can_not_be_steered_by_a_name(tmp_path: Path, claims_file: Path) -> None:
    """Lines, commas and colons in a name stay in the message."""
    name = "model.x\n::error file=a,line=1::y%"
    trace = TraceBuilder(tmp_path / "trace")
    train(trace.rank(), 6, parameters=("model.fc1.weight", name), stuck=[name])
    trace.write()

    lines = printed("-f", "trace", "-i", claims_file, "--format", "github")

    assert [line for line in lines if line.startswith("::error file=a")] == []
    assert any("%0A::error file=a,line=1::y%25" in line for line in lines)


def test_several_runs_are_checked_in_processes_of_their_own(
    write_run: WriteRun, claims_file: Path
) -> None:
    """In the order in which they are given, with the same results."""
    folders = [write_run(f"run{number}", stuck=[FC2] * (number == 1)) for number in range(3)]
    one_by_one = printed("-f", *folders, "-i", claims_file, "--format", "json")

    at_once = printed("-f", *folders, "-i", claims_file, "--format", "json", "-j", 3)

    assert at_once == one_by_one
    assert [loads(line)["summary"]["failed"] for line in at_once] == [0, 1, 0]


@pytest.mark.parametrize(
    ("options", "level"),
    [((), "error"), (("--fail-on", "2"), "warning"), (("--baseline", "known.jsonl"), "notice")],
)
def test_github_is_told_as_the_exit_code_tells(
    write_run: WriteRun, claims_file: Path, options: tuple[str, ...], level: str
) -> None:
    """An error fails the check, a warning counts too little, a notice is known."""
    write_suppressions(Path("known.jsonl"), [Suppression(pattern="moves-each", reason="frozen")])

    lines = printed("-f", write_run(stuck=[FC2]), "-i", claims_file, "--format", "github", *options)

    assert [line.split(" ")[0] for line in lines[:-1]] == [f"::{level}"]


def test_a_check_goes_on_where_nobody_reads_it(write_run: WriteRun, claims_file: Path) -> None:
    """As behind `| head`: each run is checked, and the exit code is that of a broken pipe."""
    folders = [write_run(f"run{number}", stuck=[FC2]) for number in range(3)]
    command = [
        *(Path(sys.executable).with_name("traincheck-check"), "-f", *folders),
        *("-i", claims_file, "-o", "results", "--write-baseline", "next.jsonl"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(60)

    assert process.returncode == 141
    assert all(Path("results", f"run{n}", "failed.log").exists() for n in range(3))
    assert Path("next.jsonl").exists()
