"""Invariants of TrainCheck 0.x are read as those of 1.0; what can't be expressed is named."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.codec import dumps, loads, structure, unstructure
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariant_file import (
    InvariantFiles,
    read_invariant_files,
    read_invariants,
    write_invariants,
)
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    Conjunction,
    Free,
    InputOutputParam,
    Invariant,
    OccasionParam,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
)
from traincheck_trace_schema.legacy.invariants import OldLines
from traincheck_trace_schema.validation import load_schema, validate

UNCONDITIONAL = [{"clauses": "Unconditional"}]
STEP = {"param_type": "APIParam", "api_full_name": "torch.optim.sgd.SGD.step"}
CALL = {"param_type": "APIParam", "api_full_name": "torch._foreach_add_"}
DATA = {"param_type": "VarTypeParam", "var_type": "torch.nn.Parameter", "attr_name": "data"}
GRAD = {**DATA, "attr_name": "grad", "pre_value": "non_zero", "post_value": None}
GROUPS = {
    "APIContainRelation": "parent_func_call_pre",
    "ConsistencyRelation": "var",
    "ConsistentOutputRelation": "pre_event",
}


def line(
    *params: dict[str, Any],
    relation: str = "APIContainRelation",
    when: Any = UNCONDITIONAL,
    inverted: bool = False,
) -> dict[str, Any]:
    """Return an invariant as 0.x wrote it."""
    return {
        "text_description": "TBD merged",
        "relation": relation,
        "params": list(params),
        "precondition": {
            GROUPS.get(relation, "func_cover"): {"inverted": inverted, "preconditions": when}
        },
        "num_positive_examples": 20,
        "num_negative_examples": None,
    }


def clause(prop_name: str, *values: Any, type_: str = "constant", path: Any = "None") -> Any:
    """Return a clause as 0.x wrote it."""
    written = {"values": list(values)} if type_ == "constant" else {}
    return {
        "type": type_,
        "prop_name": prop_name,
        "additional_path": path,
        "prop_dtype": "int",
        **written,
    }


def files(folder: Path, *lines: Any) -> InvariantFiles:
    """Write and read an invariant file."""
    path = folder / "invariants.json"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return read_invariant_files([path])


def read(folder: Path, old: Any) -> Invariant:
    """Read the one invariant that a line holds."""
    found = files(folder, old)
    (invariant,) = found.invariants
    assert found.notes == ()
    validate("invariants", unstructure(invariant))
    return invariant


def left_out(folder: Path, old: Any) -> str:
    """Return the note on a line that can't be expressed."""
    found = files(folder, old)
    assert found.invariants == ()
    (note,) = found.notes
    assert note.startswith(f"{folder / 'invariants.json'}:1: left out, it can't be expressed")
    return note


def clauses(folder: Path, *old: Any, inverted: bool = False) -> Any:
    """Return what the clauses of a condition on a call become."""
    invariant = read(folder, line(STEP, CALL, when=[{"clauses": list(old)}], inverted=inverted))
    (group,) = invariant.precondition.values()
    assert group.inverted == inverted
    (conjunction,) = group.preconditions
    return conjunction.clauses


def test_an_old_line_becomes_an_invariant(tmp_path: Path) -> None:
    """Relation, params, precondition and counts; its description is a sentence of ours."""
    invariant = read(tmp_path, line(STEP, CALL))

    assert invariant.relation == "APIContainRelation"
    assert invariant.params == (
        APIParam(api_full_name="torch.optim.sgd.SGD.step"),
        APIParam(api_full_name="torch._foreach_add_"),
    )
    (group,) = invariant.precondition.values()
    assert group.preconditions == (Conjunction(clauses="Unconditional"),)
    assert (invariant.num_positive_examples, invariant.num_negative_examples) == (20, None)
    assert invariant.text_description == (
        "Each call of torch.optim.sgd.SGD.step calls torch._foreach_add_"
    )


