"""What a program marks, and records, by its own hand."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import pytest
import torch
from torch import nn

import traincheck_instrument as traincheck
from traincheck_instrument.current import Current
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.plan import FunctionPlan, Plan
from traincheck_trace_schema.plan_file import write_plan
from traincheck_trace_schema.validation import FileCheck

pytestmark = pytest.mark.torch


def train(model, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        traincheck.start_step()
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()


def records(folder, kind=None):
    """Return the records of the only shard, which must be valid as a whole."""
    (shard,) = folder.glob("trace_*.json")
    assert [*FileCheck(shard).problems()] == []
    read = [loads(line) for line in shard.read_text().splitlines()]
    return [one for one in read if kind in (None, one["kind"])]


def functions(folder):
    return {one["function"] for one in records(folder, "call_begin")}


def test_a_block_is_recorded_and_leaves_nothing_behind(tmp_path):
    """Calls, variables and steps inside of it; a footer; wrappers and tracker are gone."""
    before = (nn.Linear.forward, nn.Module.__call__, nn.Parameter.__new__)
    model = nn.Linear(3, 2)

    with traincheck.record(tmp_path / "run"):
        train(traincheck.track(model, name="net"))
    train(model)

    folder = tmp_path / "run"
    assert [one["step"] for one in records(folder, "step")] == [0, 1, 2]
    assert {"torch.nn.Linear.forward", "torch.Tensor.backward"} <= functions(folder)
    assert ["net.weight"] in [one["names"] for one in records(folder, "var")]
    assert records(folder)[-1]["kind"] == "footer"
    assert records(folder, "header")[-1]["steps_from"] == "hand"
    assert type(model.weight) is nn.Parameter
    assert Current.session is None
    assert before == (nn.Linear.forward, nn.Module.__call__, nn.Parameter.__new__)


def test_a_process_can_be_recorded_twice(tmp_path):
    """Each recording has a run id, and counts its steps, of its own."""
    model = nn.Linear(3, 2)
    for name in ("one", "two"):
        with traincheck.record(tmp_path / name):
            train(traincheck.track(model), steps=2)

    folders = [tmp_path / "one", tmp_path / "two"]
    assert [[one["step"] for one in records(folder, "step")] for folder in folders] == [[0, 1]] * 2
    assert len({records(folder, "header")[0]["run_id"] for folder in folders}) == 2


def test_options_are_those_of_the_command(tmp_path):
    """What is to be recorded, how often, and how it is written."""
    plan = Plan(
        id="p",
        functions=(FunctionPlan(name="torch.nn.Linear.forward", arguments="all"),),
        variables=(),
    )
    write_plan(tmp_path / "plan.json", plan)
    model = nn.Linear(3, 2)

    with traincheck.record(
        tmp_path / "run",
        plan=tmp_path / "plan.json",
        tracker=None,
        sampling_interval=3,
        warm_up_steps=1,
        gzip=True,
    ):
        train(traincheck.track(model), steps=5)
    with traincheck.record(tmp_path / "plain", plan=str(tmp_path / "plan.json"), warm_up_steps=2):
        train(model, steps=2)

    assert [path.suffix for path in (tmp_path / "run").iterdir()] == [".gz"]
    assert functions(tmp_path / "plain") == {"torch.nn.Linear.forward"}
    (header,) = records(tmp_path / "plain", "header")[:1]
    assert header["sampling"]["warm_up"] == 2
    assert header["recording"]["plan_id"] == "p"


def test_an_exception_leaves_a_trace_without_footer(tmp_path):
    """The exception passes through; everything is taken away all the same."""

    def fail():
        torch.nn.functional.relu(torch.ones(1))
        raise KeyError

    with pytest.raises(KeyError), traincheck.record(tmp_path):
        fail()

    assert [one["kind"] for one in records(tmp_path)][-1] != "footer"
    assert functions(tmp_path) == {"torch.nn.functional.relu"}
    assert Current.session is None


def test_an_exit_is_a_clean_end(tmp_path):
    """As it is for a script."""
    with pytest.raises(SystemExit), traincheck.record(tmp_path):
        sys.exit(1)

    assert records(tmp_path)[-1]["kind"] == "footer"


def test_traces_are_overwritten_only_on_demand(tmp_path):
    """The message says what to do; other files in the folder are left alone."""
    (tmp_path / "notes.txt").write_text("mine")
    with traincheck.record(tmp_path):
        torch.nn.functional.relu(torch.ones(1))
    (shard,) = tmp_path.glob("trace_*")
    shard.rename(tmp_path / "trace_r0_p1.json")

    with (
        pytest.raises(ConfigError, match=r"output_dir: .* holds the traces .*overwrite=True"),
        traincheck.record(tmp_path),
    ):
        pytest.fail("the block must not run")
    with traincheck.record(tmp_path, overwrite=True):
        torch.nn.functional.relu6(torch.ones(1))

    assert functions(tmp_path) == {"torch.nn.functional.relu6"}
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "options",
    [
        {"plan": "missing.json"},
        {"sampling_interval": 0},
        {"warm_up_steps": -1},
        {"tracker": "no such"},
        {"overhead_budget": 0},
        {"max_trace_bytes": 10},
        {"modules": ("torch", "no_such_module")},
        {"modules": ("torch.no_such.module",)},
        {"modules": ("os",)},
        {"modules": (3,)},
    ],
)
def test_options_that_cannot_be_used_are_refused(tmp_path, options):
    """Before the block runs, in one line that names the option or the file."""
    with pytest.raises(ConfigError) as caught, traincheck.record(tmp_path, **options):
        pytest.fail("the block must not run")

    assert "\n" not in str(caught.value)
    assert Current.session is None


def test_a_text_for_modules_is_refused(tmp_path):
    """The message says what to write."""
    with (
        pytest.raises(ConfigError, match=r"modules is a str; write modules=\('torch',\)"),
        traincheck.record(tmp_path, modules="torch"),
    ):
        pytest.fail("the block must not run")


def test_modules_need_not_be_loaded(tmp_path, monkeypatch):
    """What can be found is a module; it is the program that imports it, or not."""
    (tmp_path / "heavy" / "inner").mkdir(parents=True)
    (tmp_path / "heavy" / "__init__.py").write_text("raise SystemError")
    (tmp_path / "heavy" / "inner" / "part.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    with traincheck.record(tmp_path, modules=("heavy.inner.part", "__main__")):
        torch.nn.functional.relu(torch.ones(1))

    assert "heavy" not in sys.modules
    assert functions(tmp_path) == set()


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    """In words, with its path."""
    (tmp_path / "file").write_text("")

    with (
        pytest.raises(ConfigError, match=r"output_dir: .*file"),
        traincheck.record(tmp_path / "file"),
    ):
        pytest.fail("the block must not run")


def test_a_recording_inside_another_is_none(tmp_path, capsys):
    """The outer one, which `traincheck-collect` may have begun, goes on to its own end."""
    with traincheck.record(tmp_path / "outer"):
        with traincheck.record(tmp_path / "inner"):
            torch.nn.functional.relu(torch.ones(1))
        torch.nn.functional.relu6(torch.ones(1))

    assert functions(tmp_path / "outer") == {
        "torch.nn.functional.relu",
        "torch.nn.functional.relu6",
    }
    assert not (tmp_path / "inner").exists()
    assert "a recording is at work already" in capsys.readouterr().err


def test_a_function_can_be_the_body_of_a_step(record):
    """Each call of it begins one; it stays what it is otherwise."""

    @traincheck.training_step
    def update(x: int) -> int:
        """Double."""
        return 2 * x

    @traincheck.training_step(accumulating=True)
    def accumulate() -> None:
        pass

    with record() as run:
        results = [update(1), update(x=2)]
        accumulate()

    assert results == [2, 4]
    assert (update.__name__, update.__doc__) == ("update", "Double.")
    assert [one["step"] for one in run.records("step")] == [0, 1]


def test_a_function_can_be_a_pass_of_evaluation(record):
    """As a decorator, as often as it is called; the stage before is restored."""

    @traincheck.evaluation()
    def validate():
        traincheck.start_eval_step()

    with record() as run:
        traincheck.start_step()
        validate()
        validate()

    stages = [one["stage"] for one in run.records("stage")]
    assert stages == ["training", "evaluation", "training", "evaluation", "training"]


def test_steps_by_hand_are_told_from_those_of_the_source(record, monkeypatch):
    """A mark that no rewritten file has put in is one by hand."""
    with record(steps_from=None) as run:
        monkeypatch.setattr(Current, "marks_steps_in_source", True)
        traincheck.start_step()

    assert run.records("header")[-1]["steps_from"] == "source"


def test_without_a_recording_marks_do_nothing():
    """And import no torch: they may stand in a program that has none."""
    code = (
        "import sys, traincheck_instrument as t\n"
        "t.start_step(); t.start_eval_step(); t.annotate_stage('training')\n"
        "with t.evaluation(): pass\n"
        "assert t.training_step(int)('3') == 3 and t.track(4) == 4\n"
        "print(sorted({'torch', 'attrs', 'numpy'} & set(sys.modules)))\n"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout == "[]\n"


def test_what_a_block_spawns_is_recorded_and_what_comes_later_is_not(tmp_path):
    """A process of its own writes a trace of its own, as a worker of the same run."""
    context = multiprocessing.get_context("spawn")
    with traincheck.record(tmp_path):
        torch.nn.functional.relu(torch.ones(1))
        process = context.Process(target=torch.nn.functional.relu, args=(torch.ones(1),))
        process.start()
        process.join()
    data = multiprocessing.spawn.get_preparation_data("x")

    headers = [loads(path.read_text().partition("\n")[0]) for path in tmp_path.glob("trace_*")]
    assert sorted(header["role"] for header in headers) == ["main", "worker"]
    assert len({header["run_id"] for header in headers}) == 1
    assert "traincheck" not in data
