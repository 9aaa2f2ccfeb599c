"""The command `traincheck-schema`, which is also `traincheck schema`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from traincheck_trace_schema.commands.group import main
from traincheck_trace_schema.invariant_file import invariant_id, write_invariants
from traincheck_trace_schema.invariants import APIParam, Invariant
from traincheck_trace_schema.validation import schema
from traincheck_trace_schema.writing import write_shard

if TYPE_CHECKING:
    from conftest import TraceBuilder

GOLDEN = Path(__file__).parent / "golden" / "1.0"
SCRIPT = Path(sys.executable).parent / "traincheck-schema"
UMBRELLA = Path(sys.executable).parent / "traincheck"


def _run(*args: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(
        main, [str(each) for each in args], prog_name="traincheck-schema"
    )


def _shard(trace: TraceBuilder, *steps: int) -> Path:
    path = trace.folder / "trace_r0.json"
    footer = {"kind": "footer", "records": {"header": 1, "step": len(steps)}}
    write_shard(path, [trace.header(), *trace.steps(*steps), footer])
    return path


def _shard_named(trace: TraceBuilder, name: str, **header: object) -> None:
    footer = {"kind": "footer", "records": {"header": 1}}
    write_shard(trace.folder / name, [trace.header(**header), footer])


def test_valid_files_are_told_in_a_line_each() -> None:
    """What they are, and how much is in them."""
    result = _run("validate", GOLDEN)

    assert result.exit_code == 0
    assert f"{GOLDEN}/plan.json: valid: plan\n" in result.stdout
    assert f"{GOLDEN}/trace_r0_p4242.json: valid: trace, 41 records\n" in result.stdout
    assert len(result.stdout.splitlines()) == len(list(GOLDEN.iterdir()))


def test_problems_are_told_with_file_and_line(trace: TraceBuilder) -> None:
    """The first of each file; then how many more there are, and how to see them."""
    path = _shard(trace, *range(60), *range(0, 60, 2)[::-1])

    result = _run("validate", path)

    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[0] == f"{path}:62: goes back to step 58 from step 59"
    assert lines[-2] == f"{path}: 10 more problems (--all shows them)"
    assert lines[-1] == f"{path}: not valid: trace, 92 records, 30 problems"
    assert len(_run("validate", "--all", path).stdout.splitlines()) == 31


def test_files_that_are_not_ours_are_passed_over(trace: TraceBuilder) -> None:
    """In a folder; told on request. Named, such a file is a problem."""
    _shard(trace, 0)
    other = trace.folder / "config.json"
    other.write_text('{"lr": 1}')

    assert "config" not in _run("validate", trace.folder).stdout
    assert f"{other}: passed over, it is no document" in _run("validate", "-v", trace.folder).stderr
    assert _run("validate", other).exit_code == 1


def test_what_cannot_be_validated_is_no_problem_of_a_file(
    trace: TraceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2: a path that is not there, one that cannot be read, no validator."""
    shard = _shard(trace, 0)
    loop = trace.folder / "trace_loop.json"
    loop.symlink_to(loop)

    missing, unreadable = _run("validate", trace.folder / "no"), _run("validate", trace.folder)
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schema._validator.cache_clear()
    without = _run("validate", shard)
    schema._validator.cache_clear()

    assert [each.exit_code for each in (missing, unreadable, without)] == [2, 2, 2]
    assert "there is no such file or folder" in missing.stderr
    assert "cannot be read" in unreadable.stderr
    assert f"{shard}: valid" in unreadable.stdout
    assert "pip install 'traincheck-trace-schema[validate]'" in without.stderr


def test_what_is_found_can_be_read_by_programs(trace: TraceBuilder) -> None:
    """Each finding is a line of JSON, with its severity; all of them, and nothing else."""
    path = _shard(trace, *range(0, 60, 2), *range(0, 60, 2)[::-1])
    _shard_named(trace, "mytrace.json", run_id="other")

    result = _run("validate", "--json", trace.folder)

    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert result.stderr == ""
    assert {each["path"] for each in found} == {
        str(path),
        str(trace.folder / "mytrace.json"),
        str(trace.folder),
    }
    kinds = [each["severity"] for each in found]
    assert (kinds.count("problem"), kinds.count("hint"), kinds.count("note")) == (29, 1, 1)
    assert all(each.keys() == {"path", "line", "severity", "what"} for each in found)


def test_shards_of_a_run_are_held_against_one_another(trace: TraceBuilder) -> None:
    """A copy of a shard makes a rank that is there twice."""
    path = _shard(trace, 0)
    copy = trace.folder / "trace_r0_copy.json"
    copy.write_bytes(path.read_bytes())

    result = _run("validate", trace.folder)

    assert result.exit_code == 1
    assert f"{copy}: is a second main shard of rank 0 in restart 0 of run 'run'" in result.stdout


