"""What a recording holds where threads, forks and signals of the program cut in."""

import os
import signal
import sys
import threading

import pytest
import torch
from torch import nn
from torch.nn import functional

import traincheck_instrument as traincheck
from traincheck_instrument import session
from traincheck_instrument.current import Current
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.validation import FileCheck

pytestmark = pytest.mark.torch


@pytest.fixture
def fast_switches():
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("fast_switches")
def test_no_record_of_another_thread_goes_back_to_an_earlier_step(record):
    """A record stands in the step that runs when it is written (`records` holds it to that)."""
    ended = threading.Event()

    def call_on():
        while not ended.is_set():
            functional.relu(torch.ones(1))

    with record() as run:
        threads = [threading.Thread(target=call_on) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(500):
            traincheck.start_step(accumulating=number % 3 == 0)
            with traincheck.evaluation():
                traincheck.start_eval_step()
        ended.set()
        for thread in threads:
            thread.join()

    assert len(run.records("step")) > 500


def test_a_record_stands_where_the_run_stands_when_it_is_written(record):
    """Not where it stood when the record was begun: another thread may begin a step meanwhile."""
    with record() as run:
        journal = run.recorder._journal
        entry = journal.begin("gap")
        traincheck.start_step()
        entry["reason"] = "sampling"
        journal.write(entry)

    assert run.records("gap")[0]["step"] == 0


def test_a_process_that_was_forked_inside_a_call_does_not_end_it(record):
    """Its begin is in the trace of the parent, which has the end too; later calls are told."""

    class Forks(nn.Module):
        child = None

        def forward(self, x):
            self.child = os.fork()
            return x

    forks = Forks()
    with record() as run:
        nn.Sequential(forks, nn.ReLU())(torch.ones(1))
        if forks.child == 0:
            functional.relu6(torch.zeros(1))
            session.end(clean=True)
            os._exit(0)
        os.waitpid(forks.child, 0)

    assert [[*FileCheck(shard).problems()] for shard in run.shards] == [[], []]
    texts = {
        shard.name.endswith(f"_p{forks.child}.json"): shard.read_text() for shard in run.shards
    }
    outer = "torch.nn.Sequential.forward"
    ended = {
        is_child: [one["function"] for one in map(loads, text.splitlines()) if "result" in one]
        for is_child, text in texts.items()
    }
    assert ended[False] == ["torch.nn.functional.relu", "torch.nn.ReLU.forward", outer]
    assert ended[True] == [
        *("torch.nn.functional.relu", "torch.nn.ReLU.forward", "torch.nn.functional.relu6")
    ]


def test_a_mark_of_a_signal_handler_waits_for_the_record_that_it_interrupts(record, monkeypatch):
    """In the middle of a begin there is no other step yet; right after it there is."""
    with record() as run:
        recorder = run.recorder
        write = recorder._journal.write

        def interrupted(entry, **since):
            if entry["kind"] == "call_begin":
                traincheck.annotate_stage("checkpointing")
                traincheck.start_step()
                assert recorder.clock.step == -1
            return write(entry, **since)

        monkeypatch.setattr(recorder._journal, "write", interrupted)
        functional.relu(torch.ones(1))
        monkeypatch.undo()
        assert recorder.clock.step == 0

    kinds = [one["kind"] for one in run.records() if one["kind"] in {"call_begin", "stage", "step"}]
    assert kinds == ["call_begin", "stage", "stage", "step"]


def test_signals_at_any_moment_leave_a_valid_trace(record):
    """Thousands of marks in a handler: nobody waits for itself, and the order is right."""
    handled = 0

    def handle(*_):
        nonlocal handled
        handled += 1
        traincheck.annotate_stage("checkpointing" if handled % 2 else "training")
        if handled % 3 == 0:
            traincheck.start_step()

    before = signal.signal(signal.SIGALRM, handle)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        with record() as run:
            traincheck.track(model, name="model")
            signal.setitimer(signal.ITIMER_REAL, 5e-4, 5e-4)
            while handled < 300:
                functional.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()
                optimizer.step()
                optimizer.zero_grad()
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert len(run.records("step")) >= 100


def test_without_the_thread_that_writes_nothing_is_recorded(record, monkeypatch, tmp_path):
    """The recording does not begin, and nothing of it stays."""
    before = functional.relu

    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"), record():
        pass

    assert functional.relu is before
    assert Current.session is None
    assert not [*tmp_path.iterdir()]
