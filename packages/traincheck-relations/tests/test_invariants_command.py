"""The command `traincheck invariants`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from traincheck_relations.commands.group import main
from traincheck_trace_schema.invariant_file import read_invariants, write_invariants
from traincheck_trace_schema.invariant_id import invariant_id
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
    Params,
    VarTypeParam,
)
from traincheck_trace_schema.occasion import Place, Reference
from traincheck_trace_schema.suppression_file import read_suppressions

SCRIPT = Path(sys.executable).parent / "traincheck"
GROUP = "parent_func_call_pre"
STEP, BACKWARD = "torch.optim.Optimizer.step", "torch.Tensor.backward"
SUPPRESSED = Path("invariants.suppressed.jsonl")


def make(function: str, condition: str = "", **fields: Any) -> Invariant:
    clause = Clause(type="constant", prop_name=f"var.{condition}", values=(True,))
    group = ConditionGroup(
        preconditions=(Conjunction(clauses=(clause,) if condition else "Unconditional"),)
    )
    params: Params = (
        APIParam(api_full_name=function),
        VarTypeParam(var_type="torch.nn.Parameter", attr_name="data"),
    )
    words = " when the variable is held by an optimizer" if condition == "held" else ""
    given: dict[str, Any] = {
        "id": invariant_id("APIContainRelation", params, {GROUP: group}),
        "text_description": f"Each call of {function} changes the data of each parameter{words}",
        "relation": "APIContainRelation",
        "params": params,
        "precondition": {GROUP: group},
        "num_positive_examples": 1200,
        "num_negative_examples": 8,
        "runs": ("monday",),
        "tracker": "subclass",
    }
    return Invariant(**{**given, **fields})


FIRST = Reference(run="monday", at=Place(step=0, stage="training", rank=0, source="train.py:12"))
MOVES = make(STEP, "held", likelihood=0.75, reference=FIRST)
REACHES = make(BACKWARD, num_positive_examples=40, likelihood=0.5)
LOSS = make("app.loss", num_positive_examples=3, likelihood=0.25)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with two files that overlap."""
    monkeypatch.chdir(tmp_path)
    write_invariants(Path("invariants.json"), [MOVES, REACHES, LOSS])
    write_invariants(Path("other.json"), [make(STEP, runs=("tuesday",)), REACHES])


def run(*args: str | Path, columns: int = 80) -> Result:
    environment = {"COLUMNS": str(columns)}
    return CliRunner(env=environment).invoke(main, list(map(str, args)), prog_name="traincheck")


