"""What a recording holds of a piece of training that runs in this process."""

import copy
import io
import linecache
import os
import resource
import signal
import sys
import threading
import time
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim.optimizer import _foreach_supported_types

import traincheck_instrument as traincheck
from traincheck_instrument import session
from traincheck_instrument.content import contents
from traincheck_instrument.current import Current
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.plan import FunctionPlan, Plan, VariablePlan
from traincheck_trace_schema.plan_file import write_plan


def train(model, optimizer, steps=3):
    for _ in range(steps):
        traincheck.start_step()
        optimizer.zero_grad()
        functional.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()
        optimizer.step()


def test_calls_nest_and_name_their_line(record):
    """A call inside a call names it as its parent; both name the line of user code."""
    with record() as run:
        nn.ReLU()(torch.ones(1, 3))
        functional.relu6(torch.ones(1))

    (outer,) = run.calls("torch.nn.ReLU.forward")
    (inner,) = run.calls("torch.nn.functional.relu")
    assert inner["parent"] == outer["id"]
    source = {one["id"]: one for one in run.records("source")}
    line = source[run.calls("torch.nn.functional.relu6")[0]["src"]]
    assert line["file"] == __file__
    assert "functional.relu6(" in linecache.getline(__file__, line["line"])
    assert run.records("footer")[0]["records"]["call_begin"] == len(run.records("call_begin"))


def test_arguments_have_their_parameter_names(record):
    """Positional and keyword arguments are both known by name; the module is `self`."""
    with record() as run:
        functional.dropout(torch.ones(3), 0.25, training=False)
        nn.ReLU().eval()(torch.ones(2))

    (call,) = run.calls("torch.nn.functional.dropout")
    assert (call["args"]["p"], call["args"]["training"]) == (0.25, False)
    (relu,) = run.calls("torch.nn.ReLU.forward")
    assert relu["self"]["object"]["attributes"] == {"training": False}


def test_what_a_call_leaves_out_is_told_once_with_the_function(record):
    """The plain defaults, of builtins too; those of a plan are of the arguments it asks for."""
    with record() as run:
        functional.dropout(torch.ones(3))
        functional.scaled_dot_product_attention(*[torch.ones(1, 2, 4)] * 3)

    told = {one["name"]: one["defaults"] for one in run.records("function")}
    assert told["torch.nn.functional.dropout"] == {"p": 0.5, "training": True, "inplace": False}
    attention = told["torch.nn.functional.scaled_dot_product_attention"]
    assert (attention["dropout_p"], attention["is_causal"]) == (0.0, False)
    (call,) = run.calls("torch.nn.functional.dropout")
    assert [*call["args"]] == ["input"]


def test_a_plan_tells_defaults_only_of_what_it_asks_for(record, tmp_path):
    """Of an argument that is not recorded nobody knows if it was left out."""
    entry = FunctionPlan(name="torch.nn.functional.dropout", arguments=("training",))
    write_plan(tmp_path / "plan.json", Plan(id="p", functions=(entry,), variables=()))
    with record(plan_path=tmp_path / "plan.json") as run:
        functional.dropout(torch.ones(3), 0.1)

    (told,) = run.records("function")
    assert told["defaults"] == {"training": True}


def test_an_exception_of_the_program_passes_through(record):
    """The program sees its own exception; the trace has a `call_error`."""
    with record() as run, pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        nn.Linear(2, 2)(torch.ones(2, 3))

    (error,) = run.records("call_error")
    assert error["exception"] == "builtins.RuntimeError"


def test_gradients_and_data_change_in_the_calls_that_change_them(record):
    """backward makes gradients, step changes data, zero_grad clears: each names its call."""
    model = nn.Linear(3, 2)
    with record() as run:
        traincheck.track(model, name="model")
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)

    functions = {one["id"]: one["function"] for one in run.records("call_begin")}
    by_attribute = {
        name: {functions.get(one.get("call")) for one in run.changes(name)}
        for name in ("data", "grad")
    }
    assert by_attribute == {
        "data": {"torch.optim.SGD.step"},
        "grad": {"torch.Tensor.backward", "torch.optim.Optimizer.zero_grad"},
    }
    assert {tuple(one["names"]) for one in run.variables()} == {
        ("model.weight",),
        ("model.bias",),
    }