def test_a_file_of_both_versions_is_read(tmp_path: Path) -> None:
    """A line without `schema` is of 0.x; one that says the same as another is returned once."""
    new = read(tmp_path, line(STEP, CALL))
    other = read(tmp_path, line(CALL, STEP))

    found = files(tmp_path, unstructure(new), line(STEP, CALL), line(CALL, STEP))

    assert found.invariants == (new, other)


def test_what_was_read_is_written_as_version_1(tmp_path: Path) -> None:
    """It reads back the same, with the same id."""
    old = read(tmp_path, line(STEP, GRAD))
    write_invariants(tmp_path / "new.json", [old])

    assert read_invariants([tmp_path / "new.json"]) == [old]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"relation": 3}, "field 'relation' must be a text, got 3"),
        ({"params": {}}, "field 'params' must be a list"),
        (
            {"precondition": {"a": {"inverted": False}}},
            "field .precondition.*preconditions. is missing",
        ),
    ],
)
def test_a_broken_old_line_is_an_error(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    """As one of 1.0 is: the message names file, line and field."""
    with pytest.raises(InvariantError, match=rf"invariants.json:1: .*{message}"):
        files(tmp_path, line(STEP, CALL) | changed)


# Params


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ("anything", "anything")),
        ({"pre_value": None, "post_value": None}, ("none", "none")),
        ({"pre_value": "non_zero", "post_value": "non_none"}, ("non_zero", "non_none")),
        ({"post_value": "anything"}, ("anything", "anything")),
    ],
)
def test_a_change_is_of_some_variable(
    tmp_path: Path, values: dict[str, Any], expected: tuple[str, str]
) -> None:
    """0.x asked for at least one change in a call; a null is None, what is absent is free."""
    _, change = read(tmp_path, line(STEP, DATA | values)).params

    assert isinstance(change, VarTypeParam)
    assert (change.pre_value, change.post_value, change.quantifier) == (*expected, "some")


@pytest.mark.parametrize(
    ("param", "reason"),
    [
        (DATA | {"pre_value": "above_zero"}, "pre_value 'above_zero'"),
        (DATA | {"post_value": -801503111}, "post_value -801503111"),
        (DATA | {"post_value": [1, 2]}, "post_value"),
        (DATA | {"pre_value": "NOT SERIALIZABLE: <NA>"}, "lost the pre_value"),
        (DATA | {"attr_name": "_TRAINCHECK_data_ID"}, "is an address"),
        (DATA | {"attr_name": "_ML_DAIKON_grad_ID"}, "is an address"),
        (DATA | {"attr_name": "is_leaf"}, "do not have the attribute 'is_leaf'"),
        (DATA | {"attr_name": 3}, "field 'attr_name' of a param must be a text"),
        ({"param_type": "MoodParam"}, "a param of type 'MoodParam' is not known"),
        (GRAD | {"pre_value": None, "post_value": "non_zero"}, "saw a new gradient at the next"),
    ],
)
def test_a_param_without_counterpart_is_named(
    tmp_path: Path, param: dict[str, Any], reason: str
) -> None:
    """An address, an exact hash, a sign, what 0.x lost, and gradients that it saw too late."""
    assert reason in left_out(tmp_path, line(STEP, param))


def test_a_constant_that_is_none_is_not_one_that_is_absent(tmp_path: Path) -> None:
    """A dtype becomes a value of 1.0."""
    tensor = {"param_type": "VarTypeParam", "var_type": "torch.Tensor"}
    for old, expected in (
        ({"attr_name": "dtype", "const_value": "torch.float16"}, {"dtype": "float16"}),
        ({"attr_name": "ndim", "const_value": None}, None),
        ({"attr_name": "data"}, Free.ANY),
    ):
        output = line(CALL, tensor | old, relation="ConsistentOutputRelation")
        _, constant = read(tmp_path, output).params
        assert isinstance(constant, VarTypeParam)
        assert constant.const_value == expected


