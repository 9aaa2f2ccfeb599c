"""What is shown of a fault of ours when that is asked for."""

from __future__ import annotations

import pytest

from traincheck_instrument.recorder.faults import Faults


def fail(faults: Faults) -> None:
    """Meet a fault."""
    try:
        {}["ours"]
    except KeyError as error:
        faults.contain("the encoding", error)


@pytest.mark.parametrize("value", ["1", ""])
def test_the_first_fault_of_a_kind_is_shown_with_its_traceback(value, monkeypatch, capsys):
    """Only if `TRAINCHECK_DEBUG` is set; each is reported in any case."""
    monkeypatch.setenv("TRAINCHECK_DEBUG", value)
    reported: list[str] = []
    faults = Faults(reported.append)

    fail(faults)
    fail(faults)

    told = capsys.readouterr().err
    assert len(reported) == 2
    assert told.count("traincheck: not recorded, training goes on: the encoding") == 1
    assert told.count("Traceback (most recent call last)") == (1 if value else 0)