def test_a_variable_tells_which_optimizer_holds_it(record):
    """Held by none before there is an optimizer; then by it, in its group."""
    model = nn.Linear(3, 2)
    with record() as run:
        traincheck.track(model, name="model")
        groups = [{"params": [model.bias]}, {"params": [model.weight], "lr": 0.2}]
        optimizer = torch.optim.SGD(groups, lr=0.1)
        train(model, optimizer, steps=1)

    assert all(one["held_by"] == [] for one in run.variables()[:2])
    held = {one["names"][0]: one["held_by"] for one in run.variables()}
    assert held == {
        "model.bias": [{"optimizer": "optimizer0", "group": 0}],
        "model.weight": [{"optimizer": "optimizer0", "group": 1}],
    }
    (step,) = run.calls("torch.optim.SGD.step")
    assert step["self"]["object"]["name"] == "optimizer0"


def test_a_write_past_every_call_is_seen_when_the_step_ends(record):
    """`.data` written by hand belongs to no call, but to the time between two observations."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record() as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        model.weight.data.add_(1)
        traincheck.start_step()
        optimizer.zero_grad()

    (change,) = run.changes("data")
    assert "call" not in change
    seen = {one["seq"]: one["phase"] for one in run.records("observe")}
    assert seen[change["between"][0]] == "step_end"
    assert seen[min(seq for seq in seen if seq > change["seq"])] == "step_end"


def test_what_the_program_writes_onto_a_parameter_is_kept(record):
    """A mark of a framework is an attribute of the variable; objects and private marks are not."""
    model = nn.Linear(3, 2)
    model.weight.tensor_model_parallel = True
    model.weight.group = object()
    model.weight._hidden = 1
    with record() as run:
        traincheck.track(model, name="model")

    weight = next(one for one in run.records("var") if one["names"] == ["model.weight"])
    assert weight["attributes"].keys() - {"data", "grad", "requires_grad"} == {
        "tensor_model_parallel"
    }
    assert weight["attributes"]["tensor_model_parallel"] is True


def test_tied_parameters_are_one_variable_with_both_names(record):
    """A shared parameter has one record with all its names, and stays shared."""
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    model["b"].weight = model["a"].weight
    with record() as run:
        traincheck.track(model, name="model")

    names = sorted(tuple(one["names"]) for one in run.variables())
    assert ("model.a.weight", "model.b.weight") in names
    assert len(names) == 3
    assert model["b"].weight is model["a"].weight


def test_a_broken_tie_shows_as_a_variable_that_appears(record):
    """A parameter that takes the place of a shared one appears under the name it took."""
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    model["b"].weight = model["a"].weight
    with record() as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        model["b"].weight = nn.Parameter(model["a"].weight.detach().clone())
        traincheck.start_step()

    appeared = [tuple(one["names"]) for one in run.records("var") if one["event"] == "appeared"]
    assert ("model.b.weight",) in appeared


def test_the_override_and_its_super_are_one_call(record):
    """An optimizer that users write counts as `Optimizer.step`, whatever it calls above."""

    class Mine(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    model = nn.Linear(3, 2)
    with record() as run:
        train(model, Mine(model.parameters(), lr=0.1), steps=2)

    described = {one["name"]: one for one in run.records("function")}
    steps = [
        name for name, one in described.items() if "torch.optim.Optimizer.step" in one["bases"]
    ]
    assert len(steps) == 1
    assert steps[0].endswith("Mine.step")
    assert len(run.calls(steps[0])) == 2


def test_steps_that_are_not_sampled_leave_a_gap_and_a_new_baseline(record):
    """After a pause the state of each variable is told anew, which is no change."""
    model = nn.Linear(3, 2)
    with record(interval=2) as run:
        traincheck.track(model, name="model")
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=4)

    steps = {one["step"]: one["sampled"] for one in run.records("step")}
    assert steps == {0: True, 1: False, 2: True, 3: False}
    assert {one["step"] for one in run.records("call_begin") if one["step"] >= 0} == {0, 2}
    assert [one["reason"] for one in run.records("gap")] == ["sampling"]
    baselines = [one for one in run.variables() if one["event"] == "baseline"]
    assert {one["step"] for one in baselines} == {2}
    assert all(set(one["attributes"]) == {"data", "grad", "requires_grad"} for one in baselines)


def test_evaluation_restores_the_stage(record):
    """A pass of evaluation has a stage and steps of its own, and ends in the stage before it."""
    with record() as run:
        traincheck.start_step()
        with traincheck.evaluation():
            for _ in range(2):
                traincheck.start_eval_step()
        traincheck.annotate_stage("checkpointing")

    stages = [one["stage"] for one in run.records("stage")]
    assert stages == ["training", "evaluation", "training", "checkpointing"]
    assert [one.get("eval_step") for one in run.records("step")] == [None, 0, 1]


def test_everything_is_put_back(record):
    """After a recording each public function is the object that it was before."""
    before = (functional.relu, nn.Linear.forward, nn.utils.clip_grad_norm_, torch.jit.script)
    layer = nn.TransformerEncoderLayer.__init__
    defaults = layer.__defaults__
    new = vars(nn.Parameter)["__new__"]
    types = list(_foreach_supported_types)
    with record():
        assert functional.relu is not before[0]
        assert functional.relu in layer.__defaults__

    after = (functional.relu, nn.Linear.forward, nn.utils.clip_grad_norm_, torch.jit.script)
    assert after == before
    assert layer.__defaults__ == defaults
    assert vars(nn.Parameter)["__new__"] is new
    assert _foreach_supported_types == types


def test_nothing_is_recorded_after_the_end(record):
    """Wrappers that torch has wrapped in turn stay, and do nothing."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.RMSprop(model.parameters())
    with record() as run:
        train(model, optimizer, steps=1)
    size = run.shards[0].stat().st_size

    train(model, optimizer, steps=1)

    assert run.shards[0].stat().st_size == size


