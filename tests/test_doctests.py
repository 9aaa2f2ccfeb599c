"""The examples in docstrings do what they show."""

import doctest
import importlib
import pkgutil

import pytest

PACKAGES = ("trace_schema", "relations", "infer", "check")


def modules():
    for name in PACKAGES:
        package = importlib.import_module(f"traincheck_{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield found.name


@pytest.mark.parametrize("name", list(modules()))
def test_the_examples_of_a_module_hold(name):
    """Each example gives the output that stands below it."""
    results = doctest.testmod(importlib.import_module(name))

    assert results.failed == 0