@pytest.mark.parametrize("attribute", ["grad", "data", "foo", "is_leaf"])
def test_a_constant_is_of_what_tensors_have(tmp_path: Path, attribute: str) -> None:
    """An output is no variable: it has neither gradient nor marks of the program."""
    constant = {
        "param_type": "VarTypeParam",
        "var_type": "torch.Tensor",
        "attr_name": attribute,
        "const_value": 1,
    }
    output = line(CALL, constant, relation="ConsistentOutputRelation")

    assert f"do not have the attribute '{attribute}'" in left_out(tmp_path, output)


def test_a_variable_may_be_meant_by_its_name(tmp_path: Path) -> None:
    """With its type and its change."""
    named = GRAD | {"param_type": "VarNameParam", "var_name": "model.w"}

    _, change = read(tmp_path, line(STEP, named)).params

    assert change == VarNameParam(
        var_name="model.w",
        attr_name="grad",
        var_type="torch.nn.Parameter",
        pre_value="non_zero",
        post_value="none",
    )


IN_OUT = {
    "param_type": "InputOutputParam",
    "name": "output_tensors",
    "index": 0,
    "type": "torch.Tensor",
    "additional_path": ["shape", 1],
    "api_name": "f",
    "is_input": False,
}


def test_a_part_of_input_or_output_keeps_its_path(tmp_path: Path) -> None:
    """Which tensor, and which property of it."""
    (part,) = read(tmp_path, line(IN_OUT, relation="ConsistentInputOutputRelation")).params

    assert part == InputOutputParam(
        name="output_tensors",
        index=0,
        type="torch.Tensor",
        additional_path=("shape", 1),
        api_name="f",
        is_input=False,
    )
    lost = IN_OUT | {"additional_path": ["_ML_DAIKON_RESPONSE_LENGTHS", 0]}
    assert "do not have '_ML_DAIKON_RESPONSE_LENGTHS'" in left_out(
        tmp_path, line(lost, relation="ThresholdRelation")
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"params": [{**IN_OUT, "index": -1}]}, "'params[0].index' must be"),
        ({"num_positive_examples": -1}, "'num_positive_examples'"),
        ({"num_negative_examples": 2**70}, "'num_negative_examples'"),
    ],
)
def test_what_would_not_read_back_is_left_out(
    tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    """What is written must be valid."""
    old = line(IN_OUT, relation="ConsistentInputOutputRelation") | changed

    assert reason in left_out(tmp_path, old)


def test_numbers_that_are_not_finite_do_not_spoil_the_file(tmp_path: Path) -> None:
    """The encoder of 0.x wrote them as such: an argument is kept, a condition is named."""
    masked = {"args": {"value": {"float": -math.inf}}, "func_name": "f"}
    when = [{"clauses": [clause("meta_vars.stage", math.nan)]}]

    found = files(
        tmp_path,
        line(STEP, CALL),
        line(STEP, CALL | {"arguments": masked}),
        line(STEP, CALL, when=when),
    )

    _, second = found.invariants
    child = second.params[1]
    assert isinstance(child, APIParam)
    assert child.arguments == {"value": {"float": "-inf"}}
    (note,) = found.notes
    assert ":3: left out" in note
    validate("invariants", unstructure(second))


def test_a_line_of_version_1_is_read_strictly_beside_old_ones(tmp_path: Path) -> None:
    """Only 0.x wrote such numbers."""
    new = unstructure(read(tmp_path, line(STEP, CALL)))

    with pytest.raises(InvariantError, match=r"invariants.json:2: has the token NaN"):
        files(tmp_path, line(STEP, CALL), {**new, "mark": math.nan})


def test_a_note_on_a_very_long_line_is_short(tmp_path: Path) -> None:
    """It quotes what it speaks of, which may be anything."""
    note = left_out(tmp_path, line(STEP, DATA | {"post_value": "x" * 10_000}))

    assert len(note) < 1000


def test_arguments_become_values_and_what_1_0_does_not_tell_is_left_out(tmp_path: Path) -> None:
    """That a claim says less is told once a file."""
    asked = {
        "args": {
            "val": {"float": 1.0},
            "mask": {"NoneType": None},
            "x": {"torch.cuda.HalfTensor": {"dtype": "torch.float16", "is_leaf": True, "ndim": 4}},
            "self": {"a.b.Config": {"model_type": "clip"}},
            "ids": {"list": {}},
            "after": {"timedelta": {"days": 0}},
            "tree": {"<class 'a.b.Tree'>": None},
        },
        "func_name": "f",
    }

    found = files(tmp_path, line(STEP, CALL | {"arguments": asked}))

    (invariant,) = found.invariants
    _, child = invariant.params
    assert isinstance(child, APIParam)
    assert child.arguments == {
        "val": 1.0,
        "mask": None,
        "x": {
            "object": {
                "type": "torch.Tensor",
                "attributes": {"dtype": {"dtype": "float16"}, "ndim": 4},
            }
        },
        "self": {"object": {"type": "a.b.Config"}},
        "tree": {"object": {"type": "a.b.Tree"}},
    }
    (note,) = found.notes
    assert "invariants of 0.x that say less now: 1" in note
    assert hash(invariant.params)


@pytest.mark.parametrize("arguments", [None, {"args": {}, "func_name": "f"}])
def test_arguments_that_are_null_ask_for_nothing(tmp_path: Path, arguments: Any) -> None:
    """As some releases wrote them."""
    _, child = read(tmp_path, line(STEP, CALL | {"arguments": arguments})).params

    assert isinstance(child, APIParam)
    assert child.is_any_call


def test_an_exception_is_kept(tmp_path: Path) -> None:
    """Only calls that raise it are meant then."""
    _, child = read(tmp_path, line(STEP, CALL | {"exception": "StopIteration"})).params

    assert isinstance(child, APIParam)
    assert child.exception == "StopIteration"


# Preconditions

ON, OFF = True, False
AUTOCAST = "meta_vars.context_managers.torch.amp.autocast_mode.autocast"
IN_AUTOCAST = Clause(type="exist", prop_name="ctx.autocast.device_type")
FLOAT16 = Clause(type="constant", prop_name="ctx.autocast.dtype", values=("float16",))


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        (
            clause("meta_vars.stage", "testing", "init"),
            Clause(type="constant", prop_name="run.stage", values=("testing", "init")),
        ),
        (
            clause("meta_vars.stage", type_="consistent"),
            Clause(type="exist", prop_name="run.stage"),
        ),
        (clause(AUTOCAST, type_="exist"), IN_AUTOCAST),
        (clause(AUTOCAST, ON, path=["enabled"]), IN_AUTOCAST),
        (
            clause(AUTOCAST, "torch.float16", path=["dtype"]),
            Clause(type="constant", prop_name="ctx.autocast.dtype", values=("float16",)),
        ),
        (
            clause(AUTOCAST, "cuda", path=["device_type"]),
            Clause(type="constant", prop_name="ctx.autocast.device_type", values=("cuda",)),
        ),
        (
            clause("meta_vars.step", 0, 1),
            Clause(type="constant", prop_name="run.first_step", values=(True,)),
        ),
    ],
)
def test_a_clause_is_one_on_a_property_of_1_0(
    tmp_path: Path, old: dict[str, Any], expected: Clause
) -> None:
    """Stage, first step and autocast carry over to another run."""
    assert clauses(tmp_path, old) == (expected,)


