"""What is said of a finished run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_launcher.telling.trace_report import report
from traincheck_trace_schema.glance import glance
from traincheck_trace_schema.reading import open_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Report = Callable[..., str]

WHERE = {"thread": 0, "seq": 0, "step": 0}
HEADER = {
    "kind": "header",
    "schema": "traincheck.trace",
    "version": "1.0",
    "run_id": "r",
    "host": "h",
    "role": "main",
    "local_rank": 0,
    "clock": {"wall_ns": 0, "monotonic_ns": 0},
    "recording": {"mode": "full"},
}


def steps(count: int, *, every: int = 1) -> list[dict[str, Any]]:
    """Return records of steps, of which every n-th is recorded."""
    return [
        {"kind": "step", **WHERE, "step": step, "sampled": step % every == 0}
        for step in range(count)
    ]


def variable(name: str, *shape: int, role: str = "parameter") -> dict[str, Any]:
    """Return the record of a variable that is there; without a shape, its data is not wanted."""
    tensor = {"tensor": {"shape": shape, "dtype": "float32", "device": "cpu"}}
    attributes = {"data": tensor} if shape else {}
    fields = {"type": "t", "role": role, "names": [name], "storage": 0, "attributes": attributes}
    return {"kind": "var", **WHERE, "event": "baseline", "id": 1, **fields}


@pytest.fixture
def lines(tmp_path: Path) -> Report:
    """Return what is told of a run: of each rank the records, and the fields that are its own."""

    def told(
        *ranks: list[dict[str, Any]],
        header: dict[str, Any] | None = None,
        later: dict[str, Any] | None = None,
        footer: dict[str, Any] | None = None,
        models: tuple[str, ...] = ("model",),
        known: tuple[str, ...] = (),
    ) -> str:
        for rank, records in enumerate(ranks):
            first = HEADER | {"pid": rank, "rank": rank, "world_size": len(ranks)} | (header or {})
            again = [{**first, **later}] if later else []
            last = {"kind": "footer", "records": {}, "seconds": 40, **(footer or {})}
            (tmp_path / f"trace_r{rank}.json").write_text(
                "".join(f"{json.dumps(each)}\n" for each in (first, *records, *again, last))
            )
        return "\n".join(report(glance(open_run([tmp_path])), "out", models, known))

    return told


def test_it_begins_with_where_the_trace_is_and_how_large(lines):
    """Records and bytes of all files together."""
    told = lines(steps(2), steps(2)).splitlines()[0]

    assert told.startswith("trace in out: 8 records, ")
    assert told.endswith(" B in 2 files")


def test_models_are_told_with_their_parameters(lines):
    """By the name in the script, dots and all; others may be tracked by hand."""
    told = lines(
        [
            *(variable("self.net.a", 3, 4), variable("self.net.b", 5)),
            *(variable("self.net.mean", 7, role="buffer"), variable("critic.a", 1)),
        ],
        models=("self.net",),
    )

    assert (
        "models tracked: self.net (17 parameters in 2 tensors), critic (1 parameter in 1 tensor)"
        in told
    )


def test_models_of_which_no_data_is_recorded_are_told_by_their_tensors(lines):
    """Their sizes are not known then."""
    assert "models tracked: model (2 parameter tensors)" in lines(
        [variable("model.a"), variable("model.b")]
    )


def test_steps_are_told_once_where_all_ranks_agree(lines):
    """Seen, recorded if not all are, and those of evaluation if there are any."""
    evaluation = {"kind": "step", **WHERE, "eval_pass": 1, "eval_step": 0, "sampled": True}
    left_out = {**evaluation, "eval_step": 1, "sampled": False}

    sampled = lines([*steps(6, every=3), evaluation, left_out])
    told = [
        *(lines([*steps(6), evaluation]), sampled),
        *(lines(steps(6), steps(6)), lines(steps(6), steps(4))),
    ]

    assert [each.partition("training steps seen: ")[2] for each in told] == [
        "6; evaluation steps: 1",
        "6, recorded: 2; evaluation steps: 2, recorded: 1",
        "6 on each of 2 ranks",
        "rank 0: 6, rank 1: 4",
    ]


def test_of_a_rank_that_was_restarted_the_longest_run_counts(lines, tmp_path):
    """Each start of a rank leaves a file of its own."""
    alone = {"rank": 0, "world_size": 1}
    (tmp_path / "trace_r0_p9.json").write_text(
        "".join(f"{json.dumps(each)}\n" for each in (HEADER | alone | {"restart": 1}, *steps(4)))
    )

    told = lines(steps(6), header=alone)

    assert told.endswith("training steps seen: 6")


def test_starts_of_one_program_stand_side_by_side(lines):
    """As those of a shell script that runs it with several seeds."""
    told = lines(steps(6), steps(4), header={"rank": 0, "world_size": 1})

    assert told.endswith("training steps seen: 6, 4 in 2 starts of the program")


def test_steps_that_are_not_in_the_script_are_told_as_such(lines):
    """Where a Trainer class has the loop, calls of the model are counted instead."""
    told = lines(steps(6), header={"steps_from": "model"})

    assert told.endswith("training steps seen: 6; counted by the calls of the model")


def test_the_cost_is_a_share_of_the_run(lines):
    """Seconds and percent, and how far the interval rose for the budget."""
    policy = {"interval": 1, "budget": 5}
    times = {"recording_seconds": 1.5, "starting_seconds": 0.31}
    settled = {"settled_seconds": 20, "settled_recording_seconds": 0.9}

    kept = lines(steps(3), header={"sampling": policy}, footer=times)
    risen = lines(
        steps(3),
        header={"sampling": policy},
        later={"sampling": {**policy, "interval": 8}},
        footer=times | settled,
    )

    soon = lines(
        steps(3),
        header={"sampling": policy},
        later={"sampling": {**policy, "interval": 8}},
        footer=times,
    )

    first_steps = "; with the first steps, since which 1 of 8 is recorded, for the budget of 5%"
    cost = "time spent in TrainCheck: 3.8% of the run (1.5 s of 40 s), and 0.31 s to begin"
    assert kept.endswith(cost)
    assert soon.endswith(f"{cost}{first_steps}")
    assert risen.endswith(f"{cost}; 4.5% since 1 of 8 steps is recorded, for the budget of 5%")


def test_what_was_not_observed_is_shortened(lines):
    """Records that were lost come first; sampling loses none. Many are counted."""
    recording = {
        "mode": "full",
        "not_wrapped": {f"f{number}": "fixed" for number in range(9)},
        "not_observed": {"a": "compiled", "b": "compiled", "c": "known"},
    }
    gaps = [
        {"kind": "gap", **WHERE, "reason": "sampling"},
        {"kind": "gap", **WHERE, "reason": "disk", "count": 7},
    ]

    told = lines(gaps, header={"recording": recording}, known=("c",)).splitlines()[-1]

    assert told == (
        "not observed: 7 records missing (disk), 9 functions (traincheck-schema show out), "
        "a and b (compiled)"
    )
