"""A run that is followed while it writes gives what it gives when it has ended."""

from __future__ import annotations

import gzip
import tempfile
import tracemalloc
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.codec import dumps
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading import (
    LiveRun,
    Run,
    StreamItem,
    WindowEnd,
    open_live,
    open_run,
)
from traincheck_trace_schema.window import AFTER_PASS, BEFORE_PASS, Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conftest import Clock, TraceBuilder


def _told(stream: Iterable[StreamItem | WindowEnd]) -> list[tuple[Any, ...]]:
    """Shorten a stream: (process, kind, step) of a record, ("end", step) of a window's end."""
    return [
        (item.process, item.record["kind"], item.record.get("step"))
        if isinstance(item, StreamItem)
        else ("end", item.window.step)
        for item in stream
    ]


def test_what_is_there_is_given_and_no_more(trace: TraceBuilder) -> None:
    """A poll gives what came since the last one, and ends."""
    trace.append("trace_r0.json", trace.header(), *trace.steps(-1, 0))
    live = open_live([trace.folder])

    assert _told(live.poll()) == [
        (0, "header", None), (0, "step", -1), ("end", -1), (0, "step", 0)
    ]  # fmt: skip
    assert _told(live.poll()) == []

    trace.append("trace_r0.json", *trace.steps(0, 1), trace.footer())

    assert _told(live.poll()) == [
        (0, "step", 0), ("end", 0), (0, "step", 1), (0, "footer", None), ("end", 1)
    ]  # fmt: skip
    assert live.is_over
    assert _told(live.finish()) == []
    assert (live.incomplete_because(), live.notes()) == ((), ())


def test_a_run_may_begin_after_it_is_followed(trace: TraceBuilder) -> None:
    """Neither the folder nor a file of it need be there."""
    folder, file = trace.folder / "later", trace.folder / "elsewhere" / "trace_r1.json"
    live = open_live([folder, file])

    assert _told(live.poll()) == []
    assert (live.run_id, live.shards, live.is_over) == (None, (), False)

    trace.shard(*trace.steps(0), name="later/trace_r0.json", world_size=2)
    trace.shard(*trace.steps(0), name="elsewhere/trace_r1.json", rank=1, world_size=2)

    assert _told(live.poll())[-1] == ("end", 0)
    assert [shard.header.rank for shard in live.shards] == [0, 1]
    assert (live.run_id, live.is_over) == ("run", True)


def test_a_window_waits_for_each_rank_of_the_world(trace: TraceBuilder) -> None:
    """Records of a window come at once; its end, and later ones, when each rank has gone on."""
    trace.append("trace_r0.json", trace.header(world_size=2), *trace.steps(-1, 0, 1))
    live = open_live([trace.folder])
    assert _told(live.poll()) == [(0, "header", None), (0, "step", -1)]

    trace.append("trace_r1.json", trace.header(1, world_size=2), *trace.steps(-1))
    assert _told(live.poll()) == [(1, "header", None), (1, "step", -1)]

    trace.append("trace_r1.json", *trace.steps(0))
    assert _told(live.poll()) == [("end", -1), (0, "step", 0), (1, "step", 0)]

    trace.append("trace_r1.json", trace.footer())
    assert _told(live.poll()) == [(1, "footer", None), ("end", 0), (0, "step", 1)]


def test_a_worker_holds_no_window_open(trace: TraceBuilder) -> None:
    """What it says of a window that has ended comes late, with that window."""
    trace.append("trace_r0.json", trace.header(), *trace.steps(-1, 0))
    trace.append("trace_w.json", trace.header(role="worker"), *trace.steps(0))
    live = open_live([trace.folder])
    list(live.poll())

    trace.append("trace_r0.json", *trace.steps(1))
    assert _told(live.poll()) == [("end", 0), (0, "step", 1)]

    trace.append("trace_w.json", *trace.steps(0))
    (late,) = live.poll()
    assert isinstance(late, StreamItem)
    assert (late.process, late.window.step) == (1, 0)


def test_a_worker_may_be_there_first(trace: TraceBuilder) -> None:
    """As long as no main process has shown up, no window ends."""
    header = trace.header(role="worker")
    trace.append("trace_w.json", header, header, *trace.steps(0, 1))
    live = open_live([trace.folder])
    assert _told(live.poll()) == [(0, "header", None)] * 2

    trace.append("trace_r0.json", trace.header(), *trace.steps(0))
    assert _told(live.poll()) == [
        (1, "header", None), ("end", -1), (0, "step", 0), (1, "step", 0)
    ]  # fmt: skip


