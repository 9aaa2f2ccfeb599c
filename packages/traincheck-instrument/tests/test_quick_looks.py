"""Looks that read only a sample of large tensors: what they see, what they miss, what is told."""

import ctypes

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import traincheck_instrument as traincheck
from traincheck_instrument.content.contents import Contents, Slot
from traincheck_instrument.content.digest import fingerprint
from traincheck_instrument.encode.tensors import TensorDescriber

SIZE = 64 * 128  # numbers of 4 bytes: twice what is always read whole
UNSAMPLED = 1000  # none of the first, middle or last 256 numbers
NUMBERS = st.sampled_from((0, 255, 256, UNSAMPLED, 3967, 3968, 4095, 4223, 4224, 7935, 7936, 8191))


def write_past_the_counter(tensor, index, byte=0x11):
    ctypes.memset(tensor.data_ptr() + 4 * index, byte, 4)


def write_in_place(tensor, index):
    with torch.no_grad():
        tensor.view(-1)[index] += 1.0


def assign_data(tensor):
    tensor.data = tensor.data.clone()
    write_past_the_counter(tensor, UNSAMPLED)


def restride(tensor):
    tensor.data = tensor.data.t().contiguous().t()
    write_past_the_counter(tensor, UNSAMPLED)


SEEN_AT_ONCE = {
    "in place": lambda tensor: write_in_place(tensor, UNSAMPLED),
    "begin": lambda tensor: write_past_the_counter(tensor, 0),
    "middle": lambda tensor: write_past_the_counter(tensor, SIZE // 2),
    "end": lambda tensor: write_past_the_counter(tensor, SIZE - 1),
    ".data": lambda tensor: tensor.data.mul_(2),
    "foreach": lambda tensor: torch._foreach_add_([tensor.data], 1.0),
    "storage": lambda tensor: tensor.untyped_storage().fill_(3),
    "assignment": assign_data,
    "other layout": restride,
}


class Run:
    """A model of one large weight, whose gradient is there, and an optimizer that changes nothing.

    Data is read whole when an optimizer's step ends, gradients are when a backward does.
    """

    def __init__(self):
        self.model = nn.Linear(128, 64, bias=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)
        traincheck.track(self.model, name="model")
        traincheck.start_step()
        self.model(torch.ones(2, 128)).sum().backward()
        self.optimizer.step()
        traincheck.start_step()

    @property
    def weight(self):
        return self.model.weight


def looks_at(records, attribute):
    return [
        one
        for one in records
        if one["kind"] == "observe"
        and one["roles"] == ["parameter"]
        and attribute in one["attributes"]
    ]


def the_change(records, attribute):
    """Return the only change of an attribute in the second step, and the look that follows it."""
    (change,) = (
        one
        for one in records
        if one["kind"] == "var" and one["step"] == 1 and attribute in one["attributes"]
    )
    later = (one for one in looks_at(records, attribute) if one["seq"] > change["seq"])
    return change, next(later)


@pytest.mark.parametrize("route", SEEN_AT_ONCE)
def test_what_touches_counter_sample_or_place_is_seen_at_the_next_look(record, route):
    """A quick look, at the begin of the optimizer's step; the change lies before it."""
    with record() as recorded:
        run = Run()
        SEEN_AT_ONCE[route](run.weight)
        run.optimizer.step()
        traincheck.start_step()

    records = recorded.records()
    change, later = the_change(records, "data")

    assert (later["phase"], later["function"]) == ("begin", "torch.optim.SGD.step")
    assert "call" not in change
    last = max(one["seq"] for one in looks_at(records, "data") if one["seq"] < change["seq"])
    assert change["between"] == [last, change["seq"]]


def test_what_touches_neither_is_seen_when_all_is_read_and_not_said_to_be_of_the_call(record):
    """The end of an optimizer's step reads data whole; the change may be older than its begin."""
    with record() as recorded:
        run = Run()
        write_past_the_counter(run.weight, UNSAMPLED)
        run.optimizer.step()
        traincheck.start_step()

    records = recorded.records()
    change, later = the_change(records, "data")

    assert (later["phase"], later["function"]) == ("end", "torch.optim.SGD.step")
    assert "call" not in change
    looks = [one for one in looks_at(records, "data") if one["seq"] < change["seq"]]
    assert [one["phase"] for one in looks[-2:]] == ["step_end", "begin"]
    assert change["between"] == [looks[-2]["seq"], change["seq"]]


def test_what_touches_neither_is_seen_at_the_latest_when_the_step_ends(record):
    """Looks between it and there, which did not read the gradient whole, are passed over."""
    with record() as recorded:
        run = Run()
        write_past_the_counter(run.weight.grad, UNSAMPLED)
        run.optimizer.step()
        traincheck.start_step()

    records = recorded.records()
    change, later = the_change(records, "grad")

    assert later["phase"] == "step_end"
    looks = [one for one in looks_at(records, "grad") if one["seq"] < change["seq"]]
    assert [one["phase"] for one in looks[-3:]] == ["step_end", "begin", "end"]
    assert change["between"] == [looks[-3]["seq"], change["seq"]]
    assert change["attributes"]["grad"]["tensor"]["digest"]


def test_a_change_by_a_call_that_shows_in_the_sample_is_of_the_call(record):
    """From the first time on."""
    with record() as recorded:
        run = Run()
        run.optimizer.param_groups[0]["lr"] = 0.1
        run.optimizer.step()
        traincheck.start_step()

    change, later = the_change(recorded.records(), "data")

    assert (change["call"], later["phase"]) == (later["call"], "end")
    assert "between" not in change


def test_what_changes_elsewhere_is_read_whole_from_then_on(record):
    """The first time the call is not named: the optimizer may have written what was there."""
    with record() as recorded:
        run = Run()
        run.optimizer.param_groups[0]["lr"] = 0.1
        run.weight.grad.zero_()
        run.weight.grad.view(-1)[UNSAMPLED] = 1.0
        for _ in range(3):
            run.optimizer.step()

    changes = recorded.changes("data")

    assert ["call" in one for one in changes] == [False, True, True]
    assert ["between" in one for one in changes] == [True, False, False]


def contents_of(number):
    tensor = torch.full((SIZE,), float(number))
    return tensor, Slot("data"), Contents(TensorDescriber())


def sampled(tensor):
    """Return what a quick look reads: the begin, the middle and the end."""
    blocks = tensor[:256], tensor[3968:4224], tensor[SIZE - 256 :]
    return b"".join(bytes(block.untyped_storage()) for block in map(torch.clone, blocks))


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(("past", "in place", "quick", "whole")), NUMBERS),
        max_size=12,
    )
)
def test_a_quick_look_misses_only_what_shows_nowhere_and_the_next_whole_one_says_so(steps):
    """The mark is that of the content, or, where no trace of a change shows, of what was read."""
    tensor, slot, contents = contents_of(1)
    read = contents.mark(tensor, slot)
    shown = sampled(tensor)
    in_place = needs_all = False
    may_be_old = False  # the last look was quick
    for number, (step, index) in enumerate(steps):
        if step == "past":
            write_past_the_counter(tensor, index, byte=number + 1)
        elif step == "in place":
            write_in_place(tensor, index)
            in_place = True
        else:
            shows = sampled(tensor) != shown  # not if one write takes back what another did
            mark = contents.mark(tensor, slot, is_quick=step == "quick")

            is_whole = step == "whole" or shows or in_place or needs_all
            assert mark == (fingerprint(tensor) if is_whole else read)
            assert slot.is_late == (mark != read and not shows and may_be_old)
            needs_all = needs_all or (mark != read and not shows)
            may_be_old = not is_whole
            if is_whole:
                read, shown, in_place = mark, sampled(tensor), False


