from __future__ import annotations

import os
import resource
import tracemalloc
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading import Run, StreamItem, WindowEnd, open_run, open_runs
from traincheck_trace_schema.window import AFTER_PASS, BEFORE_PASS, Window, window_of

if TYPE_CHECKING:
    from conftest import TraceBuilder

GOLDEN = Path(__file__).parent / "golden" / "1.0" / "trace_r0_p4242.json"


def _read(*paths: Path) -> tuple[Run, list[StreamItem | WindowEnd]]:
    run = open_run(paths)
    return run, list(run.stream())


def _told(stream: list[StreamItem | WindowEnd]) -> list[tuple[Any, ...]]:
    """Shorten a stream: (process, kind, step) of a record, ("end", step) of a window's end."""
    return [
        (item.process, item.record["kind"], item.record.get("step"))
        if isinstance(item, StreamItem)
        else ("end", item.window.step)
        for item in stream
    ]


def test_the_records_of_a_window_come_before_any_of_a_later_one(trace: TraceBuilder) -> None:
    """Shards are merged by window; a window ends once, after the last shard that is in it."""
    trace.shard(*trace.steps(-1, 0, 2), name="trace_r0.json", rank=0, world_size=2)
    trace.shard(*trace.steps(0, 0, 1), name="trace_r1.json", rank=1, world_size=2)

    run, stream = _read(trace.folder)

    assert _told(stream) == [
        (0, "header", None),
        (1, "header", None),
        (0, "step", -1),
        ("end", -1),
        (0, "step", 0),
        (1, "step", 0),
        (1, "step", 0),
        ("end", 0),
        (1, "step", 1),
        (1, "footer", None),
        ("end", 1),
        (0, "step", 2),
        (0, "footer", None),
        ("end", 2),
    ]
    assert (run.incomplete_because(), run.notes()) == ((), ())


def test_an_item_says_where_it_stands(trace: TraceBuilder) -> None:
    """Each record comes with its line and its window."""
    (trace.folder / "trace_r0.json").write_bytes(GOLDEN.read_bytes())

    _, stream = _read(trace.folder)

    items = [item for item in stream if isinstance(item, StreamItem)]
    assert [item.line for item in items] == list(range(1, 42))
    assert items[-8].window == Window(0, 1, 0)
    assert items[-7].window == items[-1].window == Window(5, 0, BEFORE_PASS)


def test_shards_are_sorted_by_rank_and_role(trace: TraceBuilder) -> None:
    """A rank's main process comes first, then its workers by name."""
    trace.shard(name="trace_a.json", rank=1, role="worker", world_size=2)
    trace.shard(name="trace_b.json", rank=1, world_size=2)
    trace.shard(name="trace_c.json", rank=0, world_size=2)
    trace.shard(name="trace_9.json", rank=1, role="worker", world_size=2)

    run = open_run([trace.folder])

    names = [shard.name for shard in run.shards]
    assert names == ["trace_c.json", "trace_b.json", "trace_9.json", "trace_a.json"]
    assert [shard.header.rank for shard in run.shards] == [0, 1, 1, 1]


WINDOWS = st.builds(
    Window, st.integers(-1, 3), st.integers(0, 2), st.sampled_from([0, 1])
) | st.builds(
    lambda step, eval_pass: Window(step, eval_pass, AFTER_PASS if eval_pass else BEFORE_PASS),
    st.integers(-1, 3),
    st.integers(0, 2),
)


@given(shards=st.lists(st.lists(WINDOWS, max_size=8).map(sorted), min_size=1, max_size=4))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_merge_loses_nothing_and_never_goes_back(
    shards: list[list[Window]], trace: TraceBuilder
) -> None:
    """For any shards: windows rise, each ends once and last, each shard keeps its order."""
    for old in trace.folder.iterdir():
        old.unlink()
    for rank, windows in enumerate(shards):
        name = f"trace_r{rank}.json"
        trace.shard(*trace.windows(windows), name=name, rank=rank, world_size=len(shards))

    _, stream = _read(trace.folder)

    read: dict[int, list[int]] = defaultdict(list)
    ended: list[Window] = []
    for item in stream:
        assert not ended or item.window > ended[-1]
        if isinstance(item, WindowEnd):
            ended.append(item.window)
        elif item.record["kind"] == "step":
            assert item.window == window_of(item.record)
            read[item.process].append(item.record["seq"])
    assert set(ended) >= {window for windows in shards for window in windows}
    for process, windows in enumerate(shards):
        assert read[process] == list(range(len(windows)))


