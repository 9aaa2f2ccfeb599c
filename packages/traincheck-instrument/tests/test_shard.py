"""What is on disk when the disk refuses."""

import resource
import signal
import time

import pytest

from traincheck_instrument.sink.shard import Shard
from traincheck_trace_schema.codec import loads


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_refused_write_leaves_whole_lines(tmp_path, size):
    """Part of a batch may have been written: it is cut off, and the gap stands where it was."""
    shard = Shard(tmp_path, lambda: {"kind": "header"}, lambda: 0)
    shard.open()
    while not shard.path.exists():
        time.sleep(0.01)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (shard.path.stat().st_size + 20, limit[1]))
    place = {"thread": 3, "step": 4, "eval_pass": 1, "eval_step": 2}
    shard.append({"kind": "lost", "seq": 1, **place, "text": "x" * size})
    shard.flush()
    while not shard._lost:
        time.sleep(0.01)
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    shard.append({"kind": "kept", "seq": 2, **place})
    shard.close(None)

    header, gap, kept = map(loads, shard.path.read_text().splitlines())

    assert (header["kind"], kept["kind"]) == ("header", "kept")
    assert gap == {"kind": "gap", "seq": 2, **place, "reason": "disk", "count": 1}