def test_tracked_parameters_are_parameters_to_everyone(record):
    """Copies, state dicts, saving and new parameters made of tracked ones behave as without us."""
    model = nn.Linear(3, 2)
    model.bias.requires_grad = False
    printed = [repr(parameter) for parameter in (model.weight, model.bias)]
    with record():
        traincheck.track(model, name="model")
        assert [repr(parameter) for parameter in (model.weight, model.bias)] == printed
        copied = copy.deepcopy(model)
        again = nn.Parameter(model.weight)
        buffer = io.BytesIO()
        torch.save(model, buffer)
        model.load_state_dict(copied.state_dict())
        halved = copy.deepcopy(model).half()

    assert isinstance(again, nn.Parameter)
    assert repr(model.weight).startswith("Parameter containing")
    assert halved.weight.dtype is torch.float16
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    assert type(loaded.weight) is nn.Parameter
    assert torch.equal(loaded.weight, model.weight)
    assert torch.equal(copied.weight, model.weight)


def test_parameters_are_given_back(record):
    """After the recording parameters are plain ones again, for all that torch does with them."""
    model = nn.Linear(3, 2)
    with record():
        traincheck.track(model, name="model")
        inside = type(model.weight)

    assert inside is not nn.Parameter
    assert type(model.weight) is nn.Parameter
    torch.nn.utils.parametrizations.weight_norm(model)


def test_a_compiled_model_has_no_break_of_ours(record):
    """The compiler leaves the wrappers out: the whole graph is one, and gives the same result."""
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    x = torch.ones(1, 3)
    plain = model(x)
    with record():
        traincheck.track(model, name="model")
        compiled = torch.compile(model, backend="eager", fullgraph=True)

        assert torch.equal(compiled(x), plain)