def test_a_tensor_that_comes_after_none_is_read_whole():
    """Where the last one lay, with the same version and sample: as new gradients may."""
    tensor, slot, contents = contents_of(0)
    contents.mark(tensor, slot)
    slot.leave()
    write_past_the_counter(tensor, UNSAMPLED)

    assert contents.mark(tensor, slot, is_quick=True) == fingerprint(tensor)
    assert not slot.is_late


def test_tensors_without_a_counter_are_looked_at_too():
    """Those of inference mode have none: the sample decides alone."""
    with torch.inference_mode():
        tensor = torch.zeros(SIZE)
    slot, contents = Slot("data"), Contents(TensorDescriber())
    read = contents.mark(tensor, slot)

    write_past_the_counter(tensor, UNSAMPLED)
    assert contents.mark(tensor, slot, is_quick=True) == read
    write_past_the_counter(tensor, 0)
    assert contents.mark(tensor, slot, is_quick=True) == fingerprint(tensor)


@pytest.mark.parametrize("count", [1, 4096])
def test_small_tensors_are_always_read_whole(count):
    """To read a sample would take as long."""
    tensor, slot, contents = torch.zeros(count), Slot("data"), Contents(TensorDescriber())
    contents.mark(tensor, slot)
    write_past_the_counter(tensor, min(UNSAMPLED, count - 1))

    assert contents.mark(tensor, slot, is_quick=True) == fingerprint(tensor)
    assert not slot.is_late
