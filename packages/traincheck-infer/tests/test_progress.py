"""How far a long inference is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_infer import progress
from traincheck_infer.progress import Progress

if TYPE_CHECKING:
    import pytest


def work(tell: Progress) -> None:
    tell.begin("looking for candidates in good")
    tell.read(4096)
    tell.read(100)
    tell.end()


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A log is not filled with what took a second."""
    work(Progress(is_terminal=False))

    assert capsys.readouterr() == ("", "")


def test_long_work_says_what_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line from time to time, on stderr, with what was read so far."""
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0)
    monkeypatch.setattr(progress, "_FILE_SECONDS", 0)

    work(Progress(is_terminal=False))

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "traincheck-infer: looking for candidates in good",
        "traincheck-infer: looking for candidates in good: 4,096 records",
        "traincheck-infer: looking for candidates in good: 4,196 records",
    ]


def test_a_terminal_is_left_as_it_was(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line is written over again, and is gone at the end."""
    monkeypatch.setattr(progress, "_TERMINAL_SECONDS", 0)

    work(Progress(is_terminal=True))

    told = capsys.readouterr().err
    last = "traincheck-infer: looking for candidates in good: 4,196 records"
    assert "\n" not in told
    assert told.endswith(f"\r{last}\r{' ' * len(last)}\r")
