"""Two runs, compared in chosen steps: what was lost in them matters, what lies after does not."""

import pytest

from traincheck_check.comparing.choice import Choice
from traincheck_check.comparing.comparison import compare
from traincheck_check.comparing.result import KINDS
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.reading import open_run


@pytest.fixture
def world_size():
    return 1


@pytest.fixture
def write(tmp_path, world_size):
    """Return a function that writes a run of some ranks; `edit` changes the records of the last."""

    def run(name, steps=8, *, ranks=(0,), complete=True, edit=None):
        trace = TraceBuilder(tmp_path / name, run_id=name, world_size=world_size)
        for rank in ranks:
            train(trace.rank(rank), steps)
        if edit is not None:
            edit(trace.rank(ranks[-1]).records)
        trace.write(complete=complete)

    return run


@pytest.fixture
def between(tmp_path):
    """Return a function that compares runs `a` and `b`."""

    def run(first_step=None, last_step=None, kinds=KINDS):
        choice = Choice(first_step=first_step, last_step=last_step, kinds=kinds)
        return compare(open_run(tmp_path / "a"), open_run(tmp_path / "b"), ("a", "b"), choice)

    return run


def losing_in(step, reason="queue"):
    """Return what takes note, within a step, that records were lost."""

    def edit(records):
        begin = _first_of(records, step)
        gap = {**records[begin], "kind": "gap", "reason": reason, "count": 5}
        del gap["sampled"]
        records.insert(begin + 2, gap)

    return edit


def killed_in(step):
    """Return what leaves out all that comes after the begin of a step."""

    def edit(records):
        del records[_first_of(records, step) + 3 :]

    return edit


def without_last_call_of(step):
    """Return what leaves out the last call of a step, and what comes after it there."""

    def edit(records):
        after = _first_of(records, step + 1)
        begins = (at for at in range(after) if records[at]["kind"] == "call_begin")
        del records[max(begins) : after]

    return edit


def _first_of(records, step):
    found = (at for at, each in enumerate(records) if each["kind"] == "step")
    return next(at for at in found if records[at]["step"] == step)


@pytest.mark.parametrize(
    ("lost", "last_step", "is_complete"),
    [
        ((2, "queue"), None, False),
        ((2, "queue"), 5, False),
        ((5, "queue"), 5, False),
        ((2, "disk"), 5, False),
        ((2, "sampling"), 5, True),
        ((6, "queue"), 5, True),
        ((7, "queue"), 5, True),
    ],
)
def test_what_was_lost_counts_up_to_the_last_step_that_is_compared(
    write, between, lost, last_step, is_complete
):
    """Records that were lost later could tell nothing of the chosen steps."""
    write("a")
    write("b", edit=losing_in(*lost))

    comparison = between(last_step=last_step)

    assert comparison.verdict == "same"
    assert comparison.is_complete is is_complete
    assert not comparison.a.incomplete_because
    assert comparison.summary.endswith("but a trace is incomplete") is not is_complete


@pytest.mark.parametrize("world_size", [2])
def test_a_rank_that_left_no_trace_is_missing_in_chosen_steps_too(write, between):
    """Nobody knows what it did there."""
    write("a", ranks=(0, 1))
    write("b", ranks=(0,))

    assert between(last_step=5).b.incomplete_because == ("rank 1 of 2 left no trace",)


def test_lines_that_are_no_records_count_up_to_the_last_step(write, between, tmp_path):
    """As records that were lost."""
    write("a")
    write("b")
    (path,) = (tmp_path / "b").glob("trace_*")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:20], "no record\n", *lines[20:]]))

    reasons = between(last_step=5).b.incomplete_because
    assert reasons == ("trace_r0_p1000.json: lines that are no records: 1",)


@pytest.mark.parametrize(("ranks", "world_size"), [((0,), 1), ((0, 1), 2)])
@pytest.mark.parametrize(("killed", "is_complete"), [(3, False), (5, False), (6, True), (7, True)])
def test_a_run_that_was_killed_is_whole_in_the_steps_before_it(
    write, between, ranks, killed, is_complete
):
    """In the one in which it was killed it is not, and what it did not come to is no difference."""
    write("a", ranks=ranks)
    write("b", ranks=ranks, complete=False, edit=killed_in(killed))

    comparison = between(last_step=5)

    assert comparison.verdict == "same"
    assert comparison.is_complete is is_complete
    reasons = comparison.b.incomplete_because
    assert [each.split(": ")[0] for each in reasons] == (
        [] if is_complete else [f"trace_r{ranks[-1]}_p{1000 + ranks[-1]}.json"]
    )


@pytest.mark.parametrize("world_size", [2])
def test_a_rank_that_is_silent_right_after_the_last_step_may_still_go_on(write, between):
    """It did not die where nothing was recorded of it."""

    def edit(records):
        records[:] = [each for each in records if each.get("step") != 6]

    write("a", ranks=(0, 1))
    write("b", ranks=(0, 1), complete=False, edit=edit)

    assert between(last_step=5).is_complete


def test_the_end_of_the_last_chosen_step_is_compared_in_runs_that_were_killed_later(write, between):
    """Both went on after it."""

    def edit(records):
        killed_in(7)(records)
        without_last_call_of(5)(records)

    write("a", complete=False, edit=killed_in(7))
    write("b", complete=False, edit=edit)

    (divergence, *_) = between(last_step=5).divergences
    assert divergence.what.startswith("A calls torch.optim.SGD.step, B does not")
    assert divergence.step == 5


def test_a_run_without_the_last_chosen_step_that_goes_on_does_not_end_before_it(write, between):
    """The step was not recorded; what differs at the end of the one before counts as ever."""

    def edit(records):
        without_last_call_of(4)(records)
        records[:] = [each for each in records if each.get("step") != 5]

    write("a")
    write("b", edit=edit)

    for kinds in (("calls", "steps"), ("calls",)):
        comparison = between(last_step=5, kinds=kinds)

        assert [(each.kind, each.step) for each in comparison.divergences] == [("calls", 4)]
        assert comparison.steps == 5


def test_a_run_that_ends_among_the_chosen_steps_is_told(write, between):
    """That the other goes on even after these is no reason not to."""
    write("a")
    write("b", 4)

    assert between(last_step=3).verdict == "same"
    comparison = between(last_step=5)
    assert [each.what for each in comparison.divergences] == [
        "B ends after step 3, A goes on to step 5"
    ]
    only_later = between(first_step=4)
    assert only_later.summary == (
        "None of the chosen steps is in both: B ends after step 3, A goes on to step 7"
    )


@pytest.mark.parametrize("last_step", [None, 200])
def test_steps_that_no_run_has_are_not_compared(write, between, last_step):
    """That all is alike before them says nothing of them."""
    write("a")
    write("b")

    comparison = between(100, last_step)

    assert comparison.verdict == "not compared"
    assert comparison.summary == (
        "Nothing could be compared: none of the chosen steps is whole in both traces"
    )


def test_chosen_steps_before_which_the_trace_begins_are_not_compared(write, between):
    """The traces have ranks in common all the same, and tell of them."""

    def edit(records):
        records[1:] = [each for each in records[1:] if each["step"] >= 4]

    write("a", edit=edit)
    write("b", edit=edit)

    comparison = between(last_step=2)

    assert (comparison.verdict, comparison.a.ranks, comparison.b.ranks) == (
        *("not compared", (0,), (0,)),
    )
    assert comparison.is_complete
