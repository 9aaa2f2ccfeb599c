"""The traces of a folder do not grow beyond their limit, and say that they reached it."""

import pytest

from traincheck_instrument.sink.file import TraceFile
from traincheck_instrument.sink.limit import SizeLimit
from traincheck_instrument.sink.writer import Writer
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.reading import open_run

MAX_BYTES = 200_000


def header(rank, role="main", world_size=1):
    return {
        "kind": "header",
        "schema": "traincheck.trace",
        "version": "1.0",
        "run_id": "r",
        "host": "h",
        "pid": rank,
        "role": role,
        "rank": rank,
        "local_rank": rank,
        "world_size": world_size,
        "clock": {"wall_ns": 1, "monotonic_ns": 1},
        "recording": {"mode": "full"},
    }


def batch(number):
    place = {"thread": 0, "step": 0}
    return [
        {"kind": "call_begin", **place, "seq": seq, "id": seq, "function": "f" * 60}
        for seq in range(50 * number, 50 * (number + 1))
    ]


def footer(counts):
    return {"kind": "footer", "records": dict(counts)}


@pytest.fixture
def make(tmp_path):
    """Return a function that makes the writer of a process."""

    def writer(rank, **of_header):
        file = TraceFile(tmp_path, f"trace_r{rank}_p{rank}")
        made = Writer(file, SizeLimit(tmp_path, MAX_BYTES))
        made.write([header(rank, **of_header)])
        return made

    return writer


def fill(*writers):
    """Have processes write in turn until all of them are full; return how many batches each did."""
    for number in range(1000):
        for writer in writers:
            if not writer.is_full:
                writer.write(batch(number))
        if all(writer.is_full for writer in writers):
            return number
    raise AssertionError


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_all_traces_together_stay_below_the_limit(tmp_path, make, ranks, capsys):
    """Each ends with the gap and, at a clean end, its footer; most of the room was used."""
    writers = [make(rank, world_size=ranks) for rank in range(ranks)]

    fill(*writers)
    for writer in writers:
        writer.end(footer)
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    told = capsys.readouterr().err.splitlines()

    assert MAX_BYTES / 2 < total <= MAX_BYTES
    for writer in writers:
        gap, last = map(loads, writer.file.path.read_text().splitlines()[-2:])
        assert (gap["kind"], gap["reason"], gap["count"]) == ("gap", "limit", None)
        assert "--max-trace-size" in gap["detail"]
        assert last["kind"] == "footer"
    assert len(told) == ranks
    assert all("--max-trace-size" in line for line in told)


def test_a_reader_says_that_the_trace_is_incomplete(tmp_path, make):
    """Although it has a footer."""
    writer = make(0)
    fill(writer)
    writer.end(footer)
    run = open_run([tmp_path])

    for _ in run.stream():
        pass

    (reason,) = run.incomplete_because()
    assert "limit" in reason


def test_what_others_wrote_before_counts(tmp_path, make):
    """A folder that is nearly full leaves little room; other files in it do not count."""
    (tmp_path / "model.pt").write_bytes(bytes(10 * MAX_BYTES))
    alone = fill(make(0))
    for path in tmp_path.glob("trace_*"):
        path.unlink()
    (tmp_path / "trace_r1_p1.json").write_bytes(bytes(MAX_BYTES // 2))

    assert fill(make(0)) < alone * 0.6


def test_a_worker_that_starts_in_a_full_folder_leaves_no_file(tmp_path, make, capsys):
    """Each pass over a data set starts workers; a main process leaves its header in any case."""
    (tmp_path / "trace_r1_p1.json").write_bytes(bytes(MAX_BYTES))

    worker, main = make(5, role="worker"), make(0)

    assert worker.is_full
    assert not worker.file.path.exists()
    kinds = [loads(line)["kind"] for line in main.file.path.read_text().splitlines()]
    assert kinds == ["header", "gap"]
    assert capsys.readouterr().err.count("\n") == 1