def test_a_poll_that_is_broken_off_loses_nothing(trace: TraceBuilder) -> None:
    """Each item is given once, however few of them a poll is asked for."""
    for rank in range(2):
        trace.shard(*trace.steps(0, 0, 1), name=f"trace_r{rank}.json", rank=rank, world_size=2)
    live = open_live([trace.folder])

    items = []
    while (item := next(live.poll(), None)) is not None:
        items.append(item)

    assert _told(items) == _told(open_live([trace.folder]).poll())
    assert len(items) == 2 * 5 + 2


@pytest.mark.parametrize("name", ["trace_r0.json", "trace_r0.json.gz"])
def test_lines_may_come_byte_by_byte(trace: TraceBuilder, name: str) -> None:
    """A header, a record or a compressed block that is not whole is waited for."""
    path = trace.shard(*trace.steps(-1, 0, 1), name=name)
    content = path.read_bytes()
    whole = _told(open_run([path]).stream())
    path.write_bytes(b"")
    live = open_live([trace.folder])

    items: list[StreamItem | WindowEnd] = []
    for byte in content:
        with path.open("ab") as file:
            file.write(bytes([byte]))
        items += live.poll()

    assert _told(items) == whole
    assert live.is_over
    assert live.notes() == ()


def test_a_header_of_another_form_is_waited_for(trace: TraceBuilder) -> None:
    """The kind need not come first; half of such a header is no reason to leave a file out."""
    header = dict(reversed(trace.header().items()))
    content = trace.write("other", [header, *trace.steps(0)]).read_bytes()
    path = trace.folder / "trace_r0.json"
    path.write_bytes(content[:20])
    live = open_live([trace.folder])
    assert list(live.poll()) == []

    path.write_bytes(content)

    assert _told(live.poll()) == [(0, "header", None), (0, "step", 0)]


def test_a_run_is_not_over_before_all_was_given(trace: TraceBuilder) -> None:
    """What workers wrote is read, too, though no window waits for it."""
    trace.shard(*trace.steps(0), name="trace_r0.json")
    trace.shard(*trace.steps(0), name="trace_w.json", role="worker")
    live = open_live([trace.folder])

    for item in live.poll():
        if isinstance(item, StreamItem) and item.record["kind"] == "footer":
            break

    assert not live.is_over
    assert _told(live.poll()) == [(1, "step", 0), (1, "footer", None), ("end", 0)]
    assert live.is_over


def test_finishing_waits_for_nobody(trace: TraceBuilder) -> None:
    """What was cut is told as it is of a run that has ended."""
    trace.append("trace_r0.json", trace.header(world_size=3), *trace.steps(0, 1))
    path = trace.append("trace_r1.json", trace.header(1, world_size=3), *trace.steps(0))
    path.write_bytes(path.read_bytes()[:-3])
    (trace.folder / "trace_r2.json").write_text('{"kind": "hea')
    live = open_live([trace.folder])
    assert len(list(live.poll())) == 2

    assert _told(live.finish()) == [(0, "step", 0), ("end", 0), (0, "step", 1), ("end", 1)]

    run = open_run([trace.folder])
    list(run.stream())
    assert live.incomplete_because() == run.incomplete_because()
    assert live.notes() == run.notes() != ()
    assert not live.is_over
    assert list(live.poll()) == list(live.finish()) == []


def test_a_run_is_idle_while_nothing_new_is_there(trace: TraceBuilder, clock: Clock) -> None:
    """Whatever a rank writes ends the idleness, be it held back by another one."""
    live = open_live([trace.folder], clock=clock)
    clock.now += 5
    assert live.idle_seconds == 5

    trace.append("trace_r0.json", trace.header(world_size=2), *trace.steps(0, 1))
    list(live.poll())
    assert live.idle_seconds == 0

    clock.now += 7
    list(live.poll())
    assert live.idle_seconds == 7

    trace.append("trace_r0.json", *trace.steps(2))
    list(live.poll())
    assert live.idle_seconds == 0


def test_a_run_may_be_waited_for_by_its_id(trace: TraceBuilder) -> None:
    """What an earlier one left in the folder is neither read nor taken for the end."""
    trace.shard(*trace.steps(0), name="trace_old.json", run_id="old")
    live = open_live(str(trace.folder), run_id="new")
    assert list(live.poll()) == []
    assert not live.is_over

    trace.shard(*trace.steps(0), name="trace_new.json", run_id="new")

    records = [item.record for item in live.poll() if isinstance(item, StreamItem)]
    assert (records[0]["run_id"], len(records)) == ("new", 3)
    assert live.is_over