def test_a_stream_can_be_read_again(trace: TraceBuilder) -> None:
    """A second pass gives the same, and findings are not added up."""
    path = trace.write("trace_r0.json", [trace.header(), *trace.steps(0), {"no": "kind"}])

    run = open_run([path])
    first, told = list(run.stream()), (run.incomplete_because(), run.notes())

    assert (list(run.stream()), (run.incomplete_because(), run.notes())) == (first, told)


def test_a_later_header_belongs_to_the_window_before_it(trace: TraceBuilder) -> None:
    """Header and footer have no window of their own; the last header counts."""
    late = trace.header(rank=1, world_size=2)
    trace.shard(*trace.steps(0), late, *trace.steps(1), rank=0, name="trace_r1.json")

    run, stream = _read(trace.folder)

    assert _told(stream)[1:5] == [(0, "step", 0), (0, "header", None), ("end", 0), (0, "step", 1)]
    assert run.incomplete_because() == ("rank 0 of 2 left no trace",)


def test_a_record_of_an_earlier_window_is_kept_and_told(trace: TraceBuilder) -> None:
    """Windows of the stream never go back, even if those of a shard do."""
    trace.shard(*trace.steps(0, 2, 1))

    run, stream = _read(trace.folder)

    assert _told(stream)[2:] == [
        ("end", 0), (0, "step", 2), (0, "step", 1), (0, "footer", None), ("end", 2)
    ]  # fmt: skip
    assert "records that come after one of a later window: 1" in run.notes()[0]


def test_compressed_shards_are_read(trace: TraceBuilder) -> None:
    """A name that ends in `.gz` is a compressed shard."""
    trace.shard(*trace.steps(0, 1), name="trace_r0.json.gz")

    run, stream = _read(trace.folder)

    assert _told(stream)[1:3] == [(0, "step", 0), ("end", 0)]
    assert run.incomplete_because() == ()


def test_a_shard_can_be_opened_by_itself(trace: TraceBuilder) -> None:
    """A path may be a shard, and naming it twice reads it once."""
    path = trace.shard(*trace.steps(0), name="any_name.json")

    run, _ = _read(path, path)

    assert len(run.shards) == 1


def test_folders_of_one_run_are_merged(trace: TraceBuilder) -> None:
    """Nodes without a shared disk write folders of their own, with one run id."""
    trace.shard(name="a/trace_r0.json", rank=0, world_size=2)
    trace.shard(name="b/trace_r1.json", rank=1, world_size=2)

    run, _ = _read(trace.folder / "b", trace.folder / "a")

    assert [shard.header.rank for shard in run.shards] == [0, 1]
    assert run.incomplete_because() == ()


def test_different_runs_are_kept_apart(trace: TraceBuilder) -> None:
    """`open_runs` gives each in the order of the paths; `open_run` refuses."""
    trace.shard(name="a/trace_r0.json", run_id="second")
    trace.shard(name="b/trace_r0.json", run_id="first")
    folders = [trace.folder / "b", trace.folder / "a"]

    assert [run.run_id for run in open_runs(folders)] == ["first", "second"]
    with pytest.raises(TraceError, match="must hold the trace of one run, got 'first', 'second'"):
        open_run(folders)


def test_a_program_that_was_killed_left_an_incomplete_trace(trace: TraceBuilder) -> None:
    """A main shard without a footer, a missing rank: each is a reason, in words."""
    trace.write("trace_r1.json", [trace.header(1, world_size=3), *trace.steps(0)])
    trace.shard(rank=0, world_size=3)

    run, _ = _read(trace.folder)

    assert run.incomplete_because() == (
        "rank 2 of 3 left no trace",
        "trace_r1.json: rank 1 did not end cleanly, there is no footer",
    )