def test_what_torch_knows_by_identity_stays(record):
    """Devices as contexts, scripted functions, defaults of layers and dispatch go on as before."""

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__ if func is torch.mean else NotImplemented

    with record():
        with torch.device("meta"):
            assert torch.ones(2).device.type == "meta"
        assert torch.mean(torch.ones(2).as_subclass(Logged)) == "mean"
        with pytest.warns(DeprecationWarning, match="torch.jit.script"):
            assert torch.jit.script(scripted)(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
        assert nn.TransformerEncoderLayer(8, 2).activation_relu_or_gelu == 1
        with warnings.catch_warnings():  # torch scripts its decompositions here
            warnings.simplefilter("ignore")
            _, tangent = torch.func.jvp(torch.sigmoid, (torch.zeros(2),), (torch.ones(2),))
        assert tangent.tolist() == [0.25, 0.25]


def test_a_mode_of_the_program_sees_none_of_our_operations(record):
    """What looks at variables is not taken for the program's doing."""

    class Counting(torch.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

    def step(model, optimizer):
        with Counting() as counting:
            optimizer.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
        return counting.calls

    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer)
    plain = step(model, optimizer)
    with record():
        traincheck.track(model, name="model")
        recorded = step(model, optimizer)

    assert recorded == plain


def test_a_lazy_module_is_followed_when_it_has_a_shape(record):
    """A parameter without a shape is no variable yet, and stops neither looking nor counting."""
    model = nn.Sequential(nn.LazyLinear(2))
    with record() as run:
        traincheck.track(model, name="model")
        model(torch.ones(1, 3))
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)

    assert {one["step"] for one in run.records("step")} == {0, 1}
    assert ("model.0.weight",) in {tuple(one["names"]) for one in run.records("var")}


def test_two_threads_that_train_are_not_looked_at(record):
    """One could free what the other reads: looking ends, which the trace says."""
    models = [nn.Linear(3, 2) for _ in range(2)]
    with record() as run:
        for number, model in enumerate(models):
            traincheck.track(model, name=f"model{number}")
        threads = [
            threading.Thread(
                target=train, args=(model, torch.optim.SGD(model.parameters(), lr=0.1), 50)
            )
            for model in models
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert any("several threads train" in one.get("detail", "") for one in run.records("gap"))


def test_what_a_failed_look_missed_is_told_by_the_next(record, monkeypatch):
    """A change that was seen but not told is in the next baseline, not taken for no change."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record() as run:
        run.recorder.faults.strict = False
        traincheck.track(model, name="model")
        train(model, optimizer, steps=1)
        working = contents.Contents.mark
        calls = iter(range(100))
        monkeypatch.setattr(
            contents.Contents,
            "mark",
            lambda *them, **how: 1 / 0 if next(calls) == 1 else working(*them, **how),
        )
        train(model, optimizer, steps=1)

    assert [one["reason"] for one in run.records("gap")] == ["fault"]
    (gap,) = run.records("gap")
    later = [one for one in run.records("var") if one["seq"] > gap["seq"]]
    assert {one["event"] for one in later[:2]} == {"baseline"}
    begun = {one["id"] for one in run.records("call_begin")}
    assert begun == {one["id"] for one in run.records("call_end")}


def test_a_parameter_that_went_in_a_pause_is_told_gone(record):
    """Otherwise it would seem to be there, and never to change again."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(interval=2) as run:
        traincheck.track(model, name="model")
        train(model, optimizer, steps=2)
        del model[1]
        traincheck.start_step()

    gone = [one["names"] for one in run.variables() if one["event"] == "gone"]
    assert sorted(gone) == [["model.1.bias"], ["model.1.weight"]]


def test_a_disk_that_is_full_for_a_while_leaves_a_gap(record):
    """Whole lines only, with the number of those that are missing, and training goes on."""
    with record() as run:
        torch.nn.functional.relu(torch.ones(1))
        path = wait_for(run)
        size = path.stat().st_size
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limit[1]))
        for _ in range(300):
            functional.relu(torch.ones(1))
        while not Current.session._shard._writer.has_loss:
            time.sleep(0.01)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        functional.relu(torch.ones(1))

    (gap,) = run.records("gap")
    assert gap["reason"] == "disk"
    assert gap["count"] > 0