def test_another_run_in_the_folder_is_left_out(trace: TraceBuilder) -> None:
    """The run that was there first is followed; the other is told once."""
    trace.append("trace_r0.json", trace.header(), *trace.steps(0))
    live = open_live([trace.folder])
    list(live.poll())

    trace.shard(*trace.steps(0), name="trace_other1.json", run_id="other")
    trace.shard(*trace.steps(0), name="trace_other2.json", run_id="other")

    assert list(live.poll()) == []
    (note,) = live.notes()
    assert "is of another run, 'other', which is left out" in note
    assert len(live.shards) == 1


def test_of_several_runs_the_newest_is_followed(trace: TraceBuilder) -> None:
    """Where a folder holds an old run already, the one that has just begun is meant."""
    trace.shard(name="trace_1.json", run_id="old", clock={"wall_ns": 10, "monotonic_ns": 1})
    trace.shard(name="trace_2.json", run_id="new", clock={"wall_ns": 20, "monotonic_ns": 1})
    trace.shard(name="trace_3.json", run_id="older", clock={"wall_ns": 5, "monotonic_ns": 1})
    live = open_live([trace.folder])

    list(live.poll())

    assert live.run_id == "new"
    assert len(live.notes()) == 2


def test_a_trace_of_0_x_cannot_be_followed(trace: TraceBuilder) -> None:
    """The message names the command that reads it."""
    path = trace.folder / "trace_API_1_2.log"
    path.write_text('{"func_call_id": "1", "process_id": 1, "type": "function_call (pre)"}\n')

    with pytest.raises(TraceError, match=r"TrainCheck 0\.x, .* traincheck-check when"):
        list(open_live([trace.folder]).poll())


def test_a_trace_of_another_version_cannot_be_followed(trace: TraceBuilder) -> None:
    """It is refused as it is in a run that has ended."""
    trace.shard(version="2.0")

    with pytest.raises(TraceError, match=r"version 2\.0, and this TrainCheck knows version 1\.x"):
        list(open_live([trace.folder]).poll())


def test_a_file_that_is_no_trace_is_left_out(trace: TraceBuilder) -> None:
    """It is told, the run goes on, and is not complete."""
    trace.shard(*trace.steps(0))
    (trace.folder / "trace_notes.json").write_text("dear diary,\n")
    live = open_live([trace.folder])

    list(live.poll())
    list(live.finish())

    run = open_run([trace.folder])
    list(run.stream())
    assert live.notes() == run.notes() != ()
    assert live.incomplete_because() == run.incomplete_because() != ()


def test_a_file_that_is_no_trace_is_refused_if_strict(trace: TraceBuilder) -> None:
    """Whatever else there is to follow."""
    trace.shard(*trace.steps(0))
    live = open_live([trace.folder], strict=True)
    list(live.poll())
    (trace.folder / "trace_notes.json").write_text("dear diary,\n")

    with pytest.raises(TraceError, match="must be the header"):
        list(live.poll())


def test_a_malformed_line_is_refused_if_strict(trace: TraceBuilder) -> None:
    """Else it is told as soon as it was read."""
    trace.append("trace_r0.json", trace.header(), {"no": "kind"}, *trace.steps(0))

    with pytest.raises(TraceError, match=r"trace_r0\.json:2: "):
        list(open_live([trace.folder], strict=True).poll())

    live = open_live([trace.folder])
    list(live.poll())
    assert "trace_r0.json:2: skipped" in live.notes()[0]


