"""Joining, comparing, choosing and suppressing invariants."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.managing.choice import Choice
from traincheck_relations.managing.claims import claim_in_words, claim_key, condition_in_words
from traincheck_relations.managing.difference import difference
from traincheck_relations.managing.ids import by_prefix, short_ids
from traincheck_relations.managing.suppressing import added, pattern_for, removed
from traincheck_relations.managing.union import union
from traincheck_relations.suppression import Suppressions, functions_of, is_matched
from traincheck_trace_schema.errors import ConfigError, InvariantError
from traincheck_trace_schema.invariant_id import invariant_id
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
    OccasionParam,
    Params,
    VarTypeParam,
)
from traincheck_trace_schema.occasion import Place, Reference
from traincheck_trace_schema.suppressions import Suppression

FUNCTIONS = ("torch.optim.Optimizer.step", "torch.Tensor.backward", "app.loss")
RELATIONS = ("APIContainRelation", "ConsistencyRelation")
CONDITIONS = ("", "requires_grad", "held", "tied")
RUNS = ("r1", "r2", "r3", "r4")


def make(
    relation: str = RELATIONS[0],
    function: str = FUNCTIONS[0],
    condition: str = "",
    **fields: Any,
) -> Invariant:
    """Return an invariant about the calls of a function, always or where a property is true."""
    clause = Clause(type="constant", prop_name=f"var.{condition}", values=(True,))
    group = ConditionGroup(
        preconditions=(Conjunction(clauses=(clause,) if condition else "Unconditional"),)
    )
    params: Params = (
        APIParam(api_full_name=function),
        VarTypeParam(var_type="torch.nn.Parameter", attr_name="data"),
    )
    made = Invariant(
        id=invariant_id(relation, params, {"call": group}),
        text_description=f"{function} changes data",
        relation=relation,
        params=params,
        precondition={"call": group},
    )
    words = condition_in_words(made)
    sentence = f"{made.text_description} {words}" if words else made.text_description
    return attrs.evolve(made, **{"text_description": sentence, **fields})


def held_in(run: str, step: int = 0) -> Reference:
    """Return that an invariant held in a run."""
    return Reference(run=run, at=Place(step=step, stage="training", rank=0))


MEANINGS = st.tuples(
    st.sampled_from(RELATIONS), st.sampled_from(FUNCTIONS), st.sampled_from(CONDITIONS)
)


@st.composite
def invariants(draw: st.DrawFn) -> Invariant:
    """Draw one invariant, inferred from anything."""
    return make(
        *draw(MEANINGS),
        runs=tuple(sorted(draw(st.sets(st.sampled_from(RUNS))))),
        num_positive_examples=draw(st.none() | st.integers(0, 5)),
        num_negative_examples=draw(st.none() | st.integers(0, 5)),
        tracker=draw(st.sampled_from([None, "subclass", "proxy"])),
        likelihood=draw(st.none() | st.sampled_from([0.25, 0.5])),
        reference=draw(st.none() | st.sampled_from(RUNS).map(held_in)),
    )


FILES = st.lists(st.lists(invariants(), max_size=5, unique_by=lambda each: each.id), max_size=4)
quick = settings(deadline=None, max_examples=60)


def _ids(some: Any) -> list[str]:
    return [each.id for each in some]


@quick
@given(files=FILES, data=st.data())
def test_a_union_does_not_depend_on_the_order_of_files(
    files: list[list[Invariant]], data: st.DataObject
) -> None:
    """Nor on how the lines of a file are sorted, nor on how often a file is given."""
    shuffled = [data.draw(st.permutations(each)) for each in data.draw(st.permutations(files))]
    again = [data.draw(st.sampled_from(files))] if files else []

    assert union([*shuffled, *again]) == union(files)


@quick
@given(files=FILES)
def test_a_union_can_be_joined_with_what_it_was_made_of(files: list[list[Invariant]]) -> None:
    """Nothing changes: a script may merge into its own output again and again."""
    whole = union(files)

    assert union([whole]) == whole
    assert union([whole, *files]) == whole


def test_the_reference_of_a_union_is_that_in_the_first_run() -> None:
    """As if all had been inferred together; a file that tells none loses nothing."""
    files = [[make(reference=one)] for one in (held_in("r3"), None, held_in("r2"), held_in("r4"))]

    (joined,), (nothing,) = union(files), union([[make()]])

    assert joined.reference == held_in("r2")
    assert nothing.reference is None


@quick
@given(files=FILES)
def test_a_union_has_each_invariant_once_and_all_runs(files: list[list[Invariant]]) -> None:
    """Nothing is lost, nothing is twice."""
    whole = union(files)

    assert sorted(_ids(whole)) == sorted({each.id for file in files for each in file})
    for each in whole:
        runs = {run for file in files for one in file if one.id == each.id for run in one.runs}
        assert each.runs == tuple(sorted(runs))


@quick
@given(
    sets=st.lists(st.sets(st.sampled_from(RUNS), min_size=1), min_size=1, max_size=4),
    of_run=st.fixed_dictionaries({run: st.integers(0, 9) for run in RUNS}),
)
def test_examples_are_counted_right_or_not_told(
    sets: list[set[str]], of_run: dict[str, int]
) -> None:
    """What files say of some runs is added up; of runs that overlap nobody knows the sum."""
    files = [
        [
            make(
                runs=tuple(sorted(runs)),
                num_positive_examples=sum(of_run[run] for run in runs),
                num_negative_examples=2 * sum(of_run[run] for run in runs),
            )
        ]
        for runs in sets
    ]

    (joined,) = union(files)

    right = sum(of_run[run] for run in set().union(*sets))
    counts = (joined.num_positive_examples, joined.num_negative_examples)
    is_known = all(a <= b or b <= a or a.isdisjoint(b) for a in sets for b in sets)
    assert counts == (right, 2 * right) or (not is_known and counts == (None, None))


def test_what_two_files_tell_differently_is_left_out() -> None:
    """Other numbers for the same runs, other trackers; of likelihoods the highest counts."""
    one = make(runs=("a",), num_positive_examples=3, tracker="proxy", likelihood=0.25)
    other = attrs.evolve(one, num_positive_examples=4, tracker="sampler", likelihood=0.75)
    untold = attrs.evolve(one, runs=())

    (joined,) = union([[one], [other]])
    (unknown,) = union([[one], [untold]])

    assert (joined.num_positive_examples, joined.tracker, joined.likelihood) == (None, None, 0.75)
    assert (unknown.num_positive_examples, unknown.tracker) == (None, "proxy")


def test_words_that_differ_do_not_make_the_order_matter() -> None:
    """One invariant may be put in words, or its condition be sorted, in several ways."""
    one, other = make(text_description="b"), make(text_description="a")

    assert union([[one], [other]]) == union([[other], [one]]) == [other]


def test_what_is_most_likely_a_bug_comes_first() -> None:
    """Then by relation and sentence; what tells no likelihood comes last."""
    low, high = make(likelihood=0.25), make(condition="held", likelihood=0.75)
    untold = make(function=FUNCTIONS[1])

    assert union([[untold, low], [high]]) == [high, low, untold]


def test_an_id_that_stands_for_different_invariants_is_refused() -> None:
    """Ids by hand may meet; one of the two would be lost."""
    one, other = make(id="mine"), make(function=FUNCTIONS[1], id="mine")

    with pytest.raises(InvariantError, match="'mine' stands for different invariants"):
        union([[one], [other]])


@quick
@given(file=st.lists(invariants(), max_size=6, unique_by=lambda each: each.id))
def test_no_file_differs_from_itself(file: list[Invariant]) -> None:
    """However its lines are sorted, and whatever it says of runs and examples."""
    other = [attrs.evolve(each, runs=("x",), num_positive_examples=99) for each in file[::-1]]

    found = difference(file, other)

    assert not found
    assert found.same == len(file)


@quick
@given(files=st.tuples(*[st.lists(invariants(), max_size=6, unique_by=lambda each: each.id)] * 2))
def test_a_difference_tells_each_invariant_once(files: tuple[list[Invariant], ...]) -> None:
    """It is only here, only there, under other conditions, or the same; and so seen from there."""
    here, there = files
    found, back = difference(here, there), difference(there, here)

    claims = [{claim_key(each) for each in file} for file in files]
    both = [each for one in found.changed for each in one.both]
    mine = [each for one in found.changed for each in one.before]
    others = [each for one in found.changed for each in one.after]
    assert set(_ids(found.only_first)) == {e.id for e in here if claim_key(e) not in claims[1]}
    assert set(_ids(found.only_second)) == {e.id for e in there if claim_key(e) not in claims[0]}
    assert len(here) == len(found.only_first) + len(mine) + found.same
    assert len(there) == len(found.only_second) + len(others) + found.same
    assert {*_ids(both)} <= {*_ids(here)} & {*_ids(there)}
    assert all(one.before or one.after for one in found.changed)
    assert bool(found) == ({*_ids(here)} != {*_ids(there)})
    assert (back.only_first, back.only_second) == (found.only_second, found.only_first)
    assert {(frozenset(_ids(one.after)), frozenset(_ids(one.before))) for one in back.changed} == {
        (frozenset(_ids(one.before)), frozenset(_ids(one.after))) for one in found.changed
    }


def test_another_relation_is_another_claim() -> None:
    """Though it is about the same."""
    one, other = make(), make(relation=RELATIONS[1])

    found = difference([one], [other])

    assert (found.only_first, found.only_second, found.changed) == ((one,), (other,), ())


def test_a_condition_that_changed_is_told_of_its_claim() -> None:
    """The claim is the same, which is seen by its content and not by its words."""
    before = [make(condition="held"), make(condition="tied"), make(function=FUNCTIONS[2])]
    after = [make(condition="requires_grad"), make(condition="tied", text_description="other")]

    found = difference(before, after)

    (changed,) = found.changed
    assert (changed.before, changed.after, changed.both) == (
        (before[0],),
        (after[0],),
        (before[1],),
    )
    assert found.only_first == (before[2],)
    assert claim_in_words(changed.members[0]) == f"{FUNCTIONS[0]} changes data"
    assert condition_in_words(changed.after[0]) == "when the variable requires a gradient"


SUPPRESSED = make(condition="held")
SENTENCE = SUPPRESSED.text_description


@pytest.mark.parametrize(
    "pattern",
    [
        SUPPRESSED.id,
        f"{SUPPRESSED.id[:6]}*",
        "APIContainRelation",
        "API*",
        "torch.optim.Optimizer.step",
        "*.Optimizer.step",
        "torch.optim.[NO]ptimizer.ste?",
        SENTENCE,
        "*held by an optimizer",
    ],
)
def test_a_pattern_matches_an_id_a_relation_a_function_or_a_sentence(pattern: str) -> None:
    """With the wildcards of a shell."""
    assert is_matched(SUPPRESSED, pattern)
    assert Suppressions.of([Suppression(pattern=pattern, reason="r")]).find(SUPPRESSED)


@pytest.mark.parametrize(
    "pattern",
    [
        SUPPRESSED.id[:6],
        "apicontainrelation",
        "Optimizer.step",
        "torch.optim.[!O]*",
        "held",
        "torch.nn.Parameter",
        "torch.optim.Optimizer.step.*",
    ],
)
def test_a_pattern_matches_as_a_whole_or_not(pattern: str) -> None:
    """Not a part of a text, nor another case; types are nothing that is matched."""
    assert not is_matched(SUPPRESSED, pattern)
    assert not Suppressions.of([Suppression(pattern=pattern, reason="r")]).find(SUPPRESSED)


def test_all_functions_of_an_invariant_count() -> None:
    """Those of calls and those at which something is compared."""
    occasion = OccasionParam(function="torch.Tensor.backward", phase="end")
    both = attrs.evolve(SUPPRESSED, params=(*SUPPRESSED.params, occasion, occasion))

    assert functions_of(both) == ("torch.optim.Optimizer.step", "torch.Tensor.backward")
    assert is_matched(both, "*.backward")


PATTERNS = st.sampled_from(
    [*RELATIONS, *FUNCTIONS, "*", "*.step", "API*", "app.[kl]oss", "none", SUPPRESSED.id, "*held*"]
)
PATTERN_LISTS = st.lists(PATTERNS, max_size=6)


@quick
@given(one=invariants(), patterns=PATTERN_LISTS)
def test_the_first_suppression_that_matches_counts(one: Invariant, patterns: list[str]) -> None:
    """Whether it is a text or has wildcards, which are looked up in different ways."""
    suppressions = [Suppression(pattern=each, reason=str(n)) for n, each in enumerate(patterns)]

    matching = [at for at, each in enumerate(suppressions) if is_matched(one, each.pattern)]

    known = Suppressions.of(suppressions)
    assert known.matching(one) == matching
    assert known.find(one) == (suppressions[matching[0]] if matching else None)


@quick
@given(patterns=PATTERN_LISTS, more=PATTERN_LISTS)
def test_suppressions_are_added_and_removed(patterns: list[str], more: list[str]) -> None:
    """Each stands once, sorted, with its last reason; what is removed leaves the others alone."""
    first = added([], patterns, "first")
    both = added(first, more, "second")

    assert [each.pattern for each in both] == sorted({*patterns, *more})
    assert {each.pattern for each in both if each.reason == "second"} == {*more}
    assert added(both, more, "second") == both
    left, gone = removed(both, more, where="file")
    assert {*gone} == {*more}
    assert left == [each for each in first if each.pattern not in more]


def test_removing_takes_the_beginning_of_a_pattern() -> None:
    """As it stands in the list; what is not there or not clear is refused."""
    suppressions = added([], ["abc", "abd", "x*"], "so")

    assert removed(suppressions, ["x"], where="f")[1] == ["x*"]
    with pytest.raises(ConfigError, match="f: 2 ids begin with 'ab': abc, abd"):
        removed(suppressions, ["ab"], where="f")
    with pytest.raises(ConfigError, match="f: nothing here has the id 'q'"):
        removed(suppressions, ["q"], where="f")


def test_a_person_may_type_the_beginning_of_an_id() -> None:
    """The whole id is kept; a name or a pattern that matches stays as it is."""
    known = [make(), make(condition="held", id="4aaa"), make(condition="tied", id="4aab")]

    assert pattern_for(known[0].id[:5], known, where="f") == known[0].id
    assert pattern_for(FUNCTIONS[0], known, where="f") == FUNCTIONS[0]
    assert pattern_for("4aa*", known, where="f") == "4aa*"
    with pytest.raises(ConfigError, match="f: 2 ids begin with '4a': 4aaa, 4aab; give more"):
        pattern_for("4a", known, where="f")
    for wrong in ("app.loss", "*q", "", "4aaaa"):
        with pytest.raises(ConfigError, match="f: no invariant has the id"):
            pattern_for(wrong, known, where="f")


@quick
@given(ids=st.lists(st.text("0ab", min_size=1, max_size=12), min_size=1, unique=True))
def test_short_ids_find_their_ids(ids: list[str]) -> None:
    """What is shown of an id can be typed, and is no shorter than it takes to be remembered."""
    for id_, short in short_ids(ids).items():
        assert by_prefix(short, ids, where="f") == id_
        assert len(short) >= min(8, len(id_))


def test_short_ids_are_as_long_as_it_takes() -> None:
    """Of ids that begin with the same eight characters more is shown."""
    assert short_ids(["0123456789ab", "0123456789cd", "4"]) == {
        "0123456789ab": "0123456789a",
        "0123456789cd": "0123456789c",
        "4": "4",
    }


def test_many_ids_that_begin_so_are_not_all_named() -> None:
    """The message stays a line to read."""
    with pytest.raises(ConfigError, match="12 ids begin with 'a': a0, a1, a10, a11, a2 and 7 more"):
        by_prefix("a", [f"a{number}" for number in range(12)], where="f")


STEP, BACKWARD, LOSS = (
    make(function=each, num_positive_examples=n) for n, each in enumerate(FUNCTIONS, start=9)
)
EQUAL = make(relation=RELATIONS[1], condition="tied", likelihood=0.75)


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ({}, [STEP, BACKWARD, LOSS, EQUAL]),
        ({"relations": ("Consist*",)}, [EQUAL]),
        ({"functions": ("*.loss", FUNCTIONS[1])}, [BACKWARD, LOSS]),
        ({"functions": ("loss",)}, []),
        ({"functions": (FUNCTIONS[0],), "relations": (RELATIONS[0],)}, [STEP]),
        ({"ids": frozenset((STEP.id, EQUAL.id))}, [STEP, EQUAL]),
        ({"words": re.compile("TENSOR|more than one name", re.IGNORECASE)}, [BACKWARD, EQUAL]),
        ({"min_likelihood": 0.5}, [EQUAL]),
        ({"min_positive": 10}, [BACKWARD, LOSS]),
    ],
)
def test_all_that_is_asked_must_be_met(asked: dict[str, Any], chosen: list[Invariant]) -> None:
    """Of several values of a kind one; the inverse is all that is left, in the same order."""
    every = [STEP, BACKWARD, LOSS, EQUAL]

    assert Choice(**asked).of(every) == chosen
    assert Choice(**asked, is_inverted=True).of(every) == [e for e in every if e not in chosen]
    assert Choice(**asked, is_inverted=True).asks == bool(asked)
