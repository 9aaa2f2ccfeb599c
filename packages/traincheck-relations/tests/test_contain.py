"""`APIContainRelation` on small traces: it holds, it is broken, it does not apply."""

import pytest

from traincheck_relations.containment.contain import APIContainRelation
from traincheck_relations.engine import Watch, propose
from traincheck_relations.testing.models import Runs
from traincheck_relations.testing.traces import TraceBuilder, optimizer, tensor, train
from traincheck_trace_schema.invariants import APIParam, VarTypeParam
from traincheck_trace_schema.reading import open_run

STEP = "torch.optim.Optimizer.step"
RELATION = APIContainRelation()


def calls(parent, child):
    return APIParam(api_full_name=parent), APIParam(api_full_name=child)


def changes(function, attribute, quantifier="each", pre="anything", post="anything"):
    variable = VarTypeParam(
        var_type="torch.nn.Parameter",
        attr_name=attribute,
        pre_value=pre,
        post_value=post,
        quantifier=quantifier,
    )
    return APIParam(api_full_name=function), variable


@pytest.fixture
def trace(tmp_path):
    return TraceBuilder(tmp_path)


def examples(trace, *params):
    trace.write()
    watch = Watch(open_run([trace.folder]), {RELATION.name: RELATION}, {RELATION.name: params})
    found = [example for _, example in watch]
    assert watch.faults == []
    return found


def proposals(trace):
    trace.write()
    return set(
        propose(open_run([trace.folder]), {RELATION.name: RELATION}).candidates[RELATION.name]
    )


def test_a_call_at_any_depth_is_contained(trace):
    """A grandchild counts as much as a child, so a call that is not recorded changes nothing."""
    rank = trace.rank()
    with rank.call("outer"), rank.call("middle"), rank.call("inner"):
        pass

    (example,) = examples(trace, calls("outer", "inner"))

    assert example.held


def test_that_a_function_calls_itself_is_not_proposed(trace):
    """As `train`, which goes down to the parts of a model."""
    rank = trace.rank()
    with rank.call("outer"), rank.call("outer"), rank.call("inner"):
        pass

    assert proposals(trace) == {calls("outer", "inner")}


def test_a_call_without_its_child_is_a_broken_occasion(trace):
    """The second call, in which nothing is called, is told with its line and what happened."""
    rank = trace.rank()
    source = rank.source("train.py", 7)
    rank.step(0)
    with rank.call("outer"), rank.call("inner"):
        pass
    rank.step(1)
    with rank.call("outer", src=source):
        pass

    first, second = examples(trace, calls("outer", "inner"))

    assert (first.held, second.held) == (True, False)
    assert (second.at.window.step, second.at.source) == (1, "train.py:7")
    assert second.happened == "outer returned without calling inner"
    assert second.evidence


def test_a_base_name_stands_for_its_overrides(trace):
    """What is claimed of `Optimizer.step` is judged on a call of `SGD.step`."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    rank.function("torch.special.child", "torch.child")
    with rank.call("torch.optim.SGD.step"), rank.call("torch.special.child"):
        pass

    (example,) = examples(trace, calls(STEP, "torch.child"))

    assert example.held


def test_a_call_that_raised_or_never_ended_is_no_occasion(trace):
    """Only a call that returned could have kept its promise."""
    rank = trace.rank()
    with rank.call("outer", raises="ValueError"):
        pass
    rank.records.append({**rank.records[-2], "id": 99, "seq": 99})

    assert examples(trace, calls("outer", "inner")) == []


def test_a_gap_makes_open_calls_no_occasions(trace):
    """What was called while records were lost is not known."""
    rank = trace.rank()
    with rank.call("outer"):
        rank.gap("queue")

    assert examples(trace, calls("outer", "inner")) == []


def test_a_gap_in_an_observed_call_makes_it_no_occasion(trace):
    """What changed while records were lost is not known."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    rank.variable("w", data=tensor("a"), grad=None)
    with rank.call("torch.optim.SGD.step") as call:
        rank.observe("begin", call)
        rank.gap("sampling")
        rank.observe("end", call)

    assert examples(trace, changes(STEP, "data")) == []