def on_terminal(*args: str, columns: int) -> str:
    """Return what the installed command prints to a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    with subprocess.Popen(
        [SCRIPT, "invariants", *args], stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(theirs)
        told = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux says so where the other side is closed
                break
            if not part:
                break
            told += part
    os.close(ours)
    assert process.returncode == 0
    return told.decode()


def test_a_list_has_a_line_an_invariant_in_a_pipe() -> None:
    """Whole, without colours, whatever the width."""
    result = run("list", "invariants.json", columns=20)

    lines = result.stdout.splitlines()
    assert lines[0].split() == ["id", "relation", "likelihood", "occasions", "claim"]
    assert len(lines) == 4
    assert lines[1].startswith(f"{MOVES.id[:8]}  APIContainRelation  0.75            1,200  Each ")
    assert lines[1].endswith(MOVES.text_description)
    assert "\x1b" not in result.output
    assert result.stderr == ""


@pytest.mark.parametrize("columns", [46, 79, 110, 200])
def test_a_list_fits_the_terminal(columns: int) -> None:
    """Sentences are wrapped and never cut, beside the rest or, where it is narrow, below it."""
    told = on_terminal("list", "invariants.json", columns=columns)

    plain = told.replace("\x1b[1m", "").replace("\x1b[0m", "")
    lines = plain.splitlines()
    assert plain != told  # the heads are bold
    assert max(map(len, lines)) <= columns
    assert REACHES.text_description in " ".join(" ".join(lines[1:]).split()).replace(
        f"{REACHES.id[:8]} APIContainRelation 0.50 40 ", ""
    )
    assert sum(line.startswith("  ") for line in lines) >= 3


def test_a_list_can_be_chosen_from() -> None:
    """A note says how many there are, and not in the pipe."""
    result = run("list", "invariants.json", "--function", "*.step", "*.backward", "--grep", "HELD")

    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == [MOVES.id[:8]]
    assert result.stderr == "note: invariants.json: 1 of 3 invariants\n"
    nothing = run("list", "invariants.json", "--relation", "No*")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == "note: invariants.json: 0 of 3 invariants\n"


def test_a_list_as_json_is_an_invariant_file() -> None:
    """It tells also what is suppressed, which readers of invariants pass over."""
    run("suppress", "invariants.json", BACKWARD, "--reason", "known")

    result = run("list", "invariants.json", "--json", "--min-likelihood", "0.5")

    Path("some.json").write_text(result.stdout)
    assert read_invariants([Path("some.json")]) == [MOVES, REACHES]
    told = [json.loads(line).get("suppressed") for line in result.stdout.splitlines()]
    assert told == [None, "known"]


def test_show_tells_everything() -> None:
    """The claim, its condition in words, what it is about, where it is from, what it needs."""
    run("suppress", "invariants.json", "*.step", "--reason", "the head is frozen")

    result = run("show", "invariants.json", MOVES.id[:6], REACHES.id, columns=200)

    first, second = result.stdout.split("\n\n")
    facts = dict(line.split("  ", 1) for line in re.sub("\n {5,}", " ", first).split("\n  ")[1:])
    facts = {label: text.strip() for label, text in facts.items()}
    assert first.splitlines()[0] == MOVES.id
    assert facts["claim"] == f"Each call of {STEP} changes the data of each parameter"
    assert facts["holds"] == "when the variable is held by an optimizer"
    assert facts["relation"] == "APIContainRelation"
    assert facts["params"] == (
        f"APIParam(api_full_name={STEP}); VarTypeParam(var_type=torch.nn.Parameter, attr_name=data)"
    )
    assert facts["held on"] == "1,200 occasions; 8 on which it did not are excluded"
    assert facts["runs"] == "1: monday"
    assert facts["held first"] == "in run monday, step 0 (training), rank 0, at train.py:12"
    assert facts["likelihood"].startswith("0.75 ")
    assert f"calls of {STEP}" in facts["needs"]
    assert f"the variables around {STEP}" in facts["needs"]
    assert facts["suppressed"] == "the head is frozen (by '*.step')"
    assert second.startswith(REACHES.id)
    assert "  holds       always\n" in second
    assert "suppressed" not in second


def test_show_tells_why_needs_are_not_known() -> None:
    """A relation that is not installed here does not keep the rest from being told."""
    write_invariants(Path("odd.json"), [make(STEP, relation="OddRelation", id="odd")])

    result = run("show", "odd.json", "odd", columns=200)

    assert result.exit_code == 0
    assert "  needs     can't be told: No relation 'OddRelation' is installed" in result.stdout


def test_a_difference_is_told_with_the_exit_code_of_diff() -> None:
    """What is only here, only there, and under other conditions; then the sum."""
    result = run("diff", "invariants.json", "other.json")

    assert result.exit_code == 1
    only, changed, before, after, total = result.stdout.splitlines()
    assert only == f"- {LOSS.id[:8]}  {LOSS.text_description}"
    assert changed == f"~ Each call of {STEP} changes the data of each parameter"
    assert before == f"  - {MOVES.id[:8]}  when the variable is held by an optimizer"
    assert after == f"  + {make(STEP).id[:8]}  always"
    assert total == (
        "1 only in invariants.json, 0 only in other.json, 1 under other conditions, 1 the same"
    )
    back = run("diff", "other.json", "invariants.json").stdout.splitlines()
    assert back[0] == f"+ {LOSS.id[:8]}  {LOSS.text_description}"
    same = run("diff", "other.json", "other.json")
    assert (same.exit_code, same.stdout) == (0, "No difference: 2 the same\n")


def test_a_difference_is_told_to_programs() -> None:
    """By whole ids."""
    result = run("diff", "--json", "invariants.json", "other.json")

    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "only_in_a": [LOSS.id],
        "only_in_b": [],
        "changed": [
            {
                "claim": f"Each call of {STEP} changes the data of each parameter",
                "a": [MOVES.id],
                "b": [make(STEP).id],
            }
        ],
        "same": 1,
    }


def test_files_are_merged() -> None:
    """The same file comes out of any order, and of merging again."""
    result = run("merge", "invariants.json", "other.json", "-o", "all.json")
    run("merge", "other.json", "invariants.json", "-o", "back.json")
    again = run("merge", "all.json", "other.json", "-o", "all.json", "--force")

    assert result.stdout == "all.json: 4 invariants, of 5 in 2 files\n"
    assert Path("all.json").read_bytes() == Path("back.json").read_bytes()
    assert again.exit_code == 0
    merged = {each.id: each for each in read_invariants([Path("all.json")])}
    assert merged.keys() == {MOVES.id, REACHES.id, LOSS.id, make(STEP).id}


def test_a_file_is_filtered() -> None:
    """What is chosen is kept, or with --invert the rest; the sum of both is the whole."""
    asked = ["--min-positive", "10", "--relation", "API*"]
    result = run("filter", "invariants.json", *asked, "-o", "few.json")
    run("filter", "invariants.json", *asked, "--invert", "-o", "rest.json")

    assert result.stdout == "few.json: 2 of 3 invariants\n"
    assert read_invariants([Path("few.json")]) == [MOVES, REACHES]
    assert read_invariants([Path("rest.json")]) == [LOSS]
    assert "warning: no invariant is left" in (
        run("filter", "few.json", "--id", MOVES.id, REACHES.id, "--invert", "-o", "no").stderr
    )


@pytest.mark.parametrize("command", [["merge"], ["filter", "--grep", "loss"]])
@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("invariants.json", "is one of the files to read"),
        ("./link.json", "is one of the files to read"),
        ("other.json", "is there already"),
        ("no/where.json", "its folder does not exist"),
    ],
)
def test_nothing_is_overwritten_silently(command: list[str], output: str, reason: str) -> None:
    """Neither an input, by whatever name, nor another file."""
    Path("link.json").symlink_to("invariants.json")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}

    result = run(*command, "invariants.json", "-o", output)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {Path(output)}: {reason}")
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_what_cannot_be_written_leaves_the_file_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk in the middle: the old file, whole, and nothing else."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = Path("other.json").read_bytes()
    monkeypatch.setattr("traincheck_trace_schema.files.dumps", fail)

    result = run("merge", "invariants.json", "-o", "other.json", "--force")

    assert result.exit_code == 2
    assert result.stderr == "error: other.json: cannot be written: No space left on device\n"
    assert Path("other.json").read_bytes() == before
    assert sorted(path.name for path in Path().iterdir()) == ["invariants.json", "other.json"]


def test_suppressions_are_kept_beside_the_file() -> None:
    """By whole id or by pattern, sorted, each with its reason; a new reason takes the old place."""
    one = run("suppress", "invariants.json", LOSS.id[:6], "--reason", "ticket 12")
    run("suppress", "invariants.json", "torch.optim.*", "--reason", "frozen")
    run("suppress", "invariants.json", LOSS.id, "--reason", " ticket 13 ")

    assert one.stdout.splitlines() == [
        f"suppressed by '{LOSS.id}': 1 of 3 invariants",
        f"  {LOSS.text_description}",
        f"kept in {SUPPRESSED}",
    ]
    kept = {each.pattern: each.reason for each in read_suppressions(SUPPRESSED)}
    assert kept == {LOSS.id: "ticket 13", "torch.optim.*": "frozen"}
    told = run("suppress", "invariants.json", "--list").stdout.splitlines()
    assert told[0].split() == ["invariants", "pattern", "reason"]
    assert [line.split(maxsplit=2) for line in told[1:]] == [
        ["1", LOSS.id, "ticket 13"],
        ["1", "torch.optim.*", "frozen"],
    ]


def test_suppressions_are_removed() -> None:
    """The last takes the file along."""
    run("suppress", "invariants.json", LOSS.id, "*.step", "--reason", "known")

    first = run("suppress", "invariants.json", "--remove", "*.step")
    last = run("suppress", "invariants.json", LOSS.id[:4], "--remove")

    assert first.stdout == f"no longer suppressed by '*.step'\n{SUPPRESSED}: 1 left\n"
    assert last.exit_code == 0
    assert not SUPPRESSED.exists()
    assert run("suppress", "invariants.json", "--list").stdout == (
        "invariants.json: nothing is suppressed\n"
    )


def test_suppressing_everything_is_warned_of() -> None:
    """Checking would refuse it."""
    result = run("suppress", "invariants.json", "API*", "--reason", "all")

    assert result.exit_code == 0
    assert "warning: every invariant is suppressed" in result.stderr


def test_suppressions_that_are_left_behind_are_told() -> None:
    """With the command that takes them along, which works since files may be joined."""
    run("suppress", "invariants.json", BACKWARD, "--reason", "known")

    result = run("filter", "invariants.json", "--min-positive", "9", "-o", "few.json")

    assert f"cat {SUPPRESSED} > few.suppressed.jsonl" in result.stderr
    assert run("filter", "other.json", "--grep", "x", "-o", "no.json").stderr == (
        "warning: no invariant is left\n"
    )


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["list", "missing.json"], "Invalid value for 'FILE': File 'missing.json' does not exist"),
        (["list", "plan.json"], "plan.json:1: is no JSON"),
        (["list", "trace.json"], "trace.json:1: field 'schema' must be 'traincheck.invariants'"),
        (["diff", "invariants.json", "newer.json"], "newer.json:1: is traincheck.invariants versi"),
        (["merge", "invariants.json", "newer.json", "-o", "x"], "newer.json:1: is traincheck.inva"),
        (["show", "invariants.json", "zz"], "invariants.json: nothing here has the id 'zz'"),
        (["show", "twins.json", "ab"], "twins.json: 2 ids begin with 'ab': abc, abd; give more"),
        (["filter", "twins.json", "-o", "x", "--id", "ab"], "twins.json: 2 ids begin with 'ab'"),
        (["filter", "twins.json", "-o", "x"], "Nothing says which invariants to keep"),
        (["list", "twins.json", "--grep", "("], "--grep: '(' is no regular expression: missing )"),
        (["suppress", "twins.json", "ab", "--reason", "r"], "twins.json: 2 ids begin with 'ab'"),
        (["suppress", "twins.json", "q*", "--reason", "r"], "twins.json: no invariant has the id"),
        (["suppress", "twins.json", "abc"], "A suppression needs a reason; give one with --reason"),
        (["suppress", "twins.json", "abc", "--reason", " "], "A suppression needs a reason; give "),
        (["suppress", "twins.json", "--reason", "r"], "No id or pattern is given; --list shows"),
        (["suppress", "twins.json", "--list", "abc"], "--list takes nothing else than FILE"),
        (["suppress", "twins.json", "--remove", "abc", "--reason", "r"], "--remove takes no --re"),
        (["suppress", "twins.json", "--remove", "abc"], "twins.suppressed.jsonl: nothing here has"),
        (["suppress", "invariants.json.gz", "--list"], "invariants.suppressed.jsonl:1: field 're"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(args: list[str], reason: str) -> None:
    """Whatever is wrong with the files or with what is asked of them."""
    Path("plan.json").write_text('{\n  "schema": "traincheck.plan"\n}\n')
    Path("trace.json").write_text('{"kind": "header", "schema": "traincheck.trace"}\n')
    text = Path("other.json").read_text("utf-8")
    Path("newer.json").write_text(text.replace('"version":"1.0"', '"version":"2.0"'))
    write_invariants(Path("twins.json"), [make(STEP, id="abc"), make(BACKWARD, id="abd")])
    if args[1].endswith(".gz"):
        write_invariants(Path(args[1]), [MOVES])
        SUPPRESSED.write_text(
            '{"schema": "traincheck.suppressions", "version": "1.0", "pattern": "x"}'
        )
    before = sorted(Path().iterdir())

    result = run(*args)

    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"error: {reason}")
    assert len(result.stderr.splitlines()) == 1
    assert sorted(Path().iterdir()) == before


def test_old_invariants_are_managed_too() -> None:
    """What can't be expressed is told; what is written is of 1.0."""
    params = [{"param_type": "APIParam", "api_full_name": name} for name in ("m.f", "m.g")]
    condition = {"parent_func_call_pre": {"preconditions": [{"clauses": "Unconditional"}]}}
    old = {"text_description": "f calls g", "relation": "APIContainRelation", "params": params}
    odd = {"text_description": "odd", "relation": "APIContainRelation", "params": [{}]}
    lines = [{**each, "precondition": condition} for each in (old, odd)]
    Path("old.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    listed = run("list", "old.json")
    merged = run("merge", "old.json", "invariants.json", "-o", "all.json")

    assert listed.exit_code == merged.exit_code == 0, listed.output + merged.output
    assert "note: old.json:2: left out" in listed.stderr
    assert "m.f" in listed.stdout
    assert '"version":"1.0"' in Path("all.json").read_text("utf-8").splitlines()[-1]
    assert len(read_invariants([Path("all.json")])) == 4


def test_a_newer_minor_version_is_read_and_written_as_this_one() -> None:
    """What is not known here can't be kept, which is told."""
    text = Path("other.json").read_text("utf-8")
    Path("newer.json").write_text(text.replace('"version":"1.0"', '"version":"1.7","mood":1'))

    result = run("filter", "newer.json", "--function", BACKWARD, "-o", "x.json")

    assert result.exit_code == 0, result.output
    assert "note: read version 1.7, written is 1.0" in result.stderr
    assert read_invariants([Path("x.json")]) == [REACHES]


@pytest.mark.parametrize("command", ["list", "show", "diff", "merge", "filter", "suppress"])
def test_help_has_examples(command: str) -> None:
    """Each command shows how it is used."""
    result = run(command, "--help")

    assert result.exit_code == 0
    assert f"\n    traincheck invariants {command} " in result.stdout


def test_help_loads_nothing_that_is_slow() -> None:
    """It answers at once, and works where torch is not installed."""
    code = (
        "import sys; from traincheck_relations.commands.group import main; "
        "main(['suppress', '--help'], standalone_mode=False); "
        "print({'cattrs', 'numpy', 'torch'} & {*sys.modules})"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.endswith("set()\n")


def test_the_command_is_installed_and_ends_quietly_in_a_pipe() -> None:
    """As a subcommand of `traincheck`, with its exit codes; `| head` is no error."""
    codes = [
        subprocess.run([SCRIPT, "invariants", *args], capture_output=True, check=False).returncode
        for args in (
            ["diff", "other.json", "other.json"],
            ["diff", "invariants.json", "other.json"],
            ["diff", "invariants.json", "missing.json"],
        )
    ]
    many = [make(f"app.f{number}") for number in range(3000)]
    write_invariants(Path("many.json"), many)
    piped = subprocess.run(  # noqa: S602  a pipe is what is tested
        f"{SCRIPT} invariants list many.json | head -n 2",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )

    assert codes == [0, 1, 2]
    assert len(piped.stdout.splitlines()) == 2
    assert piped.stderr == ""