def test_a_worker_without_a_footer_is_no_reason(trace: TraceBuilder) -> None:
    """Workers are killed as a matter of course, also before they wrote anything."""
    trace.shard()
    trace.write("trace_r0_w1.json", [trace.header(role="worker"), *trace.steps(0)])

    assert _read(trace.folder)[0].incomplete_because() == ()


@pytest.mark.parametrize(
    ("reason", "is_loss"),
    [("sampling", False), ("disk", True), ("queue", True), ("encoding", True), ("fault", True)],
)
def test_gaps_that_lose_records_are_told(
    trace: TraceBuilder, reason: str, *, is_loss: bool
) -> None:
    """A step that was not sampled is no loss; a full disk is."""
    gap = {"kind": "gap", "thread": 1, "seq": 0, "step": 0, "reason": reason}
    trace.shard({**gap, "count": 7}, {**gap, "count": None})

    expected = (f"trace_r0.json: at least 8 records were lost ({reason})",) if is_loss else ()
    assert _read(trace.folder)[0].incomplete_because() == expected


@pytest.mark.parametrize(
    "line", ["{broken", "[1]", "3", '{"kind": 3, "step": 0}', '{"kind": "step", "step": "0"}', ""]
)
def test_a_malformed_line_is_skipped_and_told(trace: TraceBuilder, line: str) -> None:
    """The other records are read; the note names file and line; the run is not complete."""
    path = trace.shard(*trace.steps(0, 1))
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[2:], ""]), "utf-8")

    run, stream = _read(trace.folder)

    steps = [told for told in _told(stream) if told[1] == "step"]
    assert steps == [(0, "step", 0), (0, "step", 1)]
    assert run.notes()[0].startswith(f"{path}:3: skipped")
    assert run.incomplete_because() == ("trace_r0.json: lines that are no records: 1",)


def test_many_malformed_lines_are_summed_up(trace: TraceBuilder) -> None:
    """Notes stay short however broken a shard is."""
    trace.shard(*[{"no": "kind"}] * 1000)

    run, _ = _read(trace.folder)

    assert len(run.notes()) == 6
    assert "995 more lines" in run.notes()[-1]


@pytest.mark.parametrize("name", ["trace_r0.json", "trace_r0.json.gz"])
def test_a_shard_may_end_at_any_byte(trace: TraceBuilder, name: str) -> None:
    """What was written before a kill is read: a prefix of the records, whatever was cut."""
    path = trace.shard(*trace.steps(0, 1, 2), name=name)
    content = path.read_bytes()
    whole = _told(_read(path)[1])
    counts = []

    for length in range(len(content)):
        path.write_bytes(content[:length])
        try:
            run, stream = _read(path)
        except TraceError as error:
            assert "has no records" in str(error)  # noqa: PT017  both ways out are fine
            continue
        records = [told for told in _told(stream) if told[0] != "end"]
        assert records == [told for told in whole if told[0] != "end"][: len(records)]
        assert run.incomplete_because() or records[-1][1] == "footer"
        counts.append(len(records))

    assert counts == sorted(counts)
    assert counts[-1] >= 4


def test_a_rank_that_died_in_its_header_is_told(trace: TraceBuilder) -> None:
    """Its shard is left out, and the trace is not complete."""
    trace.shard(rank=0, world_size=2)
    (trace.folder / "trace_r1.json").write_text('{"kind": "hea')

    run, _ = _read(trace.folder)

    assert run.incomplete_because() == (
        "trace_r1.json: ends within its header",
        "rank 1 of 2 left no trace",
    )


