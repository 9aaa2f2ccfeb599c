"""What a recording does when records can't be written any more, and when they can again."""

import time

import pytest
import torch
from torch import nn
from torch.nn import functional

import traincheck_instrument as traincheck
from traincheck_instrument.current import Current
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.validation import FileCheck

pytestmark = pytest.mark.torch


def wait_until(is_so):
    while not is_so():
        time.sleep(0.01)


def step(model, optimizer):
    traincheck.start_step()
    optimizer.zero_grad()
    functional.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()
    optimizer.step()


def read(folder):
    """Return the records of a valid trace, and why it is incomplete."""
    (path,) = folder.iterdir()
    assert [*FileCheck(path).problems()] == []
    run = open_run([folder])
    records = [item.record for item in run.stream() if hasattr(item, "record")]
    return records, run.incomplete_because()


def test_after_a_loss_functions_lines_and_variables_are_told_again(record, tmp_path, capsys):
    """A reader that forgot what lost records may have changed knows all of it one step later."""
    away = tmp_path.with_name(f"{tmp_path.name}_away")
    model = nn.Linear(3, 2)
    with record():
        shard = Current.session._shard
        traincheck.track(model, name="model")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step(model, optimizer)
        wait_until(lambda: not shard._waiting and shard.path.exists())
        tmp_path.rename(away)
        functional.relu6(torch.ones(1))  # for the first time
        step(model, optimizer)
        wait_until(lambda: shard._writer.has_loss)
        away.rename(tmp_path)
        wait_until(lambda: shard.gaps)
        functional.relu6(torch.ones(1))
        step(model, optimizer)

    records, reasons = read(tmp_path)
    kinds = [one["kind"] for one in records]
    at = kinds.index("gap")
    told = {one["name"] for one in records[:at] if one["kind"] == "function"}
    sources = {one["id"] for one in records[:at] if one["kind"] == "source"}
    after = records[at:]
    (begin,) = (at for at, one in enumerate(after) if one["kind"] == "step")
    baselines = [one for one in after if one.get("event") == "baseline"]

    assert kinds.count("gap") == 1
    assert records[at]["count"] > 0
    assert {one["function"] for one in after if one["kind"] == "call_begin"} <= told
    assert {one["src"] for one in after if "src" in one} <= sources | {
        one["id"] for one in after if one["kind"] == "source"
    }
    names = {one["names"][0] for one in baselines}
    assert names >= {"model.weight", "model.bias", "optimizer0.group0"}
    assert len(names) == len(baselines)
    assert all(after.index(one) > begin for one in baselines)
    assert [one["event"] for one in after if one["kind"] == "var"].count("changed") > 0
    assert any("(disk)" in reason for reason in reasons)
    assert capsys.readouterr().err.count("\n") == 1


def test_a_full_trace_ends_the_recording_and_not_the_training(record, tmp_path, capsys):
    """Wrappers test a flag from then on; the footer of the clean end is there."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(max_trace_bytes=300_000) as run:
        traincheck.track(model, name="model")
        for _ in range(2000):
            step(model, optimizer)
            if not run.recorder.clock.is_recording:
                break
        for _ in range(5):
            step(model, optimizer)
        assert not run.recorder.clock.is_recording

    records, reasons = read(tmp_path)

    assert [one["kind"] for one in records[-2:]] == ["gap", "footer"]
    assert records[-2]["reason"] == "limit"
    assert any("(limit)" in reason for reason in reasons)
    assert "--max-trace-size (300000 bytes)" in capsys.readouterr().err
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 300_000


def test_a_compressed_recording_holds_the_same_records(record, tmp_path):
    """Names, order and footer are those of a plain one; the file is a fraction of it."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(gzip=True):
        traincheck.track(model, name="model")
        for _ in range(20):
            step(model, optimizer)
    (path,) = tmp_path.iterdir()
    records, reasons = read(tmp_path)

    assert path.name.endswith(".json.gz")
    assert reasons == ()
    assert [one["kind"] for one in records][:1] == ["header"]
    assert len(records) == sum(records[-1]["records"].values()) + 1
    assert path.stat().st_size < 100 * len(records)
