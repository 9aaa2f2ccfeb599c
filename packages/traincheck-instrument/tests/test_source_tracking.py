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
TRACKED_NET = "__traincheck__.track(Net(), name='model')"

ASSIGNMENTS = {
    "plain": ("model = Net()", f"model = {TRACKED_NET}"),
    "annotated": ("model: Net = Net()", f"model: Net = {TRACKED_NET}"),
    "an annotation alone": ("model: Net", "model: Net"),
    "tuple": ("model, (a, b) = build()", f"model, (a, b) = build()\n{TRACK}"),
    "chained": ("a = model = Net()", f"a = model = {TRACKED_NET}"),
    "chained to both": ("model = self.model = Net()", f"model = self.model = {TRACKED_NET}"),
    "wrapped again": (
        "model = Net()\nmodel = DDP(model)",
        f"model = {TRACKED_NET}\nmodel = __traincheck__.track(DDP(model), name='model')",
    ),
    "on one line": (
        "model = Net(); opt = SGD(model.parameters())",
        f"model = {TRACKED_NET}\nopt = SGD(model.parameters())",
    ),
    "attribute": ("trainer.model = Net()", f"trainer.model = {TRACKED_NET}"),
    "attribute of a call": ("make().model = Net()", f"make().model = {TRACKED_NET}"),
    "attribute in a tuple": (
        "job.model, x = build()",
        "job.model, x = build()\n__traincheck__.track(job.model, name='model')",
    ),
    "attribute of a call in a tuple": ("make().model, x = build()", "make().model, x = build()"),
    "walrus": ("use((model := Net()))", f"use((model := {TRACKED_NET}))"),
    "with": (
        "with build() as model:\n    run(model)",
        f"with build() as model:\n    {TRACK}\n    run(model)",
    ),
    "for": (
        "for model in models:\n    run(model)",
        f"for model in models:\n    {TRACK}\n    run(model)",
    ),
    "training loop": (
        "for model in models:\n    optimizer.step()",
        f"for model in models:\n    __traincheck__.start_step()\n    {TRACK}\n    optimizer.step()",
    ),
    "in a branch": (
        "if big:\n    model = Net()\nelse:\n    model = Net()",
        f"if big:\n    model = {TRACKED_NET}\nelse:\n    model = {TRACKED_NET}",
    ),
    "another name": ("models = Net()", "models = Net()"),
}


@pytest.mark.parametrize(("before", "after"), ASSIGNMENTS.values(), ids=ASSIGNMENTS.keys())
def test_each_assignment_to_the_name_is_tracked(before, after):
    """A value is tracked as it is bound; a part of one right after, before anything uses it."""
    assert rewritten(before, "model") == after


def test_a_dotted_name_names_an_attribute_only():
    """`self.model` tracks the attribute and not the variable `model`."""
    script = "model = Net()\nself.model = model"

    text = rewritten(script, "self.model")

    assert text == "model = Net()\nself.model = __traincheck__.track(model, name='self.model')"


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

    assert "self.model = __traincheck__.track(Net(), name='model')" in rewritten(script, "model")


def test_tracking_evaluates_nothing_twice_and_reads_nothing_back():
    """A base is called once; a write-only property and a name left unbound don't raise."""
    script = """
        made = []
        class Job:
            model = property(None, lambda self, value: made.append(value))
        def make():
            made.append("job")
            return Job()
        make().model = 1
        False and (model := 2)
        ignored = lambda: (model := 3)
        """
    code = rewrite(textwrap.dedent(script), "train.py", ["model"]).code()

    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102  our own text

    assert names["made"] == ["job", 1]


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