def test_hints_are_told_and_nothing_fails(trace: TraceBuilder) -> None:
    """What is legal leaves the exit code 0."""
    path = trace.write("trace_r0.json", [{**trace.header(), "restrat": 1}])

    result = _run("validate", path)

    assert result.exit_code == 0
    assert result.stdout.startswith(f"hint: {path}:1: field 'restrat' is not known; is 'restart' ")
    assert result.stdout.endswith(": valid: trace, 1 record, 1 hint\n")


def test_a_claim_is_never_cut(trace: TraceBuilder) -> None:
    """It is wrapped below itself: the words of it are all there."""
    name = "module." * 12 + "function"
    path = trace.folder / "invariants.json"
    claim = f"Each call of {name} is followed by one of {name} with the same arguments"
    params = (APIParam(api_full_name=name),)
    made = invariant_id("R", params, {})
    write_invariants(
        path,
        [Invariant(id=made, relation="R", text_description=claim, params=params, precondition={})],
    )

    shown = _run("show", path).stdout

    assert claim in " ".join(shown.split())


def test_show_tells_what_is_in_a_trace() -> None:
    """Facts, and a table of each thing."""
    result = _run("show", GOLDEN / "trace_r0_p4242.json")

    assert result.exit_code == 0
    assert result.stdout.startswith("Trace of run 20260114-093000-7c1f\n")
    for title in ("Processes", "Stages", "Functions", "Variables", "Gaps"):
        assert f"\n{title}\n" in result.stdout
    assert "    1          torch.nn.Dropout.forward\n" in result.stdout
    assert "  parameter       1        2  10x4    data, dtype, grad, requires_grad, shape\n" in (
        result.stdout
    )
    assert "incomplete: rank 1 of 2 left no trace\n" in result.stdout


def test_how_a_trace_was_sampled_and_what_it_cost_is_shown(trace: TraceBuilder) -> None:
    """The policy in words, the share of the run, and what could not be observed."""
    times = {"seconds": 40, "recording_seconds": 2, "starting_seconds": 0.3}
    footer = {"kind": "footer", "records": {}, **times}
    header = trace.header(
        sampling={"interval": 8, "warm_up": 10, "budget": 5},
        recording={"mode": "full", "not_observed": {"model": "compiled"}},
    )
    trace.write("trace_r0.json", [header, footer])

    shown = " ".join(_run("show", trace.folder).stdout.split())

    assert "sampling the first 10 steps, then 1 of 8; fewer where recording would take" in shown
    assert "more than 5% of the time" in shown
    assert "cost 5.0% of the run (2 s of 40 s), and 0.3 s to begin" in shown
    assert "Not observed what why model compiled" in shown


def test_ranks_that_a_process_started_are_shown_rather_than_that(trace: TraceBuilder) -> None:
    """Its steps and functions are none; it stands among the processes."""
    trace.shard(name="trace_r0_p1.json", pid=1)
    joined = trace.header(pid=2, recording={"mode": "full", "functions": ["f", "g"]})
    stage = {"kind": "stage", "thread": 1, "seq": 0, "step": -1, "stage": "training"}
    records = (joined, stage, *trace.steps(*range(20)))
    trace.shard(*records, name="trace_r0_p2.json", pid=2, role="worker")

    shown = [" ".join(line.split()) for line in _run("show", trace.folder).stdout.splitlines()]

    assert "steps 0 to 19, 20 of them recorded" in shown
    assert "recording in full: 2 functions" in shown
    assert "training 1 20 0 to 19 0" in shown
    assert any(line.startswith("0 main here 1 0 0 ") for line in shown)


def test_a_screen_fits(trace: TraceBuilder) -> None:
    """No line is wider than the terminal, however long the names are; --all shows all."""
    calls = [
        {"kind": "call_begin", "thread": 1, "seq": n, "step": 0, "id": n, "function": f"x{n}" * 40}
        for n in range(30)
    ]
    trace.shard(*calls, host="h" * 100)

    result = _run("show", trace.folder)

    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "Functions (10 of 30; --all shows the rest)" in result.stdout
    assert len(_run("show", "--all", trace.folder).stdout.splitlines()) == (
        len(result.stdout.splitlines()) + 20
    )
    assert "Functions (3 of 30; " in _run("show", "--top", "3", trace.folder).stdout


