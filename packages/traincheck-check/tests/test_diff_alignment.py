"""Which calls of two runs correspond."""

from hypothesis import given
from hypothesis import strategies as st

from traincheck_check.comparing.alignment import aligned
from traincheck_check.comparing.script import END


def tokens(*calls):
    """Return the tokens of calls: a name, or a name with a list of what it contains."""
    found = []
    for call in calls:
        name, inner = (call, []) if isinstance(call, str) else call
        found += [name, *tokens(*inner), END]
    return found


def common(a, b):
    return [a[i] for i, j in aligned(a, b) if i is not None and j is not None and a[i] != END]


def test_what_is_missing_puts_nothing_else_out_of_step():
    """At each level, and whatever it contains."""
    a = tokens("zero_grad", ("forward", ["linear", "relu", "linear"]), "backward", "step")
    b = tokens(("forward", ["linear", "linear"]), "backward", "step")

    assert common(a, b) == ["forward", "linear", "linear", "backward", "step"]


def test_a_call_is_not_taken_for_one_that_another_call_made():
    """Nesting counts."""
    a = tokens(("forward", ["relu"]), "linear")
    b = tokens("forward", "relu", "linear")

    assert common(a, b) == ["forward", "linear"]


def test_calls_that_go_on_into_the_next_window_have_no_end():
    """Nor a begin in it."""
    assert common([END, "a", "b"], [END, "a", END, "b"]) == ["a"]


def test_much_disorder_takes_no_long_time():
    """What can't be aligned in reasonable time is not; what comes after it is."""
    a, b = [*map(str, range(3000))], [*map(str, range(3000, 0, -1))]

    assert common(tokens(*a, "end"), tokens(*b, "end")) == ["end"]


TREES = st.recursive(
    st.lists(st.sampled_from("abc"), max_size=3),
    lambda inner: st.lists(
        st.one_of(st.sampled_from("abc"), st.tuples(st.sampled_from("abc"), inner)), max_size=4
    ),
    max_leaves=12,
)


@given(TREES, TREES)
def test_each_token_has_one_place_in_the_order_of_its_run(x, y):
    """No token is lost or told twice, and only calls of one name are paired."""
    a, b = tokens(*x), tokens(*y)

    pairs = list(aligned(a, b))

    assert [i for i, _ in pairs if i is not None] == list(range(len(a)))
    assert [j for _, j in pairs if j is not None] == list(range(len(b)))
    assert all(a[i] == b[j] for i, j in pairs if i is not None and j is not None)
