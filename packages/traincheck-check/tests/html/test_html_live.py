"""The page of a run that goes on, and how it is written."""

from __future__ import annotations

import pytest

from traincheck_check.reporting.html.reporter import HtmlReporter
from traincheck_trace_schema.errors import ConfigError

RELOADS = 'http-equiv="refresh"'


def going_on(tell, **more):
    return tell(more={"running": True, "complete": False, **more})


def test_the_page_reloads_while_the_run_goes_on(begin, tell) -> None:
    """And says so, with the time of what it shows."""
    page = begin("live").page(going_on(tell).report(), is_over=False)

    assert '<meta http-equiv="refresh" content="10">' in page
    assert "as of <time>2031-05-06 07:08:09 UTC</time>" in page


def test_the_page_of_a_run_that_is_over_does_not_reload(begin, tell) -> None:
    """The last report of a run is final."""
    reporting = begin("live")
    reporting.page(going_on(tell).report(), is_over=False)

    page = reporting.page(tell().report())

    assert RELOADS not in page
    assert "as of <time>" in page
    assert "Cut short" not in page


def test_a_check_that_ends_before_the_run_leaves_no_page_that_reloads(begin, tell) -> None:
    """A reader who waits for more would wait for ever."""
    page = begin("live").page(going_on(tell).report())

    assert RELOADS not in page
    assert "checking ended before the run did" in page


def test_every_change_of_a_live_run_is_written_at_once(begin, tell) -> None:
    """A reader has the latest."""
    reporting = begin("live")
    told = going_on(tell)
    reporting.page(told.report(), is_over=False)
    told.broken("just now")

    page = reporting.page(told.report(), is_over=False)

    assert "just now" in page


def test_of_several_runs_the_page_is_written_at_first_and_at_last(begin, tell) -> None:
    """Each time it would take longer, and nobody reads in between."""
    reporting = begin()

    first = reporting.page(tell().report("a"), is_over=False)
    second = reporting.page(tell().report("b"), is_over=False)
    last = reporting.page(tell().report("c"))

    assert first == second
    assert all(f'href="./{name}/passed.log"' in last for name in "abc")


def test_the_page_is_replaced_never_half_written(begin, tell) -> None:
    """Who has opened the old one reads it to its end."""
    reporting = begin("live")
    reporting.page(going_on(tell).report(), is_over=False)
    with reporting.path.open(encoding="utf-8") as old:
        inode = reporting.path.stat().st_ino
        reporting.page(tell().report())

        assert old.read().endswith("</html>")
    assert reporting.path.stat().st_ino != inode
    assert [each.name for each in reporting.path.parent.iterdir()] == ["report.html"]


def test_a_folder_in_its_place_is_told(begin, tell) -> None:
    """With the path; as every error of a reporter, it costs the report and not the results."""
    reporting = begin()
    reporting.path.mkdir()

    with pytest.raises(ConfigError, match=r"report\.html"):
        reporting.page(tell().report())


def test_it_can_be_switched_off() -> None:
    """Then nothing of it is loaded."""
    assert HtmlReporter().start({"no_html_report": True}, None) is None