def wait_for(run):
    """Return the shard when what was recorded so far is on disk."""
    while not run.shards or len(run.shards[0].read_bytes().splitlines()) < 4:
        time.sleep(0.01)
    return run.shards[0]


def scripted(x: torch.Tensor) -> torch.Tensor:
    return functional.relu(x)


def test_a_fault_of_ours_does_not_reach_the_program(record, capsys, monkeypatch):
    """It is told once, counted as a gap, and the program goes on with the right result."""
    with record() as run:
        run.recorder.faults.strict = False

        def broken(*_):
            raise KeyError("ours")

        monkeypatch.setattr(run.recorder.calls, "_write", broken)
        results = [functional.relu(torch.tensor([-1.0, 2.0])).sum().item() for _ in range(3)]

    assert results == [2.0, 2.0, 2.0]
    assert capsys.readouterr().err.count("traincheck: not recorded") == 1
    assert [one["reason"] for one in run.records("gap")] == ["fault"] * 3


def test_threads_have_stacks_of_their_own(record):
    """A call in another thread is not taken for a child of the main thread's call."""
    with record() as run:
        thread = threading.Thread(target=lambda: functional.relu(torch.ones(2)))

        class Waits(nn.Module):
            def forward(self, x):
                thread.start()
                thread.join()
                return x

        nn.Sequential(Waits())(torch.ones(1))

    (relu,) = run.calls("torch.nn.functional.relu")
    assert relu["thread"] != run.calls("torch.nn.Sequential.forward")[0]["thread"]
    assert "parent" not in relu


def test_records_of_several_threads_are_numbered_as_they_lie_in_the_file(record):
    """Their order is the file's, however the threads take turns (`records` holds it to that)."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with record() as run:
            threads = [threading.Thread(target=call_often) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert len(run.calls("torch.nn.functional.relu")) == 4 * 300


def call_often():
    for _ in range(300):
        functional.relu(torch.ones(1))


def test_a_forked_worker_writes_a_shard_of_its_own(record):
    """The child's records go to its own file, and never into the parent's."""
    with record() as run:
        functional.relu(torch.ones(1))
        child = os.fork()
        if child == 0:
            functional.relu6(torch.zeros(1))
            session.end(clean=True)
            os._exit(0)
        os.waitpid(child, 0)

    shards = {shard: shard.read_text() for shard in run.shards}
    assert len(shards) == 2
    of_child = next(text for shard, text in shards.items() if f"_p{child}" in shard.name)
    assert '"role":"worker"' in of_child
    called = [one["function"] for one in map(loads, of_child.splitlines()) if "args" in one]
    assert called == ["torch.nn.functional.relu6"]


def test_a_plan_limits_what_is_recorded(record, tmp_path):
    """Only the named functions, arguments and attributes; a base name stands for its overrides."""
    plan = Plan(
        id="p",
        functions=(
            FunctionPlan(name="torch.optim.Optimizer.step"),
            FunctionPlan(name="torch.nn.functional.dropout", arguments=("p",), result=True),
        ),
        variables=(VariablePlan(role="parameter", attributes=("data",)),),
        observe=("torch.optim.Optimizer.step",),
    )
    write_plan(tmp_path / "plan.json", plan)
    model = nn.Linear(3, 2)
    with record(plan_path=tmp_path / "plan.json") as run:
        traincheck.track(model, name="model")
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=1)
        functional.dropout(torch.ones(2), 0.5)

    assert [one["function"] for one in run.records("call_begin")] == [
        "torch.optim.SGD.step",
        "torch.nn.functional.dropout",
    ]
    (dropout,) = run.calls("torch.nn.functional.dropout")
    assert dropout["args"] == {"p": 0.5}
    assert "args" not in run.calls("torch.optim.SGD.step")[0]
    assert len(run.changes("data")) == 2
    assert run.changes("grad") == []
    (header,) = run.records("header")
    assert (header["recording"]["mode"], header["recording"]["plan_id"]) == ("plan", "p")
