"""Traces that were made to harm: memory, time, names of things to import."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_trace_schema.codec import dumps
from traincheck_trace_schema.constraints import MAX_DEPTH
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading import Run, StreamItem, open_run

if TYPE_CHECKING:
    from conftest import TraceBuilder

_MEGABYTE = 2**20
_STEP = {"kind": "step", "thread": 1, "seq": 0, "step": 0, "sampled": True}
_CALL = {"kind": "call_begin", "thread": 1, "seq": 0, "step": 0, "id": 1, "function": "f"}


def _shard(trace: TraceBuilder, *lines: bytes, name: str = "trace_r0.json") -> Path:
    """Write a shard with these lines between two steps."""
    step = dumps(_STEP).encode()
    header, footer = dumps(trace.header()).encode(), dumps(trace.footer()).encode()
    content = b"\n".join([header, step, *lines, step, footer, b""])
    path = trace.folder / name
    path.write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    return path


def _kinds(run: Run) -> list[str]:
    return [item.record["kind"] for item in run.stream() if isinstance(item, StreamItem)]


def _call(value: str) -> bytes:
    return dumps({**_CALL, "args": {"x": 0}}).replace('"x":0', f'"x":{value}').encode()


def _deep(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


@pytest.mark.parametrize(
    "value",
    [
        _deep(MAX_DEPTH - 2),  # the record and its arguments are two levels
        '{"a":' * (MAX_DEPTH - 2) + "0" + "}" * (MAX_DEPTH - 2),
        "[" + "[]," * 5000 + "[]]",
        '"' + "[{" * 5000 + '"',
    ],
    ids=["lists", "objects", "wide", "text"],
)
def test_what_is_not_too_deep_is_read(trace: TraceBuilder, value: str) -> None:
    """Levels are counted, not brackets."""
    _shard(trace, _call(value))

    run = open_run([trace.folder])

    assert _kinds(run) == ["header", "step", "call_begin", "step", "footer"]
    assert run.notes() == ()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (_deep(MAX_DEPTH - 1), f"is nested more than {MAX_DEPTH} levels deep"),
        (
            '{"a":[],"b":' * MAX_DEPTH + "0" + "}" * MAX_DEPTH,
            f"is nested more than {MAX_DEPTH} levels deep",
        ),
        (
            "[" + "[]," * 5000 + _deep(MAX_DEPTH) + "]",
            f"is nested more than {MAX_DEPTH} levels deep",
        ),
        (_deep(5000), f"is nested more than {MAX_DEPTH} levels deep"),
        ('{"a":' * 100_000, f"is nested more than {MAX_DEPTH} levels deep"),
        ('"\\ud800"', "holds half of a surrogate pair, which is no character"),
        ('"\\uDFFF"', "holds half of a surrogate pair, which is no character"),
        ("9" * 5000, "has a number of 5000 digits"),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_what_no_reader_can_handle_is_told(
    trace: TraceBuilder, value: str, why: str, *, strict: bool
) -> None:
    """The line is skipped and the others are read; or, strictly, it is an error."""
    path = _shard(trace, _call(value))

    run = open_run([trace.folder], strict=strict)

    if strict:
        with pytest.raises(TraceError) as caught:
            _kinds(run)
        assert str(caught.value).startswith(f"{path}:3: {why}")
    else:
        assert _kinds(run) == ["header", "step", "step", "footer"]
        assert run.notes()[0].startswith(f"{path}:3: skipped: {why}")


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8\x88\x80\x80\x80"])
def test_what_is_no_utf_8_is_told(trace: TraceBuilder, bad: bytes) -> None:
    """Also what ujson takes for UTF-8: halves of surrogate pairs."""
    _shard(trace, _call('"ä"'), _call('"?"').replace(b"?", bad), _call('"\\ud83d\\ude00"'))

    run = open_run([trace.folder])

    assert _kinds(run).count("call_begin") == 2
    assert len(run.notes()) == 1


@pytest.mark.parametrize(
    "place",
    [
        {"step": -2},
        {"step": 2**63},
        {"step": True},
        {"step": 0.0},
        {"eval_pass": -1},
        {"eval_pass": None},
        {"eval_pass": 1, "eval_step": 2**62},
        {"eval_pass": 1, "eval_step": "0"},
    ],
)
def test_a_place_that_is_none_is_told(trace: TraceBuilder, place: dict[str, Any]) -> None:
    """Steps are integers from -1, and leave room for what comes after all of them."""
    _shard(trace, dumps({**_STEP, **place}).encode())

    run = open_run([trace.folder])

    assert _kinds(run) == ["header", "step", "step", "footer"]
    assert ":3: skipped: " in run.notes()[0]


_READ = """
    import resource
    from pathlib import Path
    from traincheck_trace_schema.reading import open_run
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + {megabytes} * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
    run = open_run([Path({folder!r})])
    print(sum(1 for _ in run.stream()))
