"""The example: a planted bug is found, twice in the same folder."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch


def test_the_planted_bug_is_found_and_found_again(place):
    """The command ends with 0 and names the frozen head; running it twice is no complaint."""
    for _ in range(2):
        result = place.run("traincheck", "example")

        assert result.returncode == 0, result.stdout + result.stderr
        assert "model.head.weight" in result.stdout
        assert "The planted bug was found" in result.stdout
        assert "error" not in result.stderr
    assert (place.path / "traincheck_example" / "results" / "violations_summary.json").exists()
