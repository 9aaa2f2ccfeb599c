"""Whether two recorded values are the same, and in what they differ."""

import pytest

from traincheck_check.comparing.values import Tolerance, parting, shown

EXACT = Tolerance()


def tensor(**fields):
    return {"tensor": {"shape": [2], "dtype": "float32", "device": "cpu", **fields}}


def named(type_, **fields):
    return {"object": {"type": type_, **fields}}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        ({"float": "nan"}, {"float": "nan"}),
        ({"set": ["a", "b"]}, {"set": ["b", "a"]}),
        ("/runs/one/last.pt", "/runs/two/last.pt"),
        ("tcp://127.0.0.1:29500", "tcp://127.0.0.1:41233"),
        ("<Store at 0x7f01aa>", "<Store at 0x7f99bb>"),
        ("/scratch/tmpab12_xyz", "/scratch/tmpq9f_4kkk"),
        (named("__main__.Net"), named("__mp_main__.Net")),
        (tensor(device="cuda:0"), tensor(device="cuda:1")),
        (tensor(digest="xxh3:01"), tensor()),
        (tensor(digest="xxh3:01"), tensor(digest="sha:02")),
        (tensor(digest="xxh3:01", finite=True), tensor(digest="xxh3:01")),
        (tensor(requires_grad=False), tensor()),
        ({"device": "cuda:0"}, {"device": "cpu"}),
    ],
)
def test_what_says_nothing_of_the_program_is_no_difference(a, b):
    """Addresses, ports, places of files, devices, and what only one trace tells."""
    assert parting(a, b, EXACT) is None
    assert parting(b, a, EXACT) is None


@pytest.mark.parametrize(
    ("a", "b", "where"),
    [
        (0.1, 0.2, ""),
        (True, 1, ""),
        (None, 0, ""),
        ("mean", "sum", ""),
        ("/runs/one/best.pt", "/runs/one/last.pt", ""),
        ([1, 2], [1, 3], "[1]"),
        ([1, 2], [1, 2, 3], ".length"),
        ({"tuple": [1, {"dtype": "float32"}]}, {"tuple": [1, {"dtype": "float16"}]}, "[1]"),
        (named("a.X"), named("a.Y"), ".type"),
        (named("a.X", name="optimizer0"), named("a.X", name="optimizer1"), ".name"),
        (
            named("a.X", attributes={"training": True}),
            named("a.X", attributes={"training": False}),
            ".training",
        ),
        (tensor(), tensor(shape=[3]), ".shape"),
        (tensor(), tensor(dtype="float16"), ".dtype"),
        (tensor(), tensor(requires_grad=True), ".requires_grad"),
        (tensor(digest="xxh3:01"), tensor(digest="xxh3:02"), ""),
        (tensor(zero=True), tensor(zero=False), ".zero"),
        (tensor(facts={"all_equal": True}), tensor(facts={"all_equal": False}), ".all_equal"),
        ({"float": "nan"}, 1.0, ""),
        ({"dict": [["lr", 0.1]]}, {"dict": [["lr", 0.2]]}, "[0][1]"),
        (tensor(), None, ""),
    ],
)
def test_a_difference_is_found_where_it_is(a, b, where):
    """The place inside the value is told."""
    found = parting(a, b, EXACT)

    assert found is not None
    assert found.where == where
    assert parting(b, a, EXACT) is not None


def test_numbers_within_the_tolerance_are_equal():
    """Absolute or relative; a boolean is no number."""
    assert parting(1.0, 1.05, Tolerance(absolute=0.1)) is None
    assert parting(100.0, 101.0, Tolerance(relative=0.02)) is None
    assert parting(1.0, 1.2, Tolerance(absolute=0.1)).size == "by 0.2"
    assert parting([True], [False], Tolerance(absolute=2)) is not None
    assert parting({"float": "inf"}, 1.0, Tolerance(absolute=2)).size == ""


def test_of_recorded_elements_it_is_told_how_many_differ_and_by_how_much():
    """Data counts, where both traces have it; a tolerance makes digests of it worthless."""
    a = tensor(data=[1.0, 2.0, {"float": "nan"}], digest="xxh3:01")
    b = tensor(data=[1.0, 2.5, {"float": "nan"}], digest="xxh3:02")

    found = parting(a, b, EXACT)

    assert (found.where, found.size) == (".data[1]", "1 of 3 elements, by at most 0.5")
    assert found.is_content
    assert parting(a, b, Tolerance(absolute=1)) is None


def test_statistics_tell_the_size_where_digests_differ():
    """With a tolerance they decide; without them digests do."""
    a = tensor(digest="xxh3:01", statistics={"mean": 1.0, "norm": 2.0})
    b = tensor(digest="xxh3:02", statistics={"mean": 1.5, "norm": 2.0})

    assert parting(a, b, EXACT).size == "mean 1 and 1.5"
    assert parting(a, b, Tolerance(absolute=1)) is None
    assert parting(a, b, Tolerance(absolute=0.1)).where == ".mean"
    assert parting(tensor(digest="xxh3:01"), b, Tolerance(absolute=1)) is not None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        ("x" * 70, f"'{'x' * 60}...'"),
        ([1, 2, 3, 4, 5], "[1, 2, 3, 4, ...]"),
        (tensor(), "float32 tensor (2)"),
        (named("a.X", name="optimizer0"), "optimizer0"),
        ({"tuple": [1]}, "(1)"),
        ({"dtype": "float32"}, "float32"),
        ({"text": {"start": "Once", "length": 99}}, "'Once...'"),
    ],
)
def test_values_read_as_a_person_would_say_them(value, text):
    """Short, whatever they hold."""
    assert shown(value) == text
