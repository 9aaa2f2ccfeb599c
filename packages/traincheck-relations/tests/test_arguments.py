"""A param that asks for arguments is judged by what the trace tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from traincheck_relations.containment.contain import APIContainRelation
from traincheck_relations.engine import Watch
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_trace_schema.invariants import APIParam, VarTypeParam
from traincheck_trace_schema.reading import open_run

if TYPE_CHECKING:
    from pathlib import Path

    from traincheck_relations.api import Example
    from traincheck_trace_schema.values import Json

RELATION = APIContainRelation()
TENSOR = {"tensor": {"shape": [2, 3], "dtype": "float16", "device": "cpu"}}
MODEL = {"object": {"type": "m.Model", "attributes": {"training": True}}}


def example(folder: Path, given: dict[str, Json], asked: dict[str, Json], of: Json) -> Example:
    """Return the one example of "outer calls inner with what is asked"."""
    trace = TraceBuilder(folder)
    rank = trace.rank()
    with rank.call("outer"), rank.call("inner", given, of=of):
        pass
    trace.write()
    params = APIParam(api_full_name="outer"), APIParam(api_full_name="inner", arguments=asked)
    watch = Watch(open_run([folder]), {RELATION.name: RELATION}, {RELATION.name: [params]})
    ((_, found),) = watch
    return found


def an_object(kind: str, **attributes: Json) -> Json:
    return {"object": {"type": kind, "attributes": attributes}}


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"p": 0.5}, {"p": 0.5}),
        ({"p": 0.5, "other": 1}, {"p": 0.5}),
        ({"p": None}, {"p": None}),
        ({"x": TENSOR}, {"x": an_object("torch.Tensor", dtype={"dtype": "float16"}, ndim=2)}),
        ({"x": TENSOR}, {"x": an_object("torch.Tensor", requires_grad=False, device="cpu")}),
        ({}, {"self": an_object("m.Model")}),
        ({}, {"self": an_object("m.Model", training=True, size=3)}),
        ({"0": 0.1}, {"p": 0.5}),
        ({"p": {"text": {"start": "a", "length": 900}}}, {"p": "b"}),
        ({"p": {"cut": "list"}}, {"p": [1]}),
        ({"p": [1, 2, {"cut": "98 more"}]}, {"p": list(range(1, 101))}),
        ({"p": {"tuple": [{"cut": "list"}, 2]}}, {"p": {"tuple": [[1], 2]}}),
        (
            {"p": {"dict": [["a", 1], [{"cut": "8 more"}, None]]}},
            {"p": {"dict": [["a", 1], ["b", 2], ["c", 3]]}},
        ),
    ],
)
def test_a_call_with_these_arguments_will_do(
    tmp_path: Path, given: dict[str, Any], asked: dict[str, Any]
) -> None:
    """What is not told, or under its position only, says nothing against it."""
    assert example(tmp_path, given, asked, MODEL).held


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"p": 0.1}, {"p": 0.5}),
        ({"p": 1}, {"p": True}),
        ({"p": [1]}, {"p": [True]}),
        ({"p": [1, 2]}, {"p": [1, 2, 3]}),
        ({"p": [1, 3, {"cut": "98 more"}]}, {"p": list(range(1, 101))}),
        ({"p": None}, {"p": 0}),
        ({"p": 0}, {"p": None}),
        ({"p": 0.5, "q": 2}, {"p": 0.5, "q": 1}),
        ({"x": TENSOR}, {"x": an_object("torch.Tensor", ndim=3)}),
        ({"x": 3}, {"x": an_object("torch.Tensor")}),
        ({}, {"self": an_object("m.Other")}),
        ({}, {"self": an_object("m.Model", training=False)}),
    ],
)
def test_a_call_with_others_will_not(
    tmp_path: Path, given: dict[str, Any], asked: dict[str, Any]
) -> None:
    """The violation names what was asked for."""
    found = example(tmp_path, given, asked, MODEL)

    assert not found.held
    assert found.happened == (
        f"outer returned without calling inner with the {', '.join(asked)} that it had"
    )


def test_what_it_asks_for_is_recorded() -> None:
    """A plan for it names the arguments of the inner call."""
    params = APIParam(api_full_name="f"), APIParam(api_full_name="g", arguments={"p": 1})

    assert RELATION.requires(params).functions == {"f": frozenset(), "g": frozenset({"p"})}
    assert RELATION.describe(params) == "Each call of f calls g with the given p"


@pytest.mark.parametrize(
    "params",
    [
        (APIParam(api_full_name="f", arguments={"p": 1}), APIParam(api_full_name="g")),
        (APIParam(api_full_name="f"), APIParam(api_full_name="g", exception="ValueError")),
        (
            APIParam(api_full_name="f"),
            VarTypeParam(var_type="torch.nn.Parameter", attr_name="data", const_value=None),
        ),
    ],
)
def test_what_it_can_not_judge_is_refused(params: Any) -> None:
    """Arguments of the outer call, exceptions and constants: it would judge something else."""
    with pytest.raises(TypeError, match="APIContainRelation takes"):
        RELATION.monitor([params])
