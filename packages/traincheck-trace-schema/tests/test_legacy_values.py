"""Values of TrainCheck 0.x become those of 1.0, and what it lost is not invented."""

from __future__ import annotations

from typing import Any

import pytest

from traincheck_trace_schema.codec import structure_value
from traincheck_trace_schema.legacy.names import documented_name, function_fields
from traincheck_trace_schema.legacy.values import digest, value

TENSOR = {
    "_ML_DAIKON_data_ID": 140374,
    "dtype": "torch.float16",
    "grad": None,
    "is_cpu": False,
    "is_cuda": True,
    "ndim": 2,
    "requires_grad": True,
    "shape": [2, 3],
}


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        ({"NoneType": None}, None),
        ({"int": 3}, 3),
        ({"int": 2**70}, {"int": str(2**70)}),
        ({"bool": True}, True),
        ({"str": "a"}, "a"),
        ({"float": 0.5}, 0.5),
        ({"float": 1}, 1),
        ({"float": float("nan")}, {"float": "nan"}),
        ({"float": float("-inf")}, {"float": "-inf"}),
        ({"torch.dtype": "torch.uint8"}, {"dtype": "uint8"}),
        ({"torch.device": {"type": "cuda", "index": 1}}, {"device": "cuda:1"}),
        ({"torch.device": {"type": "cpu", "index": None}}, {"device": "cpu"}),
        ({"torch.Size": [2, 3]}, {"tuple": [2, 3]}),
        ({"tuple": [1, [2, "a"]]}, {"tuple": [1, [2, "a"]]}),
        ({"list": [1.5]}, [1.5]),
        ({"set": [1]}, {"set": [1]}),
        ({"signal.Signals": 2}, {"object": {"type": "signal.Signals", "attributes": {"value": 2}}}),
        ({"a.Config": {"n": 3}}, {"object": {"type": "a.Config", "attributes": {"n": 3}}}),
        ({"a.Config": {"name": None}}, {"object": {"type": "a.Config"}}),
        ({"<class 'a.Tree'>": None}, {"object": {"type": "<class 'a.Tree'>"}}),
        ({"collections.deque": [1]}, {"object": {"type": "collections.deque"}}),
        ({"dict": {"lr": 0.1}}, {"object": {"type": "dict", "attributes": {"lr": 0.1}}}),
        ([{"int": 1}, {"str": "a"}], {"tuple": [1, "a"]}),
    ],
)
def test_a_value_is_what_it_was(old: Any, expected: Any) -> None:
    """Whatever has a counterpart becomes that, and is a value that 1.0 accepts."""
    assert value(old) == expected
    structure_value(value(old))


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        ({"float": None}, {"cut": "float"}),
        ({"list": {}}, {"cut": "list"}),
        ({"tuple": {}}, {"cut": "tuple"}),
        ({"set": {}}, {"cut": "set"}),
        ({"int": None}, {"cut": "int"}),
        ({"list": [None]}, [{"cut": "null"}]),
    ],
)
def test_what_was_lost_is_not_invented(old: Any, expected: Any) -> None:
    """A number that is not finite was written as null, a list with a tensor as an empty object."""
    assert value(old) == expected


def test_a_tensor_keeps_what_describes_it_and_no_address() -> None:
    """Shape, dtype and device; its addresses, flags and gradient say nothing that carries over."""
    expected = {"shape": [2, 3], "dtype": "float16", "device": "cuda", "requires_grad": True}

    assert value({"torch.cuda.HalfTensor": TENSOR}) == {"tensor": expected}
    assert value({"torch.nn.Parameter": TENSOR}) == {"tensor": expected}


def test_a_tensor_of_which_too_little_is_told_is_an_object() -> None:
    """Without its shape, say, as selective collection could leave it."""
    told = value({"torch.FloatTensor": {"ndim": 2, "_TRAINCHECK_data_ID": 3}})

    assert told == {"object": {"type": "torch.FloatTensor", "attributes": {"ndim": 2}}}


def test_deep_nesting_is_cut() -> None:
    """No recursion follows the input beyond a fixed depth."""
    nested: Any = []
    for _ in range(900):
        nested = [nested]

    structure_value(value({"list": nested}))


def test_a_hash_names_its_own_algorithm() -> None:
    """It is of the first row only, so it must never equal a digest of 1.0."""
    assert digest(1) == "row0:0000000000000001"
    assert digest(-1) == "row0:ffffffffffffffff"


@pytest.mark.parametrize(
    ("defined", "documented"),
    [
        ("torch.optim.sgd.SGD.step", "torch.optim.SGD.step"),
        ("torch.optim.optimizer.Optimizer.zero_grad", "torch.optim.Optimizer.zero_grad"),
        ("torch.nn.modules.linear.Linear.forward", "torch.nn.Linear.forward"),
        ("torch.nn.modules.module.Module.train", "torch.nn.Module.train"),
        ("torch._tensor.Tensor.backward", "torch.Tensor.backward"),
        ("torch._C.TensorBase.normal_", "torch.Tensor.normal_"),
        ("torch._VariableFunctionsClass.rand", "torch.rand"),
        ("torch.distributed.distributed_c10d.all_reduce", "torch.distributed.all_reduce"),
        ("torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grad_norm_"),
        ("torch.utils.data.dataloader.DataLoader.__iter__", "torch.utils.data.DataLoader.__iter__"),
        ("torch.amp.grad_scaler.GradScaler.step", "torch.GradScaler.step"),
    ],
)
def test_a_rule_derives_the_documented_name(defined: str, documented: str) -> None:
    """The name by place of definition stays an alias, so that old invariants match."""
    assert function_fields(defined)["name"] == documented
    assert function_fields(defined)["aliases"] == [defined]


@pytest.mark.parametrize(
    "name",
    [
        "torch.optim.lr_scheduler.StepLR.step",
        "torch.optim.sgd.sgd",
        "torch.nn.functional.relu",
        "torch.distributed.distributed_c10d._get_default_group",
        "torch.distributed.distributed_c10d.BackendConfig.__init__",
        "torch.nn.modules.dropout._DropoutNd.__init__",
        "transformers.models.gpt2.modeling_gpt2.GPT2Model.forward",
    ],
)
def test_where_no_rule_is_sound_the_name_stays(name: str) -> None:
    """What is private, documented where it is defined, or not of torch."""
    assert documented_name(name) == name


def test_a_method_of_an_optimizer_overrides_that_of_its_base_class() -> None:
    """What is claimed about every optimizer is claimed about it."""
    assert function_fields("torch.optim.adam.Adam.step")["bases"] == ["torch.optim.Optimizer.step"]
    assert "bases" not in function_fields("torch.optim.optimizer.Optimizer.step")


@pytest.mark.torch
def test_the_rules_hold_for_torch() -> None:
    """Each optimizer, module and collective of torch is found under the name that a rule gives."""
    torch = pytest.importorskip("torch")

    def found(name: str) -> Any:
        at = torch
        for part in name.split(".")[1:]:
            at = getattr(at, part)
        return at

    offered = [torch.optim, torch.nn, torch.nn.parallel, torch.utils.data, torch.nn.utils]
    defined = [
        thing
        for module in offered
        for thing in vars(module).values()
        if getattr(thing, "__module__", "").startswith("torch.") and isinstance(thing, type)
    ]
    names = {thing: f"{thing.__module__}.{thing.__qualname__}.f" for thing in defined}
    assert len(names) > 100
    for thing, name in names.items():
        documented = documented_name(name)
        assert found(documented.removesuffix(".f")) is thing
