"""Files of invariants, plans and results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from traincheck_trace_schema.codec import dumps, loads
from traincheck_trace_schema.errors import ConfigError, InvariantError
from traincheck_trace_schema.invariant_file import (
    invariant_id,
    read_invariants,
    write_invariants,
)
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
    Params,
    VarTypeParam,
)
from traincheck_trace_schema.plan import FunctionPlan, Plan
from traincheck_trace_schema.plan_file import plan_id, read_plan, write_plan
from traincheck_trace_schema.results_file import (
    read_summary,
    read_verdicts,
    write_summary,
    write_verdicts,
)
from traincheck_trace_schema.suppression_file import (
    read_suppressions,
    suppression_path,
    write_suppressions,
)
from traincheck_trace_schema.suppressions import Suppression

GOLDEN = Path(__file__).parent / "golden" / "1.0"
PARAMS: Params = (
    APIParam(api_full_name="torch.optim.Optimizer.step"),
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="data"),
)


def _condition(*conjunctions: tuple[Clause, ...]) -> dict[str, ConditionGroup]:
    conditions = tuple(Conjunction(clauses=clauses) for clauses in conjunctions)
    return {"variable": ConditionGroup(preconditions=conditions)}


def _constant(name: str, *values: Any) -> Clause:
    return Clause(type="constant", prop_name=name, values=values)


def _invariant(**fields: Any) -> Invariant:
    given: dict[str, Any] = {"id": "1", "text_description": "t", "relation": "R", "params": PARAMS}
    return Invariant(**{**given, "precondition": _condition((_constant("x", 1),)), **fields})


def test_invariants_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A file holds one invariant a line, in the order given."""
    path = tmp_path / "i.json"
    invariants = [_invariant(id="b"), _invariant(id="a", num_positive_examples=3)]

    write_invariants(path, invariants)

    assert read_invariants([path]) == invariants
    assert len(path.read_text().splitlines()) == 2


def test_an_invariant_that_stands_twice_is_read_once(tmp_path: Path) -> None:
    """The first of those with one id counts, across files too."""
    paths = [tmp_path / "a", tmp_path / "b"]
    write_invariants(paths[0], [_invariant(id="x"), _invariant(id="y")])
    write_invariants(paths[1], [_invariant(id="x", tracker="proxy"), _invariant(id="z")])

    assert [(each.id, each.tracker) for each in read_invariants(paths)] == [
        ("x", None),
        ("y", None),
        ("z", None),
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"version": "2.0"},
            (
                "is traincheck.invariants version 2.0, and this TrainCheck knows version 1.x; "
                "update TrainCheck to read it: pip install --upgrade traincheck-trace-schema; "
                "older files are then moved on with: traincheck-schema migrate IN OUT"
            ),
        ),
        ({"schema": None}, "field 'schema' must be 'traincheck.invariants', got null"),
        ({"relation": 3}, "field 'relation' must be a text that is not empty, got 3"),
        (
            {"params": [{"param_type": "Odd"}]},
            (
                "field 'params[0]' must have 'param_type', one of APIParam, VarTypeParam, "
                'VarNameParam, InputOutputParam, OccasionParam, ScopeParam, ValueParam; got "Odd"'
            ),
        ),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    """The message says file and line, what is wrong, and what to do."""
    path = tmp_path / "i.json"
    write_invariants(path, [_invariant(id=name) for name in "abc"])
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], dumps({**loads(lines[2]), **changed})]))

    with pytest.raises(InvariantError) as caught:
        read_invariants([path])

    assert str(caught.value) == f"{path}:3: {message}"


def test_a_newer_minor_version_is_read(tmp_path: Path) -> None:
    """Version 1.1 may add a field, which is ignored."""
    path = tmp_path / "i.json"
    write_invariants(path, [_invariant()])
    path.write_text(dumps({**loads(path.read_text()), "version": "1.1", "mood": "fine"}))

    assert read_invariants([path]) == [_invariant(version="1.1")]