def test_a_skipped_step_is_no_occasion(trace):
    """A gradient that is not finite makes a scaler skip the step: no data has to change."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    infinite = tensor("inf")
    infinite["tensor"]["finite"] = False
    rank.variable("w", data=tensor("a"), grad=tensor("g"))
    rank.variable("v", data=tensor("a"), grad=infinite)
    with rank.call("torch.optim.SGD.step") as call:
        rank.observe("begin", call)
        rank.observe("end", call)

    assert examples(trace, changes(STEP, "data"), changes(STEP, "data", "some")) == []


def test_where_nothing_is_to_clear_nothing_has_to_be_cleared(trace):
    """zero_grad of gradients that are None already is no occasion of `some`."""
    train(trace.rank(), 1)

    found = examples(
        trace, changes("torch.optim.Optimizer.zero_grad", "grad", "some", "non_zero", "none")
    )

    assert found == []


def test_a_stray_zero_gradient_does_not_silence_the_caller(trace):
    """What the optimizer does not hold says nothing about what it holds."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    rank.variable("frozen", held_by=("o",), data=tensor("a"), grad=None)
    rank.variable("stray", data=tensor("a"), grad=tensor("z", zero=True))
    with rank.call("torch.optim.SGD.step", of=optimizer("o")) as call:
        rank.observe("begin", call)
        rank.observe("end", call)

    (example,) = examples(trace, changes(STEP, "data", "some"))

    assert not example.held


def test_what_a_model_of_the_program_calls_is_its_architecture(trace):
    """And what all modules have in common is no rule; what one of torch calls is."""
    rank = trace.rank()
    names = ("__main__.Net.forward", "torch.nn.Dropout.forward", "torch.nn.Dropout1d.forward")
    for name in names:
        rank.function(name, "torch.nn.Module.forward")
        with rank.call(name), rank.call("torch.nn.functional.dropout"):
            pass

    parents = {parent.api_full_name for parent, _ in proposals(trace)}

    assert parents == set(names[1:])


def test_proposals_leave_out_what_runs_given_code(trace):
    """What a container calls says nothing about it, and what follows from two is not proposed."""
    rank = trace.rank()
    with rank.call("torch.nn.Sequential.forward"), rank.call("a"), rank.call("b"), rank.call("c"):
        pass

    assert proposals(trace) == {calls("a", "b"), calls("b", "c")}


def test_each_parameter_is_an_occasion_of_a_step(trace):
    """The parameter that is left behind is named, with the step and its facts."""
    train(trace.rank(), 3, stuck=("model.fc2.weight",), since=1)

    found = examples(trace, changes(STEP, "data"))

    broken = [(one.at.variable, one.at.window.step) for one in found if not one.held]
    assert len(found) == 6
    assert broken == [("model.fc2.weight", 1), ("model.fc2.weight", 2)]
    assert {one.context["var.held_by_caller"] for one in found} == {True}
    assert "model.fc2.weight.data as it was" in found[-1].happened


def test_a_step_is_one_occasion_of_some(trace):
    """`some` is broken only where no parameter changes at all."""
    both = ("model.fc1.weight", "model.fc2.weight")
    train(trace.rank(), 3, stuck=both, since=2)

    found = examples(trace, changes(STEP, "data", "some"))

    assert [(one.at.window.step, one.held) for one in found] == [(0, True), (1, True), (2, False)]
    assert "none of the 2 parameters that it holds" in found[-1].happened


def test_the_context_is_what_was_known_before(trace):
    """The gradient in the context of zero_grad is the one that it finds, not the one it leaves."""
    train(trace.rank(), 2)

    found = examples(trace, changes("torch.optim.Optimizer.zero_grad", "grad", pre="non_zero"))

    assert {one.context["var.grad"] for one in found} == {"non_zero"}
    assert {one.at.window.step for one in found} == {1}
    assert all(one.held for one in found)


def test_a_zero_gradient_says_nothing_about_data(trace):
    """An optimizer may leave a parameter whose gradient is zero: that is no occasion."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    rank.variable("w", held_by=("o",), data=tensor("a"), grad=tensor("z", zero=True))
    with rank.call("torch.optim.SGD.step", of=optimizer("o")) as call:
        rank.observe("begin", call)
        rank.observe("end", call)

    assert examples(trace, changes(STEP, "data"), changes(STEP, "data", "some")) == []


def test_an_attribute_that_was_not_looked_at_gives_no_occasion(trace):
    """No observation, no example; neither for a value that the trace only describes."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    undigested = {"tensor": {"shape": [2], "dtype": "float32", "device": "meta"}}
    rank.variable("w", data=tensor("a"), grad=tensor("g"))
    rank.variable("v", data=undigested, grad=tensor("h"))
    with rank.call("torch.optim.SGD.step") as call:
        rank.observe("begin", call, attributes=("grad",))
        rank.observe("end", call)
    with rank.call("torch.optim.SGD.step") as call:
        rank.observe("begin", call, roles=("buffer",))
        rank.observe("end", call)
    with rank.call("torch.optim.SGD.step") as call:
        rank.observe("begin", call)
        rank.observe("end", call)

    found = examples(trace, changes(STEP, "data"))

    assert [one.at.variable for one in found] == ["w"]


