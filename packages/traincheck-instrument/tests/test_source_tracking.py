"""Which assignments are tracked, and which names could be."""

from __future__ import annotations

import textwrap

import pytest

from traincheck_instrument.source import rewrite


def rewritten(script: str, *models: str) -> str:
    """Return the rewritten script without its header and import."""
    text = rewrite(textwrap.dedent(script), "train.py", models).text()
    return text.partition("import traincheck_instrument as __traincheck__\n")[2].strip()


TRACK = "__traincheck__.track(model, name='model')"

ASSIGNMENTS = {
    "plain": ("model = Net()", f"model = Net()\n{TRACK}"),
    "annotated": ("model: Net = Net()", f"model: Net = Net()\n{TRACK}"),
    "an annotation alone": ("model: Net", "model: Net"),
    "tuple": ("model, (a, b) = build()", f"model, (a, b) = build()\n{TRACK}"),
    "chained": ("a = model = Net()", f"a = model = Net()\n{TRACK}"),
    "wrapped again": (
        "model = Net()\nmodel = DDP(model)",
        f"model = Net()\n{TRACK}\nmodel = DDP(model)\n{TRACK}",
    ),
    "on one line": (
        "model = Net(); opt = SGD(model.parameters())",
        f"model = Net()\n{TRACK}\nopt = SGD(model.parameters())",
    ),
    "attribute": (
        "trainer.model = Net()",
        "trainer.model = Net()\n__traincheck__.track(trainer.model, name='model')",
    ),
    "walrus": ("use((model := Net()))", f"use((model := Net()))\n{TRACK}"),
    "with": (
        "with build() as model:\n    run(model)",
        f"with build() as model:\n    {TRACK}\n    run(model)",
    ),
    "in a branch": (
        "if big:\n    model = Big()\nelse:\n    model = Small()",
        f"if big:\n    model = Big()\n    {TRACK}\nelse:\n    model = Small()\n    {TRACK}",
    ),
    "another name": ("models = Net()", "models = Net()"),
}


@pytest.mark.parametrize(("before", "after"), ASSIGNMENTS.values(), ids=ASSIGNMENTS.keys())
def test_each_assignment_to_the_name_is_tracked(before, after):
    """The call that tracks stands right after the assignment, before anything uses the model."""
    assert rewritten(before, "model") == after


def test_a_dotted_name_names_an_attribute_only():
    """`self.model` tracks the attribute and not the variable `model`."""
    script = "model = Net()\nself.model = model"

    text = rewritten(script, "self.model")

    assert text == f"{script}\n__traincheck__.track(self.model, name='self.model')"


def test_the_part_of_a_model_with_the_models_name_is_not_tracked():
    """Where the script has a variable `model`, an attribute `model` inside a module is a part."""
    script = """
        class Net(nn.Module):
            def __init__(self):
                self.model = nn.Linear(1, 1)
        model = Net()
        """

    assert rewritten(script, "model").count("track(") == 1


def test_an_attribute_of_a_module_is_tracked_if_there_is_no_variable():
    """A LightningModule that holds `self.model`: that is the model."""
    script = """
        class Task(LightningModule):
            def __init__(self):
                self.model = Net()
        """

    assert "__traincheck__.track(self.model, name='model')" in rewritten(script, "model")


def test_bound_names_tell_models_from_the_rest():
    """Names that hold modules come first; parts of modules and literals are others."""
    script = """
        class Net(nn.Module):
            def __init__(self):
                self.layer = nn.Linear(1, 1)
        net = Net()
        head = torch.nn.Linear(2, 2)
        criterion = torch.nn.CrossEntropyLoss()
        backbone = load()
        path = "x"
        optimizer = SGD(backbone.parameters())
        """

    bound = rewrite(textwrap.dedent(script), "train.py", []).findings.bound

    assert bound.modules == ("net", "head", "backbone")
    assert set(bound.others) == {"self.layer", "criterion", "path", "optimizer"}
