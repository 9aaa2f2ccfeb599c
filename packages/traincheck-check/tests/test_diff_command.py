"""`traincheck diff`: what it prints, writes and exits with."""

import re
import sys
import tracemalloc

import pytest
from click.testing import CliRunner

from traincheck_check.commands.diff import _KINDS, diff
from traincheck_check.comparing.comparison import compare
from traincheck_check.comparing.result import KINDS, Comparison
from traincheck_relations.testing.traces import TraceBuilder, tensor, train
from traincheck_trace_schema.codec import loads, structure
from traincheck_trace_schema.reading import open_run

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def told(write_run):
    """Return a function that runs the command on two runs, and what they are."""
    write_run("a", 6)
    write_run("same", 6)
    write_run("stuck", 6, stuck=("model.fc2.weight",), since=3)
    write_run("cut", 4, complete=False)

    def run(*arguments, code=None):
        result = CliRunner().invoke(diff, [*map(str, arguments)])
        assert code in (None, result.exit_code), result.output
        return result

    return run


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("same", (), 0),
        ("stuck", (), 1),
        ("stuck", ("--only", "calls,arguments"), 0),
        ("stuck", ("--ignore", "parameters"), 0),
        ("stuck", ("--steps", ":2"), 0),
        ("stuck", ("--steps", "3"), 1),
        ("stuck", ("--steps", "3:"), 1),
        ("stuck", ("--rank", "0"), 1),
        ("same", ("--rank", "1"), 3),
        ("same", ("--steps", "6:"), 3),
        ("same", ("--steps", "5:"), 0),
        ("cut", (), 3),
        ("cut", ("--steps", ":3"), 3),
        ("cut", ("--steps", ":2"), 0),
        ("nowhere", (), 2),
        ("same", ("--steps", "x"), 2),
        ("same", ("--steps", "5:3"), 2),
        ("same", ("--steps", ":"), 2),
        ("same", ("--only", "weights"), 2),
        ("same", ("--only", "calls", "--ignore", "calls"), 2),
        ("same", ("--atol", "-1"), 2),
        ("same", ("--html", "no/such/folder/page.html"), 2),
    ],
)
def test_the_exit_code_tells_the_verdict(told, folder, name, options, code):
    """Same, different, unusable, and what says too little."""
    result = told(folder / "a", folder / name, *options, code=code)

    assert ("error: " in result.output) == (code == 2)
    assert "Traceback" not in result.output


def test_the_first_line_is_the_verdict_and_then_comes_what_parts_first(told, folder):
    """What a person reads first is enough to start with."""
    lines = told(folder / "a", folder / "stuck", code=1).output.splitlines()

    what = "model.fc2.weight differs after torch.optim.SGD.step: A changes it, B does not"
    assert lines[0] == f"They part in step 3 on rank 0: {what}."
    assert f"1. Parameters, in step 3, rank 0: {what}" in lines
    assert any(re.fullmatch(r" +In A: +.*\(train\.py:10\)", line) for line in lines)
    assert "   3 to 5           1          -        -      -       -" in lines
    assert lines[-1].startswith("Compared: 6 steps on 1 rank: ")


def test_the_document_is_what_its_class_says(told, folder):
    """It is read back as what it was."""
    result = told(folder / "a", folder / "stuck", "--format", "json", code=1)
    document = loads(result.stdout)

    comparison = structure(Comparison, document)
    assert (document["schema"], document["version"]) == ("traincheck.comparison", "1.0")
    assert comparison.verdict == "differ"
    assert comparison.divergences[0].names == ("model.fc2.weight",)
    assert comparison.kinds == KINDS


@pytest.mark.usefixtures("told")
def test_a_closed_standard_output_is_no_fault(folder, monkeypatch):
    """As a shell closes it by `>&-`: the exit code tells the verdict all the same."""
    context = diff.make_context("diff", [str(folder / "a"), str(folder / "stuck")])
    monkeypatch.setattr(sys, "stdout", None)

    assert context.invoke(diff.callback, **context.params) == 1


def _hostile(folder, name, content):
    trace = TraceBuilder(folder / name, run_id=name)
    shard = trace.rank()
    variable = shard.variable(HOSTILE, data=tensor("start"))
    shard.step(0)
    with shard.call(HOSTILE, {HOSTILE: HOSTILE + content}) as call:
        shard.observe("begin", call, HOSTILE)
        shard.change(variable, during=call, data=tensor(content))
        shard.observe("end", call, HOSTILE)
    trace.write()
    return folder / name


def test_the_page_is_one_file_that_is_safe_with_hostile_names(told, folder):
    """It loads nothing, runs nothing, and shows names as they are."""
    a, b = _hostile(folder, "ha", "x"), _hostile(folder, "hb", "y")
    result = told(a, b, "--html", folder / "page.html", code=1)
    page = (folder / "page.html").read_text()

    assert page.startswith("<!DOCTYPE html>")
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "\x1b[31m" not in result.output.replace("\\x1b", "")
    assert "\u202e" not in result.output


def test_the_page_tells_what_the_terminal_tells(told, folder):
    """The verdict, what parts, and how it spread."""
    told(folder / "a", folder / "stuck", "--html", folder / "page.html", code=1)
    page = (folder / "page.html").read_text()

    assert "They part in step 3 on rank 0: model.fc2.weight differs after" in page
    assert '<th scope="row">3 to 5</th><td class="n">1</td>' in page
    told(folder / "a", folder / "same", "--html", folder / "page.html", code=0)
    assert "The same for all 6 steps that both recorded" in (folder / "page.html").read_text()


def test_a_strict_comparison_refuses_a_line_that_is_no_record(told, folder):
    """Without it, the line is left out, told, and the trace is incomplete."""
    (shard,) = (folder / "same").glob("trace_*")
    lines = shard.read_text().splitlines(keepends=True)
    shard.write_text("".join([*lines[:-1], "no record\n", lines[-1]]))

    assert "is no JSON" in told(folder / "a", folder / "same", "--strict", code=2).output
    assert "skipped" in told(folder / "a", folder / "same", code=3).output


def test_the_kinds_of_the_options_are_those_of_the_document():
    """`--help` does not import the document."""
    assert _KINDS == KINDS


def test_memory_does_not_grow_with_the_length_of_the_runs(folder):
    """A window of both runs is held, and the variables."""
    peaks = []
    for steps in (50, 800):
        paths = []
        for name in "ab":
            trace = TraceBuilder(folder / f"{name}{steps}", run_id=name)
            train(trace.rank(), steps)
            paths.append(trace.write().parent)
        tracemalloc.start()
        assert compare(*map(open_run, paths), ("a", "b")).steps == steps
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] < 1.5 * peaks[0] + 500_000, peaks