def test_what_a_newer_minor_version_adds_is_read(trace: TraceBuilder) -> None:
    """Version 1.1 may add fields and kinds; they pass through to whoever knows them."""
    added = {"kind": "mood", "thread": 1, "seq": 0, "step": 0, "is_good": True}
    trace.shard(added, version="1.1", future={"x": 1})

    run, stream = _read(trace.folder)

    assert run.shards[0].header.version == "1.1"
    assert [item.record for item in stream if isinstance(item, StreamItem)][1] == added
    assert run.incomplete_because() == ()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            {"version": "2.0"},
            ":1: is traincheck.trace version 2.0, and this TrainCheck knows version 1.x; ",
        ),
        ({"version": "new"}, ":1: field 'version' must be a text like '1.0', got \"new\""),
        ({"schema": "poem"}, ":1: field 'schema' must be 'traincheck.trace', got \"poem\""),
        ({"kind": "footer"}, ':1: must be the header of a trace, got a record of kind "footer"'),
        (
            {"world_size": 10**12},
            ":1: field 'world_size' must be an integer from 1 to 1048576, got 1000000000000",
        ),
        (
            {"rank": "0"},
            ":1: field 'rank' must be an integer of at least 0 and below 2^62, got \"0\"",
        ),
    ],
)
def test_a_wrong_header_is_refused(
    trace: TraceBuilder, header: dict[str, Any], message: str
) -> None:
    """The message names file and line, what was read, and what to do."""
    path = trace.write("trace_r0.json", [{**trace.header(), **header}])

    with pytest.raises(TraceError) as caught:
        open_run([trace.folder])

    assert str(caught.value).startswith(f"{path}{message}")


def test_a_file_that_is_no_trace_is_refused(trace: TraceBuilder) -> None:
    """A first line that is no record is told as such."""
    path = trace.folder / "trace_notes.json"
    path.write_text("dear diary,\n")

    with pytest.raises(TraceError, match=":1: must be the header"):
        open_run([path])


def test_a_folder_without_a_trace_is_refused(trace: TraceBuilder) -> None:
    """The message says what a trace is called and which command writes one."""
    with pytest.raises(TraceError, match=r"holds no trace; .* trace_\*\.json .*traincheck-collect"):
        open_run([trace.folder])


def test_a_path_that_is_not_there_is_refused(trace: TraceBuilder) -> None:
    """The message names the path."""
    with pytest.raises(TraceError, match=r"/gone: cannot be read: No such file"):
        open_run([trace.folder / "gone"])


def test_more_shards_than_open_files_are_read(trace: TraceBuilder) -> None:
    """Workers of each epoch leave a shard; only those of a window are open at a time."""
    trace.shard(*trace.steps(*range(60)), name="trace_main.json")
    for step in range(60):
        trace.shard(*trace.steps(step), name=f"trace_w{step}.json", role="worker")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_free = os.dup(0)
    os.close(next_free)

    resource.setrlimit(resource.RLIMIT_NOFILE, (next_free + 20, hard))
    try:
        _, stream = _read(trace.folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert sum(told[1] == "step" for told in _told(stream)) == 120


def test_memory_does_not_depend_on_length(trace: TraceBuilder) -> None:
    """A stream holds a record a shard: 20,000 of them never weigh a megabyte."""
    path = trace.shard(*trace.steps(*range(20_000)))
    tracemalloc.start()

    count = sum(1 for _ in open_run([path]).stream())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count > 20_000
    assert peak < 1_000_000


def test_one_path_may_be_text_and_stand_by_itself(trace: TraceBuilder) -> None:
    """A folder is not taken for the letters of its name; nothing at all is told."""
    trace.shard(*trace.steps(0))

    assert open_run(str(trace.folder)).run_id == open_run([trace.folder]).run_id
    with pytest.raises(TraceError, match="no trace is given"):
        open_run([])


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (Window(-1, 0, BEFORE_PASS), "before the first step"),
        (Window(3, 0, BEFORE_PASS), "step 3"),
        (Window(3, 1, 0), "step 3, step 0 of pass 1 of evaluation"),
        (Window(3, 1, AFTER_PASS), "step 3, after pass 1 of evaluation"),
    ],
)
def test_a_window_is_named_as_a_person_would(window: Window, text: str) -> None:
    """The numbers that stand for before and after a pass are not shown."""
    assert str(window) == text


def test_shards_share_what_they_recorded_alike(trace: TraceBuilder) -> None:
    """A run may have thousands of shards whose headers name the same hundreds of functions."""
    for rank, functions in enumerate((["f", "g"], ["f", "g"], ["h"])):
        recording = {"mode": "full", "functions": functions}
        trace.shard(name=f"trace_r{rank}.json", rank=rank, world_size=3, recording=recording)

    first, second, third = open_run([trace.folder]).shards

    assert second.header.recording is first.header.recording
    assert second.raw_header["recording"] is first.raw_header["recording"]
    assert (second.header.rank, third.header.recording.functions) == (1, ("h",))