def test_proposals_name_the_most_general_function_too(trace):
    """What was seen of SGD is proposed of Optimizer, in both quantifiers, and nothing unseen."""
    train(trace.rank(), 2)

    found = proposals(trace)

    assert changes(STEP, "data") in found
    assert changes(STEP, "data", "some") in found
    assert changes("torch.optim.SGD.step", "data") in found
    assert changes("torch.Tensor.backward", "grad", pre="none", post="non_zero") in found
    assert changes("torch.Tensor.backward", "data") not in found


def test_requirements_name_what_must_be_recorded():
    """A change needs its function looked around, its attribute, and the gradient for data."""
    needed = RELATION.requires(changes(STEP, "data"))

    assert needed.observe == {STEP}
    assert set(needed.functions) == {STEP}
    assert needed.variables == {
        "parameter": {"data", "grad"},
        "optimizer": {"lr", "tolerance_grad"},
    }


def test_descriptions_are_sentences():
    """A person reads what is claimed without knowing the parameters."""
    zero_grad = changes("Optimizer.zero_grad", "grad", pre="non_zero", post="none")

    assert RELATION.describe(zero_grad) == (
        "Each call of Optimizer.zero_grad changes the grad of each torch.nn.Parameter "
        "from non-zero to None"
    )
    assert RELATION.describe(calls("a", "b")) == "Each call of a calls b"


@pytest.mark.parametrize("rate", [0, 0.0, 1e-9])
def test_a_learning_rate_of_zero_leaves_open_if_data_changes(trace, rate):
    """As where a schedule has ended; so of each parameter, and of some."""
    runs = Runs(RELATION, trace)
    model = runs.model()
    model.train([0])
    model.change("optimizer0.group0", lr=rate)
    model.rank.step(1)
    with model.stepping():
        pass

    found = runs.examples(changes(STEP, "data"), changes(STEP, "data", "some"))

    assert [(one.at.window.step, one.held) for one in found] == [(0, True)] * 3


def test_a_group_without_a_learning_rate_leaves_others_to_be_judged(trace):
    """Only of what is held by no other group nothing follows."""
    runs = Runs(RELATION, trace)
    model = runs.model()
    model.group("optimizer0.group1", lr=0)
    model.hold("model.bn.weight", ("optimizer0", 1))
    model.train([0, 1], gradients=())
    model.rank.step(2)
    for name in ("model.fc.weight", "model.bn.weight"):
        model.change(name, grad=tensor("g"))
    with model.stepping():
        pass

    each = runs.examples(changes(STEP, "data"))
    (*_, some) = runs.examples(changes(STEP, "data", "some"))

    assert [one.at.variable for one in each if one.at.window.step == 2] == ["model.fc.weight"]
    assert not some.held


def test_an_unknown_learning_rate_changes_nothing(trace):
    """A trace that does not tell it is judged as ever."""
    runs = Runs(RELATION, trace)
    model = runs.model()
    model.change("optimizer0.group0", lr={"object": {"type": "Schedule"}})
    for name in ("model.fc.weight", "model.bn.weight"):
        model.change(name, grad=tensor("g"))
    model.train([0], gradients=())

    assert [one.held for one in runs.examples(changes(STEP, "data"))] == [False, False]