@pytest.mark.parametrize(
    "old",
    [
        clause("process_id", type_="exist"),
        clause("thread_id", type_="unequal"),
        clause("meta_vars.step", type_="consistent"),
        clause("function", "torch.optim.sgd.SGD.step"),
    ],
)
def test_a_clause_that_always_holds_of_one_call_is_left_out(
    tmp_path: Path, old: dict[str, Any]
) -> None:
    """Each record has a process, a thread and a step, and differs from no other."""
    assert clauses(tmp_path, old) == "Unconditional"


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
@pytest.mark.parametrize(
    ("old", "more"),
    [
        (((), "exist", "None"), ()),
        (((True,), "constant", ["enabled"]), ()),
        ((("torch.float16",), "constant", ["dtype"]), (FLOAT16,)),
    ],
)
def test_autocast_of_one_device_is_a_condition_on_the_device(
    tmp_path: Path, kind: str, old: tuple[Any, str, Any], more: tuple[Clause, ...]
) -> None:
    """Any autocast would be more than was learnt."""
    allowed, type_, path = old
    manager = f"meta_vars.context_managers.torch.{kind}.amp.autocast_mode.autocast"

    device = Clause(type="constant", prop_name="ctx.autocast.device_type", values=(kind,))
    assert clauses(tmp_path, clause(manager, *allowed, type_=type_, path=path)) == (device, *more)


