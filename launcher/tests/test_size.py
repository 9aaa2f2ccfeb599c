"""Sizes as people write them."""

import pytest

from traincheck_launcher.commands.size import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500MB", 500_000_000),
        ("2GiB", 2 * 2**30),
        ("1.5 gb", 1_500_000_000),
        ("4096", 4096),
        ("16B", 16),
        ("3k", 3000),
        ("1TiB", 2**40),
    ],
)
def test_a_size_has_decimal_and_binary_units(text, size):
    """With or without B, in upper or lower case."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1e3", "5 apples", "1..2GB", "1iB", "nan"])
def test_other_text_is_no_size(text):
    """It is refused rather than guessed at."""
    assert parse_size(text) is None