def test_the_id_is_that_of_the_meaning() -> None:
    """The order of conjunctions, clauses and values means nothing; that of params does."""
    one, two = _constant("x", 1, None), _constant("y", "a")
    first = invariant_id("R", PARAMS, _condition((one, two), (two,)))

    same = _condition((two,), (two, _constant("x", None, 1)))
    assert invariant_id("R", PARAMS, same) == first

    others = {
        invariant_id("S", PARAMS, same),
        invariant_id("R", PARAMS[::-1], same),
        invariant_id("R", PARAMS, _condition((one,), (two,))),
        invariant_id("R", PARAMS, _condition((_constant("x", "1", None), two), (two,))),
    }
    assert len(others | {first}) == 5


def test_the_id_of_an_invariant_never_changes() -> None:
    """Users suppress invariants by id, so the same one has it on any machine."""
    assert invariant_id("R", PARAMS, _condition((_constant("x", 1.5),))) == "3e480b0c5ce48237"


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Writing and reading gives the same plan."""
    plan = read_plan(GOLDEN / "plan.json")

    write_plan(tmp_path / "p.json", plan)

    assert read_plan(tmp_path / "p.json") == plan


def test_the_id_of_a_plan_depends_on_its_content() -> None:
    """Plans of one content have one id, whatever they were called."""
    plan = Plan(id="x", functions=(FunctionPlan(name="f"),), variables=())

    assert plan_id(plan) == plan_id(attrs.evolve(plan, id="y"))
    assert plan_id(plan) != plan_id(attrs.evolve(plan, functions=None))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", r"field 'schema' must be 'traincheck.plan', got \[1\]"),
        ('{"schema":"traincheck.plan","version":"1.0"}', "field '[a-z]+' is missing"),
        ("{", "is no JSON"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """The message names the file."""
    path = tmp_path / "p.json"
    path.write_text(content)

    with pytest.raises(ConfigError, match=rf"p\.json: {message}"):
        read_plan(path)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Summary and verdicts survive writing and reading."""
    summary = read_summary(GOLDEN / "violations_summary.json")
    verdicts = read_verdicts(GOLDEN / "failed.log") + read_verdicts(GOLDEN / "not_triggered.log")

    write_summary(tmp_path / "s.json", summary)
    write_verdicts(tmp_path / "v.log", verdicts)

    assert read_summary(tmp_path / "s.json") == summary
    assert read_verdicts(tmp_path / "v.log") == verdicts


def test_a_verdict_is_no_summary() -> None:
    """Results of the other form are refused, with the file's name."""
    with pytest.raises(ConfigError, match=r"not_triggered\.log: field 'checked' is missing"):
        read_summary(GOLDEN / "not_triggered.log")


def test_suppressions_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A file holds one suppression a line, in the order given."""
    path = tmp_path / "i.suppressed.jsonl"
    suppressions = [Suppression(pattern=name, reason="so") for name in ("b*", "a")]

    write_suppressions(path, suppressions)

    assert read_suppressions(path) == suppressions
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("changed", [{"reason": ""}, {"pattern": None}, {"version": "2.0"}])
def test_a_suppression_needs_a_pattern_and_a_reason(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    """The message says where, and names the field or the version."""
    path = tmp_path / "i.suppressed.jsonl"
    write_suppressions(path, [Suppression(pattern="a", reason="so")])
    path.write_text(dumps({**loads(path.read_text()), **changed}))

    with pytest.raises(ConfigError, match=rf"i\.suppressed\.jsonl:1: .*{min(changed)}"):
        read_suppressions(path)


@pytest.mark.parametrize(
    ("invariants", "suppressions"),
    [
        ("invariants.json", "invariants.suppressed.jsonl"),
        ("invariants.json.gz", "invariants.suppressed.jsonl"),
        ("good.v2", "good.v2.suppressed.jsonl"),
        (".json", ".json.suppressed.jsonl"),
    ],
)
def test_suppressions_stand_beside_their_invariants(invariants: str, suppressions: str) -> None:
    """Under the same name, which a shell does not take for more invariants."""
    assert suppression_path(Path("a.json", invariants)) == Path("a.json", suppressions)
