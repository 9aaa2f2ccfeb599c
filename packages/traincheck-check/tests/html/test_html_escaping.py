"""Names that a training program chose, or somebody who means harm."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.occasion import Reference
from traincheck_trace_schema.results import Suppressed

HOSTILE = (
    "<script>document.title = 'owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "' onmouseover='document.title=1' x='",
    "--></style></title></svg><script src=https://evil.example/x.js></script>",
    "&lt;b&gt; &#60;script&#62;",
    "\x00\x1b[31mred\x07\n\r\t\u2028",
    "safe\u202egnp.exe\u2066\u200f",
    "\udcff a byte that is no text, and \U000e0041 a tag",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:document.title='owned'",
    "e" + "\u0301" * 300,
    "x" * 5000,
    "",
)


def filled(told, name: str):
    """Put a name wherever the training program has a say."""
    place = told.place(1, function=name or "f", source=name)
    told.look_at = name.replace("; ", ";")  # which stands between several
    told.warnings = (name,)
    told.broken(
        name,
        expected=name,
        first=place,
        variables=(name, name + "2"),
        evidence=(told.record(1, requires_grad=name, **{name: {name: name}, "kind": name}),),
        reference=Reference(
            run=name or "r", at=place, evidence=(told.record(1, requires_grad=1, kind=name),)
        ),
    )
    told.broken(name, expected=name, group=0)
    told.broken(name, known=True)
    told.silent(name, name, name)
    told.more.update(
        complete=False,
        incomplete_because=(name,),
        suppressions=(Suppressed(pattern=name, reason=name, invariant_ids=("a",)),),
    )
    return told


def shape(tree) -> list[tuple[str, frozenset[str]]]:
    """Return the elements of a page, with the names of their attributes."""
    return [(each.tag, frozenset(each.keys())) for each in tree.iter()]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_changes_nothing_but_text(begin, tell, parse, name: str) -> None:
    """The page has the elements and attributes that it has for a name that means no harm."""
    tame = parse(begin().page(filled(tell(), "name" if name else "").report("run")))
    tree = parse(begin().page(filled(tell(), name).report(name or "run")))

    assert shape(tree) == shape(tame)
    links = {each.get("href").partition(":")[0] for each in tree.iter("a")}
    assert all(each.startswith(("./", "#")) for each in links)


def test_what_cannot_be_seen_is_shown_as_a_code(begin, tell) -> None:
    """Control characters, marks that turn the direction of text, halves of characters."""
    page = begin().page(filled(tell(), "\x00a\u202eb\ud800c\n").report())

    assert page.isprintable() is False  # it has lines
    assert all(each.isprintable() or each == "\n" for each in page)
    assert r"\x00a\u202eb\ud800c\n" in page


def test_long_names_are_cut(begin, tell) -> None:
    """The page says how much is left out."""
    page = begin().page(filled(tell(), "x" * 5000).report())

    assert "x" * 601 not in page
    assert "… (4,400 more characters)" in page
    assert "… (4,840 more characters)" in page


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(name=st.text(min_size=1, max_size=40))
def test_any_name_gives_a_page_that_parses(begin, tell, parse, name: str) -> None:
    """Whatever the name, the page is whole, and shows nothing that has no look of its own."""
    page = begin().page(filled(tell(), name).report())

    parse(page)
    assert all(each.isprintable() or each == "\n" for each in page)
