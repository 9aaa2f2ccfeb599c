"""Patterns of names cover what they were made of, and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from traincheck_relations.variables.name_pattern import covers, summarise

NAMES = st.lists(st.sampled_from("ab01"), min_size=1, max_size=4).map(".".join)


@given(st.sets(NAMES), st.sets(NAMES))
def test_patterns_cover_all_names_and_no_other(names, others):
    """Unless a name is the begin of another one, as a module's is: that can't be told apart."""
    others -= names
    patterns = summarise(names, others)

    assert all(any(covers(pattern, name) for pattern in patterns) for name in names)
    for other in others:
        by = [pattern for pattern in patterns if covers(pattern, other)]
        assert all(other.startswith(f"{pattern}.") and pattern in names for pattern in by)


def test_a_repeated_layer_is_one_pattern():
    """Whatever the number of layers."""
    names = [f"model.layers.{layer}.base.{part}" for layer in range(12) for part in "wb"]
    others = [f"model.layers.{layer}.adapter.w" for layer in range(12)]

    assert summarise(names, others) == ["model.layers.*.base"]