"""


def _read_within(folder: Path, megabytes: int) -> int:
    """Read a trace in a process that may take so much memory for it; return how many items."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("only Linux says, and limits, how much memory a process takes")
    script = textwrap.dedent(_READ).format(folder=str(folder), megabytes=megabytes)
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    return int(result.stdout)


def _long_line(trace: TraceBuilder) -> None:
    _shard(trace, _call('"' + "x" * (100 * _MEGABYTE) + '"'))


def _long_line_of_lists(trace: TraceBuilder) -> None:
    _shard(trace, _call("[" + "[]," * (40 * _MEGABYTE) + "[]]"))


def _bomb_of_one_line(trace: TraceBuilder) -> None:
    _shard(trace, bytes(300 * _MEGABYTE), name="trace_r0.json.gz")


def _bomb_of_many_lines(trace: TraceBuilder) -> None:
    _shard(trace, b"\n" * 900_000, name="trace_r0.json.gz")


def _bomb_of_members(trace: TraceBuilder) -> None:
    path = _shard(trace, name="trace_r0.json.gz")
    content = path.read_bytes()
    path.write_bytes(gzip.compress(b"") * 5000 + content + gzip.compress(b"") * 100_000)


@pytest.mark.parametrize(
    "make",
    [_long_line, _long_line_of_lists, _bomb_of_one_line, _bomb_of_many_lines, _bomb_of_members],
)
def test_memory_is_bounded(trace: TraceBuilder, make: Any) -> None:
    """However long a line, or what a file unpacks to: what is around it is read."""
    make(trace)

    assert _read_within(trace.folder, megabytes=60) == 4 + 1  # records, and their window's end


def test_memory_does_not_grow_with_the_processes(trace: TraceBuilder) -> None:
    """Of hundreds that are read side by side, each keeps a piece at most, and no open file."""
    filler = [{**_STEP, "padding": "x" * 1000}] * 300
    for number in range(150):
        name = f"trace_w{number}.json"
        trace.shard(*filler, *trace.steps(1), name=name, role="worker")
    trace.shard(*filler, *trace.steps(1))

    assert _read_within(trace.folder, megabytes=60) > 150 * 300


def test_nothing_that_a_trace_names_is_imported_or_run(trace: TraceBuilder) -> None:
    """Names of modules, types, functions and files in documents stay names."""
    victims = ["antigravity", "this", "os.system", "subprocess.Popen", "builtins.eval"]
    values = [
        {"object": {"type": name, "name": name, "attributes": {"__reduce__": name}}}
        for name in victims
    ]
    calls = [
        {**_CALL, "id": number, "function": name, "args": {"x": value}, "self": value}
        for number, (name, value) in enumerate(zip(victims, values, strict=True))
    ]
    functions = [
        {"kind": "function", "thread": 1, "seq": 0, "step": 0, "name": name, "bases": victims}
        for name in victims
    ]
    trace.shard(*functions, *calls, groups={"antigravity": [0]}, tracker="this")
    invariants = trace.folder / "invariants.json"
    invariants.write_text(
        json.dumps(
            {
                "schema": "traincheck.invariants",
                "version": "1.0",
                "id": "this",
                "text_description": "__import__('antigravity')",
                "relation": "antigravity",
                "params": [{"param_type": "APIParam", "api_full_name": "os.system"}],
                "precondition": {},
            }
        )
    )
    script = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from traincheck_trace_schema.codec import structure_record
        from traincheck_trace_schema.invariant_file import read_invariants
        from traincheck_trace_schema.reading import StreamItem, open_run
        path = Path({str(trace.folder)!r})

        def read():
            for strict in (False, True):
                for item in open_run([path / "trace_r0.json"], strict=strict).stream():
                    if isinstance(item, StreamItem):
                        structure_record(item.record)
            return read_invariants([path / "invariants.json"])

        read()  # what it needs itself is imported now
        events = []
        sys.addaudithook(lambda name, args: events.append((name, args)))
        assert len(read()) == 1
        for name, args in events:
            if name == "open":
                assert str(args[0]).startswith(str(path)), args
            else:
                assert not name.startswith(("import", "exec", "subprocess", "os.system", "pickle",
                    "compile", "ctypes", "socket", "os.exec", "os.fork")), (name, args)
        assert [name for name, _ in events].count("open") >= 3
        assert not {{"antigravity", "this"}} & sys.modules.keys()
    """)

    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )

    assert (result.returncode, result.stderr) == (0, "")
