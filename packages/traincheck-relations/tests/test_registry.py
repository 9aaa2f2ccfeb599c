"""Finding and validating the installed relations."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import attrs
import pytest

from traincheck_relations import registry
from traincheck_relations.conditions.preconditions import ALWAYS
from traincheck_relations.registry import (
    load_relations,
    load_sound_relations,
    not_checkable,
    relations_for,
)
from traincheck_trace_schema.errors import ConfigError, InvariantError, PluginError
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
)


class First:
    name = "First"
    group = "first"

    def proposer(self) -> None: ...

    def requires(self, params: object) -> None: ...

    def monitor(self, params: object) -> None: ...

    def describe(self, params: object) -> None: ...


class Second(First):
    name = "Second"


class Misnamed(First):
    name = "Other"


class Incomplete:
    name = "Incomplete"
    group = "group"

    def proposer(self) -> None: ...


class NoGroup(First):
    name = "NoGroup"
    group = ""


class Ranked(First):
    name = "Ranked"
    likelihood = 0.9


class Raising:
    def __init__(self) -> None:
        raise OSError("no licence")


class Plugins:
    """The relations that this environment offers, as far as the test is concerned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._module = ModuleType("plugins_of_a_test")
        self._entries: list[EntryPoint] = []
        monkeypatch.setitem(sys.modules, self._module.__name__, self._module)
        monkeypatch.setattr(registry, "entry_points", lambda **_: tuple(self._entries))

    def install(self, *classes: type, name: str | None = None) -> None:
        for each in classes:
            setattr(self._module, each.__name__, each)
            self.enter(name or each.__name__, f"{self._module.__name__}:{each.__name__}")

    def enter(self, name: str, value: str) -> None:
        self._entries.append(EntryPoint(name, value, registry.ENTRY_POINTS))


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Plugins:
    return Plugins(monkeypatch)


def test_all_installed_relations_are_loaded(plugins: Plugins) -> None:
    """Without a choice, every relation is there, in the order of names."""
    plugins.install(Second, First)

    assert list(load_relations()) == ["First", "Second"]


def test_relations_can_be_chosen_and_left_out(plugins: Plugins) -> None:
    """`only` and `without` go by name, and what is not wanted is not imported."""
    plugins.install(First, Second)
    plugins.enter("Broken", "no_such_module:Broken")

    assert list(load_relations(only=["First"])) == ["First"]
    assert list(load_relations(without=["Broken", "First"])) == ["Second"]


@pytest.mark.parametrize("choice", [{"only": ["Firts"]}, {"without": ["Firts"]}])
def test_an_unknown_name_is_told_with_the_known_ones(
    plugins: Plugins, choice: dict[str, list[str]]
) -> None:
    """A slip of the pen must not silently check less."""
    plugins.install(First, Second)

    with pytest.raises(ConfigError, match=r"'Firts'.*First, Second"):
        load_relations(**choice)


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (Misnamed, "name = 'Misnamed', got 'Other'"),
        (Incomplete, "methods requires, monitor, describe"),
        (NoGroup, "group"),
        (Ranked, "must have likelihood as methods, if at all"),
        (Raising, "failed to load: OSError: no licence"),
    ],
)
def test_a_relation_is_validated_when_it_loads(
    plugins: Plugins, plugin: type, problem: str
) -> None:
    """A broken plugin fails at the start with its name, not in the middle of a check."""
    plugins.install(plugin)

    with pytest.raises(PluginError, match=problem) as caught:
        load_relations()

    assert plugin.__name__ in str(caught.value)


def test_sound_relations_are_loaded_beside_one_that_is_not(plugins: Plugins) -> None:
    """Where the fault of one should not cost the others, it is told."""
    plugins.install(First, Raising, Second)

    loaded = load_sound_relations()

    assert list(loaded.relations) == ["First", "Second"]
    assert list(loaded.faults) == ["Raising"]
    assert "failed to load: OSError: no licence" in str(loaded.faults["Raising"])


def test_two_packages_must_not_define_one_relation(plugins: Plugins) -> None:
    """Which of the two was meant cannot be known."""
    plugins.install(First)
    plugins.install(Second, name="First")

    with pytest.raises(PluginError, match="Two packages define relation 'First'"):
        load_relations()