def distinct(*when: Any, relation: str = "DistinctArgumentRelation", group: str) -> Any:
    """Return an invariant whose precondition is about several records."""
    old = line(CALL, relation=relation)
    old["precondition"] = {
        group: {"inverted": False, "preconditions": [{"clauses": list(when)}]},
    }
    return old


@pytest.mark.parametrize(
    ("group", "old", "reason"),
    [
        ("distinct_arg", clause("process_id", type_="unequal"), "process_id differs"),
        ("distinct_arg", clause("thread_id", type_="unequal"), "thread_id differs"),
        ("distinct_arg", clause("process_id", type_="consistent"), "process_id is the same"),
        ("distinct_arg", clause("thread_id", type_="consistent"), "thread_id is the same"),
        ("distinct_arg", clause("meta_vars.stage", type_="unequal"), "meta_vars.stage differs"),
        ("distinct_arg", clause("meta_vars.step", type_="unequal"), "meta_vars.step differs"),
        ("var", clause("meta_vars.step", type_="consistent"), "meta_vars.step is the same"),
    ],
)
def test_a_comparison_of_several_records_is_named(
    tmp_path: Path, group: str, old: dict[str, Any], reason: str
) -> None:
    """Which pairs of calls are meant would be lost with it."""
    assert reason in left_out(tmp_path, distinct(old, group=group))


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        (clause("meta_vars.step", type_="consistent"), "Unconditional"),
        (clause("process_id", type_="exist"), "Unconditional"),
        (
            clause("meta_vars.stage", type_="consistent"),
            (Clause(type="consistent", prop_name="run.stage"),),
        ),
        (
            clause("meta_vars.stage", "training"),
            (Clause(type="constant", prop_name="run.stage", values=("training",)),),
        ),
    ],
)
def test_a_condition_on_pairs_of_calls_stays_one(
    tmp_path: Path, old: dict[str, Any], expected: Any
) -> None:
    """That both are of one step is what the relation itself says."""
    invariant = read(tmp_path, distinct(old, group="distinct_arg"))

    (conjunction,) = invariant.precondition["distinct_arg"].preconditions
    assert conjunction.clauses == expected


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_an_exception_for_the_first_step_may_be_wider_but_no_condition(
    tmp_path: Path, step: int
) -> None:
    """0.x counts from 1, scripts that count by hand from 0: which is the first, nobody knows."""
    old = clause("meta_vars.step", step)

    (first,) = clauses(tmp_path, old, inverted=True)

    assert first == Clause(type="constant", prop_name="run.first_step", values=(True,))
    assert f"the number of a step, {step}" in left_out(
        tmp_path, line(STEP, CALL, when=[{"clauses": [old]}])
    )


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        (clause("process_id", 1858805), "it is bound to one process_id"),
        (clause("thread_id", 14066), "it is bound to one thread_id"),
        (clause("meta_vars.step", 7), "depends on the number of a step, 7"),
        (clause("meta_vars.step", 1, 2), "depends on the number of a step, 1 or 2"),
        (clause("meta_vars.step", 0, 1, 2), "depends on the number of a step, 0 or 1 or 2"),
        (clause("meta_vars.stage", "lunch"), "depends on the stage 'lunch'"),
        (clause("meta_vars.eval_step", 2), "meta_vars.eval_step is 2, has no counterpart"),
        (clause("meta_vars.torch/optim:__init__.step_size", 1.0), "step_size is 1.0"),
        (clause("meta_vars._DATA_PARALLEL_RANK", 0), "_DATA_PARALLEL_RANK is 0"),
        (clause("attributes.nbytes", 1200), "attributes.nbytes is 1200"),
        (clause("function", "f"), "function is 'f'"),
        (clause(AUTOCAST, OFF, path=["enabled"]), "the argument 'enabled'"),
        (clause(AUTOCAST, ON, path=["cache_enabled"]), "the argument 'cache_enabled'"),
        (clause("meta_vars.context_managers.a.B", type_="exist"), "the context manager a.B"),
    ],
)
def test_a_clause_without_counterpart_is_named(
    tmp_path: Path, old: dict[str, Any], reason: str
) -> None:
    """The invariant is left out as a whole: without the clause it would apply elsewhere."""
    when = [{"clauses": [clause("meta_vars.stage", "training"), old]}]

    assert reason in left_out(tmp_path, line(STEP, CALL, when=when))