def test_a_step_is_about_what_its_optimizer_holds(trace):
    """Another optimizer's parameter is no occasion; what is left behind of its own is found."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    own = rank.variable("netG.a", held_by=("o",), data=tensor("a"), grad=tensor("g"))
    rank.variable("netG.b", held_by=("o",), data=tensor("b"), grad=tensor("h"))
    rank.variable("netD.a", held_by=("other",), data=tensor("c"), grad=tensor("i"))
    with rank.call("torch.optim.SGD.step", of=optimizer("o")) as call:
        rank.observe("begin", call)
        rank.change(own, during=call, data=tensor("a2"))
        rank.observe("end", call)

    found = examples(trace, changes(STEP, "data"))

    assert {one.at.variable: one.held for one in found} == {"netG.a": True, "netG.b": False}


def test_a_backward_is_about_the_models_that_it_goes_through(trace):
    """In a GAN one model learns at a time; a layer of that one that gets nothing is found."""
    rank = trace.rank()
    reached = rank.variable("netD.a", held_by=("o",), data=tensor("a"), grad=None)
    rank.variable("netD.b", held_by=("o",), data=tensor("b"), grad=None)
    rank.variable("netG.a", held_by=("o",), data=tensor("c"), grad=None)
    for _ in range(5):
        rank.change(reached, grad=None)
        with rank.call("torch.Tensor.backward") as call:
            rank.observe("begin", call)
            rank.change(reached, during=call, grad=tensor("g"))
            rank.observe("end", call)

    found = examples(trace, changes("torch.Tensor.backward", "grad", pre="none", post="non_zero"))

    assert {one.at.variable: one.held for one in found} == {"netD.a": True, "netD.b": False}


def test_where_gradients_are_added_up_none_appears(trace):
    """A second backward in a step says nothing of what had no gradient: there is no such."""
    rank = trace.rank()
    one = rank.variable("model.a", data=tensor("a"), grad=tensor("g"))
    with rank.call("torch.Tensor.backward") as call:
        rank.observe("begin", call)
        rank.change(one, during=call, grad=tensor("h"))
        rank.observe("end", call)

    claim = changes("torch.Tensor.backward", "grad", "some", pre="none", post="non_zero")
    assert examples(trace, claim) == []


def test_what_has_no_gradient_where_gradients_are_added_up_says_nothing(trace):
    """It is frozen, or not used; only a backward that added nothing to another one is judged."""
    rank = trace.rank()
    one = rank.variable("model.a", data=tensor("a"), grad=tensor("g"))
    rank.variable("model.frozen", data=tensor("a"), grad=None, requires_grad=False)
    rank.variable("model.unused", data=tensor("a"), grad=None, requires_grad=True)
    for gradient in ("h", "h"):
        with rank.call("torch.Tensor.backward") as call:
            rank.observe("begin", call)
            rank.change(one, during=call, grad=tensor(gradient))
            rank.observe("end", call)

    claim = changes("torch.Tensor.backward", "grad", "some", pre="none", post="non_zero")
    assert [one.held for one in examples(trace, claim)] == [False]


@pytest.mark.parametrize(
    ("tolerance", "held"), [({}, [True, False]), ({"tolerance_grad": 1e-7}, [True])]
)
def test_an_optimizer_that_may_stop_has_converged_where_nothing_moves(trace, tolerance, held):
    """LBFGS has a tolerance; of others a step that changes nothing is told."""
    runs = Runs(RELATION, trace)
    model = runs.model()
    model.change("optimizer0.group0", lr=0.1, **tolerance)
    model.train([0])
    model.rank.step(1)
    for name in ("model.fc.weight", "model.bn.weight"):
        model.change(name, grad=tensor("g"))
    with model.stepping():
        pass

    assert [one.held for one in runs.examples(changes(STEP, "data", "some"))] == held


def test_what_a_module_clears_is_its_own(trace):
    """`netD.zero_grad()` leaves the gradients of other models."""
    rank = trace.rank()
    module = {"object": {"type": "Net", "name": "netD", "attributes": {"training": True}}}
    inside = rank.variable("netD.a", data=tensor("a"), grad=tensor("g"))
    rank.variable("netG.a", data=tensor("b"), grad=tensor("h"))
    with rank.call("torch.nn.Module.zero_grad", of=module) as call:
        rank.observe("begin", call)
        rank.change(inside, during=call, grad=None)
        rank.observe("end", call)

    claim = changes("torch.nn.Module.zero_grad", "grad", pre="non_zero", post="none")
    (example,) = examples(trace, claim)
    assert example.held
    assert "var.held_by_caller" not in example.context


def test_what_is_frozen_or_has_no_gradient_need_not_move(trace):
    """That it should have got one is claimed of the backward, not of the step."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    rank.variable("frozen", data=tensor("a"), grad=tensor("g"), requires_grad=False)
    rank.variable("unused", held_by=("o",), data=tensor("b"), grad=None, requires_grad=True)
    for _ in range(5):
        with rank.call("torch.Tensor.backward") as call:
            rank.observe("begin", call)
            rank.observe("end", call)
    with rank.call("torch.optim.SGD.step") as call:
        rank.observe("begin", call)
        rank.observe("end", call)

    backward = changes("torch.Tensor.backward", "grad", pre="none", post="non_zero")
    found = examples(trace, changes(STEP, "data"), backward)

    assert [(one.param, one.at.variable, one.held) for one in found] == [(1, "unused", False)] * 5


def test_gradients_are_cleared_to_none_or_to_zero(trace):
    """Which of them is an option of the program's."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.zero_grad", "torch.optim.Optimizer.zero_grad")
    one = rank.variable("model.a", held_by=("o",), data=tensor("a"), grad=tensor("g"))
    with rank.call("torch.optim.SGD.zero_grad", of=optimizer("o")) as call:
        rank.observe("begin", call)
        rank.change(one, during=call, grad=tensor("0", zero=True))
        rank.observe("end", call)

    claim = changes("torch.optim.Optimizer.zero_grad", "grad", pre="non_zero", post="none")
    assert [example.held for example in examples(trace, claim)] == [True]
