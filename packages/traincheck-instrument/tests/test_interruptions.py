"""What a recording holds where threads, forks and signals of the program cut in."""

import _thread
import itertools
import os
import signal
import sys
import threading

import pytest
import torch
from torch import fx, nn
from torch.nn import functional

import traincheck_instrument as traincheck
from traincheck_instrument import session
from traincheck_instrument.api.spec import FunctionSpec
from traincheck_instrument.current import Current
from traincheck_instrument.recorder.open_calls import ThreadState
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
    model = nn.Sequential(forks, nn.ReLU())
    with record() as run:
        model(torch.ones(1))
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
        write = recorder._journal.write_text

        def interrupted(kind, fields):
            if kind == "call_begin":
                traincheck.annotate_stage("checkpointing")
                traincheck.start_step()
                assert recorder.clock.step == -1
            write(kind, fields)

        monkeypatch.setattr(recorder._journal, "write_text", interrupted)
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
        number = handled  # the next signal may come before this one is handled
        traincheck.annotate_stage("checkpointing" if number % 2 else "training")
        if number % 3 == 0:
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


class TimeIsUp(Exception):  # noqa: N818  as a program may have it
    pass


@pytest.fixture
def cut_in():
    """Raise a signal whose handler raises, as a time limit of the program does."""

    def handle(*_):
        raise TimeIsUp

    before = signal.signal(signal.SIGUSR1, handle)
    yield lambda: signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def once_before(monkeypatch, owner, name, act, *, when=lambda *_: True):
    """Have something done before a method is called the next time."""
    method = getattr(owner, name)

    def called(*args, **kwargs):
        if when(*args):
            monkeypatch.undo()
            act()
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, called)


def kind_of(record):
    return record["kind"] if isinstance(record, dict) else ANY


def train(model, optimizer):
    traincheck.start_step()
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


ANY = object()


@pytest.mark.parametrize(
    "moment",
    [
        ("_journal", "write_text", "call_begin"),
        ("calls", "_write", None),  # what the first call has returned
        ("_journal", "write", "step"),
        ("_observer", "look", "begin"),
        ("_observer", "look", "end"),
        ("_observer", "end_step", ANY),
    ],
    ids=lambda moment: f"{moment[1]}({moment[2] if moment[2] is not ANY else ''})",
)
def test_what_a_signal_handler_raises_reaches_the_program(record, monkeypatch, cut_in, moment):
    """Whatever is being recorded; no call stays open, and the recording goes on."""
    part, method, given = moment
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record() as run:
        run.recorder.faults.strict = False
        traincheck.track(model, name="model")
        train(model, optimizer)
        once_before(
            monkeypatch,
            getattr(run.recorder, part),
            method,
            cut_in,
            when=lambda *args: given is ANY or given in (args[0], kind_of(args[0])),
        )
        with pytest.raises(TimeIsUp):
            train(model, optimizer)
        assert not run.recorder.thread.is_busy
        assert run.recorder.thread.stack == []
        train(model, optimizer)

    assert run.records("gap") == []
    begun = {one["id"] for one in run.records("call_begin")}
    failed = run.records("call_error")
    assert {one["exception"] for one in failed} <= {f"{__name__}.TimeIsUp"}
    assert begun == {one["id"] for one in (*run.records("call_end"), *failed)}
    last = run.records("call_begin")[-1]
    assert last["function"] == "torch.optim.SGD.step"
    assert "parent" not in last
    assert run.changes("data")[-1]["call"] == last["id"]


def test_what_was_called_by_mistake_and_raises_is_a_fault(record, monkeypatch, capsys):
    """It is code of the program too, and nothing that the program has begun."""

    def ask():
        raise TimeIsUp

    with record() as run:
        run.recorder.faults.strict = False
        once_before(monkeypatch, run.recorder._journal, "write_text", ask)
        functional.relu(torch.ones(1))

    assert "the begin of torch.nn.functional.relu: TimeIsUp" in capsys.readouterr().err


def test_an_interrupt_while_variables_are_looked_at_ends_the_call(record, monkeypatch):
    """It is told as one that raised; what follows is not inside of it."""
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record() as run:
        traincheck.track(model, name="model")
        train(model, optimizer)
        once_before(
            monkeypatch, run.recorder._observer, "look", lambda: signal.raise_signal(signal.SIGINT)
        )
        with pytest.raises(KeyboardInterrupt):
            optimizer.step()
        train(model, optimizer)

    (failed,) = run.records("call_error")
    assert failed["function"] == "torch.optim.SGD.step"
    assert failed["exception"] == "builtins.KeyboardInterrupt"
    assert not [one for one in run.calls("torch.optim.Optimizer.zero_grad") if "parent" in one]


def test_a_call_whose_wrapper_is_gone_is_forgotten_at_the_next_step(record):
    """A signal came right after its begin. Calls around the begin of a step stay open."""

    class Trains(nn.Module):
        def forward(self, x):
            traincheck.start_step()
            return functional.relu(x)

    with record() as run:
        run.recorder.calls.begin(FunctionSpec(name="torch.nn.functional.gelu"), (), {})
        traincheck.start_step()
        nn.Sequential(Trains())(torch.ones(1))

    calls = {one["function"]: one for one in run.records("call_begin")}
    outer = calls["torch.nn.Sequential.forward"]
    inner = calls["torch.nn.functional.relu"]
    assert "parent" not in outer
    assert inner["parent"] == outer["id"]


@pytest.mark.parametrize("has_threads", [False, True])
def test_what_other_threads_may_do_meanwhile_is_left_out(record, has_threads):
    """While something is traced no function is recorded: there is a gap, and then all variables."""
    with record() as run:
        traincheck.track(nn.Linear(1, 1), name="model")
        if has_threads:
            thread = threading.Thread(target=functional.relu, args=(torch.ones(1),))
            thread.start()
            thread.join()
        fx.symbolic_trace(nn.Linear(2, 2))
        functional.relu(torch.ones(1))

    assert [one["reason"] for one in run.records("gap")] == ["sampling"] * has_threads


def test_a_thread_that_is_not_of_python_stays_unknown_to_it():
    """To ask which thread this is would make an object of it, which the program sees."""
    seen = []
    ended = threading.Lock()
    ended.acquire()
    state = ThreadState(itertools.count().__next__)

    def ask():
        seen.extend((state.is_of_program, threading.get_ident() in threading._active))
        ended.release()

    _thread.start_new_thread(ask, ())
    ended.acquire()
    assert state.is_of_program
    assert seen == [False, False]