def test_folders_of_one_run_are_shown_as_one(trace: TraceBuilder) -> None:
    """Other runs have screens of their own."""
    trace.shard(name="a/trace_0.json", world_size=2)
    trace.shard(name="b/trace_1.json", rank=1, world_size=2)
    trace.shard(name="c/trace_0.json", run_id="other")

    folders = [trace.folder / name for name in "abc"]
    result = _run("show", *folders)

    heads = [line for line in result.stdout.splitlines() if line.startswith("Trace of run")]
    assert heads == ["Trace of run run", "Trace of run other"]


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("invariants.json", "4 invariants"),
        ("plan.json", "plan 5f0c9ad1b3e27746"),
        ("violations_summary.json", "1 of 120 invariants failed"),
        ("failed.log", "1 verdict: 1 failed"),
        ("not_triggered.log", "1 verdict: 1 not triggered"),
        ("invariants.suppressed.jsonl", "2 suppressions"),
        ("progress.json", "a check that goes on"),
    ],
)
def test_show_tells_what_is_in_other_documents(name: str, head: str) -> None:
    """Each begins with the most telling number, and fits."""
    result = _run("show", GOLDEN / name)

    assert result.exit_code == 0
    assert result.stdout.startswith(f"{GOLDEN / name}: {head}\n")
    assert all(len(line) <= 80 for line in result.stdout.splitlines()[1:])


def test_show_refuses_what_is_not_ours(trace: TraceBuilder) -> None:
    """By one line, and with exit code 2; strictly, a damaged trace too."""
    other = trace.folder / "notes.txt"
    other.write_text("Dear diary\n")
    trace.write("trace_r0.json", [trace.header(), {"kind": 7}])

    strict, odd = _run("show", "--strict", trace.folder), _run("show", other)

    assert (strict.exit_code, odd.exit_code) == (2, 2)
    assert strict.stderr.startswith(f"error: {trace.folder}/trace_r0.json:2: ")
    assert odd.stderr.startswith(f"error: {other}: is no document of TrainCheck; traces are named ")
    assert _run("show", trace.folder).exit_code == 0


def test_an_empty_trace_has_a_message(trace: TraceBuilder) -> None:
    """Nothing was recorded, and the message says so; a header alone is shown."""
    (trace.folder / "trace_r0.json").touch()

    assert "has no records, the program ended before it wrote any" in (
        _run("show", trace.folder).stderr
    )
    trace.write("trace_r0.json", [trace.header()])
    assert "  steps      none\n" in _run("show", trace.folder).stdout


def test_old_files_are_migrated(tmp_path: Path) -> None:
    """What was written is told, and what could not be; what was written is valid."""
    params = [{"param_type": "APIParam", "api_full_name": name} for name in ("m.f", "m.g")]
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(
        json.dumps(
            {
                "text_description": "f before g",
                "relation": "FunctionCoverRelation",
                "params": params,
                "precondition": {"func_cover": {"preconditions": [{"clauses": "Unconditional"}]}},
            }
        )
    )

    result = _run("migrate", old, new)

    assert result.exit_code == 0, result.output
    assert f"wrote {new}\n" in result.stdout
    assert _run("validate", new).exit_code == 0
    assert _run("migrate", tmp_path / "none", new).exit_code == 2
    assert _run("validate", old).stdout.startswith(f"{old}:1: is of TrainCheck 0.x")


def test_schemas_are_printed_as_they_are() -> None:
    """What is printed is JSON Schema, and can go into a file."""
    result = _run("schema", "trace")

    assert json.loads(result.stdout)["$id"] == "urn:traincheck:schema:trace:1.0"
    assert _run("schema", "plan", "--of-version", "1.0").exit_code == 0
    assert "must be one of trace, invariants" in _run("schema", "poem").stderr
    assert "must be one of 1.0; got 3" in _run("schema", "plan", "--of-version", "3").stderr


@pytest.mark.parametrize("command", ["validate", "show", "migrate", "schema"])
def test_help_has_examples(command: str) -> None:
    """Each command shows how it is used."""
    result = _run(command, "--help")

    assert result.exit_code == 0
    assert f"\n    traincheck-schema {command} " in result.stdout


def test_help_imports_nothing_that_is_slow() -> None:
    """It answers at once: neither the classes nor the validator are loaded."""
    code = (
        "import sys; from traincheck_trace_schema.commands.group import main; "
        "main(['validate', '--help'], standalone_mode=False); "
        "print({'cattrs', 'jsonschema_rs', 'traincheck_trace_schema.records'} & {*sys.modules})"
    )

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.endswith("set()\n")


@pytest.mark.parametrize("command", [[SCRIPT], [UMBRELLA, "schema"]])
def test_the_scripts_are_installed(command: list[str | Path], trace: TraceBuilder) -> None:
    """Both names run the same command, with its exit codes."""
    good, bad = _shard(trace, 0), trace.write("trace_bad.json", [trace.header(), {"kind": 7}])

    codes = [
        subprocess.run([*command, "validate", path], capture_output=True, check=False).returncode
        for path in (good, bad, trace.folder / "no")
    ]

    assert codes == [0, 1, 2]
