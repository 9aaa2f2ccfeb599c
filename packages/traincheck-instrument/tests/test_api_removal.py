"""After a recording everything is the very object that it was."""

import copy
import gc
import sys
import types
import weakref

import pytest
import torch
from torch import fx, nn
from torch.nn import functional


def everything():
    """Return every attribute of every module and class below torch, and every default."""
    seen = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "torch" or not isinstance(module, types.ModuleType):
            continue
        for attribute, value in list(vars(module).items()):
            seen[name, attribute] = value
            if issubclass(type(value), type) and value not in seen:
                seen[value] = value
                for member, held in vars(value).items():
                    seen[value, member] = held
                    if isinstance(held, types.FunctionType):
                        seen[value, member, "defaults"] = held.__defaults__
    return seen


def is_same(before, after):
    if type(before) is tuple and type(after) is tuple:  # defaults are made anew
        return len(before) == len(after) and all(map(is_same, before, after))
    return before is after


def is_note(key):
    """Whether a class or module notes something for itself there, as the number of hooks."""
    return isinstance(key, tuple) and key[1] in NOTES


NOTES = ("__annotations__", "__doc__", "__warningregistry__", "_abc_impl", "next_id")


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"with_private": True, "with_descriptors": True},
    ],
    ids=lambda wanted: "+".join(wanted) or "public",
)
def test_every_attribute_is_put_back(record, wanted):
    """Functions, methods, builtins and defaults; nothing is left that was not there."""
    functional.relu(torch.ones(1))
    before = everything()
    with record(**wanted) as run:
        during = everything()
        nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))(torch.ones(3, 2)).sum().backward()

    after = everything()
    replaced = [key for key in before if not is_same(before[key], during[key])]
    assert len(replaced) > 900
    keys = before.keys() & after.keys()
    assert [k for k in keys if not is_note(k) and not is_same(before[k], after[k])] == []
    assert [k for k in after.keys() - before.keys() if not is_note(k)] == []
    assert len(run.calls("torch.nn.BatchNorm1d.forward")) == 1


def test_what_torch_replaced_meanwhile_stays(record):
    """torch hooks `step` of a class when its first object is made: it works, and is silent."""

    class Mine(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    model = nn.Linear(2, 2)
    with record() as run:
        optimizer = Mine(model.parameters(), lr=0.1)
        optimizer.step()
    size = run.shards[0].stat().st_size
    optimizer.step()

    assert len(run.calls(f"{__name__}.{Mine.__qualname__}.step")) == 1
    assert run.shards[0].stat().st_size == size


def test_a_second_recording_records_once(record, tmp_path):
    """Wrappers of an ended recording that torch has wrapped in turn are passed through."""
    model = nn.Linear(2, 2)
    with record():
        torch.optim.Rprop(model.parameters())
    for shard in tmp_path.glob("trace_*"):
        shard.unlink()
    with record() as run:
        torch.optim.Rprop(model.parameters()).step()

    assert len(run.calls("torch.optim.Rprop.step")) == 1


def test_what_the_program_wrote_onto_a_function_is_kept(record):
    """An attribute set on a wrapped function is the function's own afterwards."""
    with record():
        functional.relu.mark = "mine"
        during = functional.relu

    try:
        assert during is not functional.relu
        assert functional.relu.mark == "mine"
    finally:
        del functional.relu.mark


def test_a_name_bound_during_a_recording_works_afterwards(record):
    """`from x import y` has bound the wrapper: it passes through."""
    with record() as run:
        from torch.nn.functional import relu6  # noqa: PLC0415  while the wrapper is there
    size = run.shards[0].stat().st_size

    assert relu6(torch.tensor([7.0])).item() == 6.0
    assert run.shards[0].stat().st_size == size


def test_copies_of_modules_are_made_as_before(record):
    """A deep copy of a module whose class was wrapped is a module of the same class."""
    with record():
        model = copy.deepcopy(nn.Sequential(nn.Linear(2, 2)))

    assert type(model[0]) is nn.Linear


def test_a_class_of_the_program_lives_no_longer_than_without(record):
    """Nor do the tensors that its methods know; one that lives has its own methods back."""

    def make():
        known = torch.ones(3)

        class Net(nn.Module):
            def load_state_dict(self, state, strict=True):  # noqa: FBT002  as torch has it
                assert known.numel() == 3
                return super().load_state_dict(state, strict)

        return Net, weakref.ref(known)

    kept, _ = make()
    own = vars(kept)["load_state_dict"]
    gone, tensor = make()
    with record() as run:
        for net in (kept(), gone()):
            net.load_state_dict({})
        assert vars(kept)["load_state_dict"] is not own
        fx.symbolic_trace(nn.Linear(2, 2))  # for which wrappers are suspended
        kept().load_state_dict({})
        gone = weakref.ref(gone)
        del net
        gc.collect()
        assert (gone(), tensor()) == (None, None)

    assert vars(kept)["load_state_dict"] is own
    assert len([one for one in run.records("call_begin") if "Net.load" in one["function"]]) == 3