def test_a_group_about_unchanged_variables_is_left_out(tmp_path: Path) -> None:
    """Its meaning was the opposite of what was learnt."""
    old = line(STEP, GRAD)
    old["precondition"]["var_events"] = {"inverted": False, "preconditions": UNCONDITIONAL}

    assert "variables that a call left as they were" in left_out(tmp_path, old)


# ConsistencyRelation

ACROSS = [
    clause("process_id", type_="unequal"),
    clause("thread_id", type_="unequal"),
    clause("attributes._ML_DAIKON_data_ID", type_="unequal"),
    clause("meta_vars._DATA_PARALLEL_RANK", type_="unequal"),
    clause("attributes.nbytes", type_="consistent"),
    clause("meta_vars.step", type_="consistent"),
]


NAMED = {**DATA, "param_type": "VarNameParam", "var_name": "model.w"}


def consistency(*when: Any, second: dict[str, Any] = DATA, inverted: bool = False) -> Any:
    conjunctions = [{"clauses": list(when)}] if when else UNCONDITIONAL
    return line(DATA, second, relation="ConsistencyRelation", when=conjunctions, inverted=inverted)


def test_equal_on_different_processes_is_equal_on_all_ranks(tmp_path: Path) -> None:
    """Clauses that only say that two replicas are meant are what the scope says."""
    invariant = read(tmp_path, consistency(*ACROSS))

    data = VarTypeParam(var_type="torch.nn.Parameter", attr_name="data")
    assert invariant.params == (
        data,
        data,
        OccasionParam(phase="step_end"),
        ScopeParam(scope="ranks"),
    )
    (group,) = invariant.precondition.values()
    assert group.preconditions == (Conjunction(clauses="Unconditional"),)


