"""What a program tells of itself."""

import threading

import pytest
import torch
from torch import nn

import traincheck_instrument as traincheck
from traincheck_trace_schema.plan import FunctionPlan, Plan
from traincheck_trace_schema.plan_file import write_plan

RELU = "torch.nn.ReLU.forward"


def call():
    nn.ReLU()(torch.ones(2))


def contexts(run):
    return [one.get("ctx", {}) for one in run.calls(RELU)]


class Hostile:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError


def test_what_is_told_is_a_context_of_calls_from_then_on(record):
    """Each key is a context, replaced by telling it again and taken back by None."""
    with record() as run:
        call()
        traincheck.annotate(phase="warmup", fold=2)
        call()
        traincheck.annotate(phase="main", fold=None)
        call()
        traincheck.annotate(phase=None)
        call()

    assert contexts(run) == [
        {},
        {"user.phase": "warmup", "user.fold": 2},
        {"user.phase": "main"},
        {},
    ]


def test_as_a_context_manager_it_goes_back_to_what_was_told_before(record):
    """Also after an exception; what else was told inside holds on."""
    with record() as run:
        traincheck.annotate(phase="main")
        with traincheck.annotate(phase="warmup", part="head"):
            call()
            traincheck.annotate(fold=1)
        call()
        with pytest.raises(KeyError), traincheck.annotate(phase="failing"):
            raise KeyError
        call()

    main = {"user.phase": "main", "user.fold": 1}
    assert contexts(run) == [{"user.phase": "warmup", "user.part": "head"}, main, main]


def test_it_holds_in_all_threads_beside_other_contexts(record):
    """A thread that did not tell it has it, too; modes stay those of the thread."""
    with record() as run, torch.no_grad():
        traincheck.annotate(phase="main")
        call()
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    assert contexts(run) == [{"grad_mode": False, "user.phase": "main"}, {"user.phase": "main"}]


def test_values_are_described_and_not_asked(record):
    """Any value can be told; of an object of the program only the type is."""
    with record() as run:
        traincheck.annotate(dtype=torch.float16, odd=Hostile(), tensor=torch.ones(2))
        call()

    (told,) = contexts(run)
    assert told["user.dtype"] == {"dtype": "float16"}
    assert told["user.odd"]["object"]["type"].endswith("Hostile")
    assert told["user.tensor"]["tensor"]["shape"] == [2]


@pytest.mark.parametrize(("asked", "told"), [((), {}), (("user",), {"user.phase": "main"})])
def test_a_plan_has_it_told_or_not(record, tmp_path, asked, told):
    """In a selective recording it is told where an invariant depends on it."""
    functions = (FunctionPlan(name=RELU),)
    plan = Plan(id="p", functions=functions, variables=(), contexts=asked)
    write_plan(tmp_path / "plan.json", plan)
    with record(plan_path=tmp_path / "plan.json") as run, traincheck.annotate(phase="main"):
        call()

    assert contexts(run) == [told]


def test_without_a_recording_nothing_is_done(record):
    """Programs keep their annotations; what was told before a recording is none of it."""
    with traincheck.annotate(phase="main"):
        with record() as run:
            call()
        call()

    assert contexts(run) == [{}]