def test_a_rank_that_is_ahead_costs_no_memory(trace: TraceBuilder) -> None:
    """100,000 records that wait for another rank are left in their file."""
    steps = (number // 1000 for number in range(-1, 100_000))
    trace.shard(*trace.steps(*steps), rank=0, world_size=2)
    trace.append("trace_r1.json", trace.header(1, world_size=2), *trace.steps(-1))
    live = open_live([trace.folder])
    tracemalloc.start()

    given = sum(1 for _ in live.poll())
    _, waiting = tracemalloc.get_traced_memory()
    trace.append("trace_r1.json", trace.footer())
    given += sum(1 for _ in live.poll())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert given > 100_000
    assert waiting < 2_000_000
    assert peak < 2_000_000


# --- the property: whatever comes in whatever pieces, the stream is that of the finished run ---

PLACES = [
    Window(step, eval_pass, eval_step)
    for step in range(-1, 3)
    for eval_pass, eval_step in [(0, BEFORE_PASS), (1, 0), (1, 1), (1, AFTER_PASS)]
]


@attrs.frozen
class Written:
    """What one process wrote, to the byte."""

    name: str
    content: bytes
    is_clean: bool


HEADER = {
    "kind": "header",
    "schema": "traincheck.trace",
    "version": "1.0",
    "run_id": "run",
    "host": "here",
    "pid": 1,
    "role": "main",
    "rank": 0,
    "local_rank": 0,
    "world_size": 1,
    "clock": {"wall_ns": 1, "monotonic_ns": 2},
    "recording": {"mode": "full"},
}


def _record(seq: int, window: Window) -> str:
    place = {"step": window.step, "eval_pass": window.eval_pass}
    if window.eval_step not in {BEFORE_PASS, AFTER_PASS}:
        place["eval_step"] = window.eval_step
    return dumps({"kind": "step", "thread": 1, "seq": seq, "sampled": True, **place})


@st.composite
def written(draw: st.DrawFn, name: str, header: dict[str, Any], windows: list[Window]) -> Written:
    """Draw the shard of a process: whole or cut, compressed or not, with a line that is none."""
    lines = [dumps(header), *(_record(seq, window) for seq, window in enumerate(windows))]
    least = len("\n".join(lines[:2])) + 1
    if draw(st.booleans()):
        lines.insert(2, "no record")
    is_clean = draw(st.booleans())
    if is_clean:
        lines.append(dumps({"kind": "footer", "records": {}}))
    content = "".join(f"{line}\n" for line in lines).encode()
    if not is_clean:
        content = content[: draw(st.integers(least, len(content)))]
    is_gzip = draw(st.booleans())
    if is_gzip:
        content = gzip.compress(content)
    return Written(f"trace_{name}.json{'.gz' * is_gzip}", content, is_clean)


@st.composite
def processes(draw: st.DrawFn) -> list[Written]:
    """Draw what the ranks of a world and their workers wrote."""
    world_size = draw(st.integers(1, 3))
    found = []
    for rank in range(draw(st.integers(1, world_size))):
        header = {**HEADER, "rank": rank, "world_size": world_size}
        windows = draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=8).map(sorted))
        found.append(draw(written(f"r{rank}", header, windows)))
        for worker in range(draw(st.integers(0, 2))):
            seen = draw(st.lists(st.sampled_from(windows), min_size=1, max_size=4).map(sorted))
            found.append(draw(written(f"r{rank}_w{worker}", {**header, "role": "worker"}, seen)))
    return found


def _by_process(
    run: Run | LiveRun, items: list[StreamItem | WindowEnd]
) -> tuple[dict[str, list[tuple[Any, ...]]], list[WindowEnd]]:
    """Return what a stream gave of each shard, and its ends of windows."""
    given: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for item in items:
        if isinstance(item, StreamItem):
            name = run.shards[item.process].name
            given[name].append((item.line, dumps(item.record), item.window))
    return given, [item for item in items if isinstance(item, WindowEnd)]


@given(shards=processes(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_stream_that_is_followed_is_that_of_the_finished_run(
    shards: list[Written], data: st.DataObject
) -> None:
    """Bytes that come in any pieces, in any order of the processes, between any polls."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        live = open_live([folder], clock=lambda: 0.0)
        items: list[StreamItem | WindowEnd] = []
        rest = {shard.name: shard.content for shard in shards}
        while rest:
            name = data.draw(st.sampled_from(sorted(rest)))
            length = data.draw(st.integers(1, len(rest[name])))
            with (folder / name).open("ab") as file:
                file.write(rest[name][:length])
            rest[name] = rest[name][length:]
            if not rest[name]:
                del rest[name]
            if data.draw(st.booleans()):
                items += live.poll()
        items += live.poll()
        mains = [shard for shard in shards if "_w" not in shard.name]
        world_size = live.shards[0].header.world_size
        assert live.is_over == (len(mains) == world_size and all(shard.is_clean for shard in mains))

        items += live.finish()

        run = open_run([folder])
        finished = list(run.stream())
        assert _by_process(live, items) == _by_process(run, finished)
        assert live.incomplete_because() == run.incomplete_because()
        assert live.notes() == run.notes()


@given(shards=processes(), data=st.data())
@settings(max_examples=50, deadline=None)
def test_records_come_within_their_window(shards: list[Written], data: st.DataObject) -> None:
    """What main processes say comes before the end of its window, and windows rise."""
    with tempfile.TemporaryDirectory() as name:
        live = open_live([Path(name)], clock=lambda: 0.0)
        items: list[StreamItem | WindowEnd] = []
        for shard in data.draw(st.permutations(shards)):
            (Path(name) / shard.name).write_bytes(shard.content)
            items += live.poll()
        items += live.finish()

        ended: list[Window] = []
        for item in items:
            if isinstance(item, WindowEnd):
                assert not ended or item.window > ended[-1]
                ended.append(item.window)
            elif item.line > 1 and live.shards[item.process].header.role == "main":
                assert not ended or item.window > ended[-1]