def test_a_condition_on_replicas_stays_one(tmp_path: Path) -> None:
    """The stage, the program's own marks, and the variable's name."""
    marks = (
        clause("meta_vars.stage", "training"),
        clause("attributes.tensor_model_parallel", OFF),
        clause("var_name", "model.w"),
        clause("var_type", "torch.nn.Parameter"),
    )

    (group,) = read(tmp_path, consistency(*ACROSS, *marks)).precondition.values()

    (conjunction,) = group.preconditions
    assert conjunction.clauses == (
        Clause(type="constant", prop_name="run.stage", values=("training",)),
        Clause(type="constant", prop_name="var.tensor_model_parallel", values=(False,)),
        Clause(type="constant", prop_name="var.name", values=("model.w",)),
    )


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        (consistency(), "not about the same variable on two ranks"),
        (consistency(*ACROSS[1:3]), "not about the same variable on two ranks"),
        (consistency(*ACROSS, second=GRAD), "compares different attributes"),
        (
            line(NAMED, NAMED, relation="ConsistencyRelation", when=[{"clauses": ACROSS}]),
            "not about all variables of a type",
        ),
        (consistency(*ACROSS, clause("attributes.mark", math.inf)), "has a value inf"),
        (consistency(*ACROSS, inverted=True), "excludes pairs of variables"),
        (consistency(*ACROSS, clause("var_name", type_="unequal")), "var_name differs"),
        (consistency(*ACROSS, clause("attributes.nbytes", 12)), "attributes.nbytes is 12"),
        (consistency(*ACROSS, clause("attributes.grad", type_="consistent")), "attributes.grad"),
    ],
)
def test_what_is_not_about_replicas_is_named(tmp_path: Path, old: Any, reason: str) -> None:
    """Other variables, other attributes, and what a comparison of ranks can't tell."""
    assert reason in left_out(tmp_path, old)


# The document


def test_values_stand_in_invariants_as_in_traces() -> None:
    """Both schemas define them alike."""
    trace, invariants = (load_schema(name)["$defs"] for name in ("trace", "invariants"))

    for name in ("value", "values", "values_by_name", "tensor", "object", "count", "reference"):
        assert invariants[name] == trace[name]


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
PARAMS = st.fixed_dictionaries(
    {
        "param_type": st.sampled_from(
            ["APIParam", "VarTypeParam", "VarNameParam", "InputOutputParam"]
        )
        | JSON
    },
    optional={
        "api_full_name": st.just("f") | JSON,
        "arguments": st.dictionaries(st.just("args"), st.dictionaries(st.just("a"), JSON)) | JSON,
        "exception": JSON,
        "var_type": st.just("torch.nn.Parameter") | JSON,
        "attr_name": st.sampled_from(["data", "grad", "mark"]) | JSON,
        "pre_value": st.sampled_from(["non_zero", None]) | JSON,
        "const_value": JSON,
        "name": st.just("x") | JSON,
        "type": st.just("torch.Tensor") | JSON,
        "api_name": st.just("f") | JSON,
        "index": JSON,
        "additional_path": JSON,
    },
)
CLAUSES = st.builds(
    clause,
    st.sampled_from(["meta_vars.step", "meta_vars.stage", "process_id", AUTOCAST, "var_name"]),
    JSON,
    type_=st.sampled_from(["constant", "consistent", "unequal", "exist"]),
    path=st.sampled_from(["None", ["dtype"]]) | JSON,
)


def taken(lines: OldLines, old: dict[str, Any]) -> Invariant | str | None:
    """Return what a line claims, or the message with which it is refused."""
    try:
        return lines.take(old, "i.json:1")
    except InvariantError as error:
        return str(error)


@given(
    params=st.lists(PARAMS, max_size=2),
    when=st.lists(st.lists(CLAUSES, max_size=3), max_size=2),
    relation=st.sampled_from([*GROUPS, "FunctionCoverRelation", "MoodRelation"]),
)
@settings(max_examples=200, deadline=None)
def test_any_old_line_is_read_named_or_refused(
    params: list[Any], when: list[Any], relation: str
) -> None:
    """What is read is valid under the schema, reads back the same, and can be looked up."""
    old = line(*params, relation=relation, when=[{"clauses": each} for each in when])
    lines = OldLines(Path("i.json"))

    claim = taken(lines, old)

    if claim is None:
        assert "left out" in next(lines.told())
        return
    if isinstance(claim, str):
        assert claim.startswith("i.json:1: ")
        return
    raw = unstructure(claim)
    validate("invariants", loads(dumps(raw)))
    assert structure(Invariant, raw) == claim
    assert hash(claim.params) is not None