def test_an_entry_that_is_listed_twice_is_one(plugins: Plugins) -> None:
    """An editable installation beside a wheel lists the very same entry twice."""
    plugins.install(First, First)

    assert list(load_relations()) == ["First"]


def test_the_relations_of_invariants_are_loaded(plugins: Plugins) -> None:
    """Only what the invariants name is imported; what is not installed is told."""
    plugins.install(First)
    plugins.enter("Broken", "no_such_module:Broken")

    assert list(relations_for([invariant("First")]).relations) == ["First"]
    with pytest.raises(InvariantError, match=r"'Missing'.*not installed"):
        relations_for([invariant("Missing")])


def test_a_relation_that_cannot_be_loaded_costs_its_own_invariants_only(plugins: Plugins) -> None:
    """The others are checked, and why these are not is told."""
    plugins.install(First, Raising)
    invariants = [invariant("First"), attrs.evolve(invariant("Raising"), id="2")]

    loaded = relations_for(invariants)
    reasons = not_checkable(invariants, loaded.relations, loaded.faults)

    assert list(loaded.relations) == ["First"]
    assert list(reasons) == ["2"]
    assert "failed to load: OSError: no licence" in reasons["2"]


def invariant(relation: str) -> Invariant:
    return Invariant(
        id="1", text_description="a claim", relation=relation, params=(), precondition={}
    )


def test_params_that_a_relation_does_not_understand_are_refused_at_once() -> None:
    """One line names the invariant, before a run is read; its relation's others are not lost."""
    wrong = Invariant(
        id="abc",
        text_description="",
        relation="APIContainRelation",
        params=(APIParam(api_full_name="f"),),
        precondition={},
    )

    with pytest.raises(InvariantError, match="abc: APIContainRelation does not understand"):
        relations_for([wrong])


def contains(id_: str, *names: str, **fields: object) -> Invariant:
    return Invariant(
        id=id_,
        text_description="",
        relation=str(fields.pop("relation", "APIContainRelation")),
        params=tuple(APIParam(api_full_name=name) for name in names),
        precondition={},
        **fields,
    )


def test_what_can_not_be_checked_does_not_stop_the_others() -> None:
    """A relation that is not installed, params and conditions that are not understood are named."""
    unequal = Conjunction(clauses=(Clause(type="unequal", prop_name="var.name"),))
    invariants = [
        contains("fine", "f", "g"),
        contains("missing", "f", relation="Missing"),
        contains("few", "f"),
        attrs.evolve(contains("other"), relation="PerCall"),
        attrs.evolve(contains("group", "f", "g"), precondition={"mood": ALWAYS}),
        attrs.evolve(
            contains("pair", "f", "g"),
            precondition={"parent_func_call_pre": ConditionGroup(preconditions=(unequal,))},
        ),
    ]

    relations = relations_for(invariants).relations
    reasons = not_checkable(invariants, relations)

    assert set(relations) == {"APIContainRelation"}
    assert reasons.pop("missing") == "relation 'Missing' is not installed"
    assert reasons.pop("other") == "relation 'PerCall' is not installed"
    assert reasons.pop("few").startswith("APIContainRelation does not understand its params: ")
    assert "precondition group 'mood' is not understood" in reasons.pop("group")
    assert "is about several records" in reasons.pop("pair")
    assert reasons == {}


def test_if_none_can_be_checked_each_reason_is_told_once() -> None:
    """With the relations that are installed."""
    invariants = [contains(id_, "f", relation="Missing") for id_ in "abc"]

    with pytest.raises(InvariantError) as caught:
        relations_for(invariants)

    assert str(caught.value).startswith(
        "None of the invariants can be checked: a: relation 'Missing' is not installed (installed"
    )


def test_a_relation_that_ignores_arguments_is_not_asked_about_them(plugins: Plugins) -> None:
    """It would judge calls that are not meant."""
    plugins.install(First)
    asks = Invariant(
        id="1",
        text_description="",
        relation="First",
        params=(APIParam(api_full_name="f", arguments={"p": 1}),),
        precondition={},
    )

    reasons = not_checkable([asks], load_relations(only=["First"]))

    assert reasons == {"1": "First does not look at arguments and exceptions, as its params ask"}
