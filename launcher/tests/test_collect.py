"""A collection: the program runs as by itself, and the folder holds what came of it."""

from __future__ import annotations

import json
import os

import pytest

pytestmark = pytest.mark.torch

IDENTITY = """\
import os, sys
print(__file__, __name__, sys.argv, sys.path, os.getcwd())
print("to stderr", file=sys.stderr)
if "raise" in sys.argv:
    raise ValueError("of the user")
sys.exit(int(sys.argv[-1]))
"""


@pytest.mark.parametrize("arguments", [["--flag", "a b", "0"], ["3"], ["raise"]])
def test_the_program_is_what_it_is_by_itself(place, arguments):
    """Identity, both streams, traceback and exit code are those of the plain run."""
    place.write("sub dir/train.py", IDENTITY)

    plain = place.run("python", "sub dir/train.py", *arguments)
    recorded = place.collect("-p", "sub dir/train.py", "--", *arguments)

    said = [line for line in recorded.stderr.splitlines() if not line.startswith(OURS)]
    assert recorded.returncode == plain.returncode
    assert recorded.stdout == plain.stdout
    assert said == plain.stderr.splitlines()


OURS = ("traincheck: ", "warning: ")


CLAIM = {
    "text_description": "",
    "relation": "APIContainRelation",
    "params": [
        {"param_type": "APIParam", "api_full_name": "torch.optim.Optimizer.step"},
        {
            "param_type": "VarTypeParam",
            "var_type": "torch.nn.Parameter",
            "attr_name": "data",
            "quantifier": "some",
        },
    ],
    "precondition": {"parent_func_call_pre": {"preconditions": [{"clauses": "Unconditional"}]}},
}


def test_a_run_leaves_traces_and_all_that_explains_them(training):
    """The folder holds the trace, the marked script, the settings, environment and output."""
    result = training.collect("-p", "train.py", "--models-to-track", "model", "--", "3")

    assert result.returncode == 0
    (trace,) = training.out.glob("trace_r0_p*.json")
    assert json.loads(trace.read_text().splitlines()[0])["kind"] == "header"
    assert "__traincheck__.start_step()" in (training.out / "_traincheck_train.py").read_text()
    assert (training.out / "program_output.txt").read_text() == result.stdout
    assert "torch 2" in (training.out / "env_dump.txt").read_text()
    assert "traincheck: training steps seen: 3\n" in result.stderr
    assert "traincheck: models tracked: model (3 parameters in 2 tensors)\n" in result.stderr
    assert result.stderr.endswith("next: traincheck-infer -f out -o invariants.json\n")


def test_all_options_reach_the_processes_that_record(place):
    """The settings file says what was asked for; the tracker is what suits, or what is named."""
    place.write("train.py", "print('ran')\n")
    switches = ("--use-full-instr", "--instr-descriptors", "--API-dump-stack-trace")
    values = ("--tensor-dump-format", "stats", "--model-tracker-style", "proxy")
    policy = ("--overhead-budget", "2.5", "--sampling-interval", "4", "--warm-up-steps", "3")

    place.collect("-p", "train.py", *switches, *values, *policy, "-t", "click", "torch", "click")
    given = json.loads((place.out / "recording.json").read_text())
    place.collect("-p", "train.py", "--overwrite")
    default = json.loads((place.out / "recording.json").read_text())

    assert given["modules"] == ["click", "torch"]
    assert (given["with_private"], given["with_descriptors"], given["with_stacks"]) == (True,) * 3
    assert (given["tracker"], given["tensor_format"]) == ("proxy", "stats")
    assert given["sampling"] == {"interval": 4, "warm_up": 3, "budget": 2.5}
    assert default.get("tracker", "subclass") == "subclass"
    assert default.get("modules", ["torch"]) == ["torch"]


def test_invariants_choose_what_is_recorded(training):
    """Without need of variables no tracker is at work; their packages and private functions are."""
    training.write("mine.py", "def _loss():\n    pass\n")
    params = [
        {"param_type": "APIParam", "api_full_name": name}
        for name in ("torch.optim.Optimizer.step", "mine._loss")
    ]
    claim = {"text_description": "", "relation": "APIContainRelation", "params": params}
    training.write("claims.json", f"{json.dumps({**claim, 'precondition': {}})}\n")

    result = training.collect(
        *("-p", "train.py", "--models-to-track", "model", "-i", "claims.json", "--", "2")
    )

    settings = json.loads((training.out / "recording.json").read_text())
    (trace,) = training.out.glob("trace_r0_p*.json")
    header, *records = map(json.loads, trace.read_text().splitlines())
    assert settings["modules"] == ["torch", "mine"]
    assert settings["with_private"]
    assert header["tracker"] is None
    assert {each["function"] for each in records if each["kind"] == "call_begin"} == {
        "torch.optim.SGD.step"
    }
    assert not any(each["kind"] == "var" for each in records)
    assert "warning" not in result.stderr
    assert result.stderr.endswith("next: traincheck-check -f out -i claims.json\n")


def test_recording_does_not_change_the_result(training):
    """The same seed gives the same weights, to the last bit."""
    plain = training.run("python", "train.py", "4")
    recorded = training.collect("-p", "train.py", "--models-to-track", "model", "--", "4")

    assert recorded.stdout == plain.stdout


def test_a_program_that_raises_leaves_a_readable_trace(training):
    """The traceback is the program's own, and the steps up to there are in the trace."""
    script = training.path / "train.py"
    script.write_text(f"{script.read_text()}raise ValueError('late')\n")

    plain = training.run("python", "train.py", "2")
    recorded = training.collect("-p", "train.py", "--models-to-track", "model", "--", "2")

    assert recorded.returncode == 1
    assert recorded.stderr.startswith(plain.stderr)
    assert "exit code 1" in recorded.stderr
    assert "training steps seen: 2\n" in recorded.stderr
    assert "the trace is incomplete: rank 0 did not end cleanly" in recorded.stderr
    assert "a run that failed is no reference" in recorded.stderr
    assert "next:" not in recorded.stderr


def test_a_run_that_says_it_failed_is_no_reference(training):
    """Its trace is whole. Checking it still makes sense; learning from it does not."""
    script = training.path / "train.py"
    script.write_text(f"{script.read_text()}sys.exit(7)\n")
    training.write("claims.json", f"{json.dumps(CLAIM)}\n")

    full = training.collect("-p", "train.py", "--", "2")
    selective = training.collect("-p", "train.py", "--overwrite", "-i", "claims.json", "--", "2")

    assert full.returncode == selective.returncode == 7
    assert "a run that failed is no reference" in full.stderr
    assert "next:" not in full.stderr
    assert "incomplete" not in full.stderr + selective.stderr
    assert selective.stderr.endswith("next: traincheck-check -f out -i claims.json\n")


def test_what_a_tracker_cannot_see_is_told_once(training):
    """Before the run, by how many invariants can't be judged."""
    training.write("claims.json", f"{json.dumps(CLAIM)}\n")
    sampler = ("--models-to-track", "model", "--model-tracker-style", "sampler")

    result = training.collect("-p", "train.py", *sampler, "-i", "claims.json", "--", "2")

    assert "sampler: the invariant can't be judged with it: " in result.stderr
    assert result.stderr.count("what a call changes") == 1


def test_a_run_without_a_training_step_is_warned_of(place):
    """The warning says what is missing and what to do."""
    place.write("train.py", "import torch\nprint(torch.ones(2).sum())\n")

    result = place.collect("-p", "train.py")

    assert result.returncode == 0
    assert "warning: no training step was seen" in result.stderr
    assert "start_step()" in result.stderr


def test_a_folder_with_traces_is_not_overwritten_unless_asked(training):
    """The second run is refused in one line; --overwrite deletes our files and no others."""
    training.collect("-p", "train.py", "--", "1")
    training.write("out/notes.txt", "mine")

    refused = training.collect("-p", "train.py", "--", "1")
    replaced = training.collect("-p", "train.py", "--overwrite", "--", "1")

    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert refused.stdout == ""
    assert replaced.returncode == 0
    assert len(list(training.out.glob("trace_*"))) == 1
    assert (training.out / "notes.txt").read_text() == "mine"


def test_warnings_of_the_compiler_are_shown_once(place):
    """Reading the script before it runs adds no second warning of the same."""
    place.write("train.py", "path = '\\d'\nprint(path is 'x')\n")

    plain = place.run("python", "-Wdefault", "train.py")
    recorded = place.collect("-p", "train.py", PYTHONWARNINGS="default")

    assert plain.stderr.count("Warning") == 2
    assert recorded.stderr.count("Warning") == 2
    assert plain.stderr in recorded.stderr


def test_a_script_that_is_too_deep_to_be_read_is_warned_of_and_run(place):
    """One line says so and what to do; the program itself decides what comes of it."""
    place.write("train.py", "x = " + "-" * 20000 + "1\n")

    plain = place.run("python", "train.py")
    recorded = place.collect("-p", "train.py", "--models-to-track", "model")

    assert recorded.returncode == plain.returncode
    assert recorded.stderr.startswith("warning: train.py: an expression is nested too deep")


def test_a_variable_that_is_no_text_is_dumped(training):
    """Bytes of the environment that are no UTF-8 stop nothing."""
    result = training.collect("-p", "train.py", "--", "1", ODD=os.fsdecode(b"caf\xe9"))

    assert result.returncode == 0
    assert "ODD=caf" in (training.out / "env_dump.txt").read_text()


@pytest.mark.parametrize("option", ["--pyscript", "--output-dir"])
def test_a_path_that_is_no_utf8_is_refused(training, option):
    """The message names the option and the path; nothing is run, and nothing written."""
    folder = os.fsdecode(b"caf\xe9")
    training.write(f"{folder}/train.py", "print('ran')\n")
    script = f"{folder}/train.py" if option == "--pyscript" else "train.py"
    output = ("--output-dir", f"{folder}/out") if option == "--output-dir" else ()

    result = training.collect("-p", script, *output)

    assert result.returncode == 2
    assert result.stderr.startswith(f"error: {option}: {training.path}/caf\\udce9/")
    assert "is not UTF-8" in result.stderr
    assert result.stdout == ""
    assert not training.out.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--models-to-track", "wrapper"), "wrapper never held a torch.nn.Module"),
        ((), "name the script's model with --models-to-track"),
    ],
)
def test_a_run_without_parameters_warns(place, options, told):
    """A name that holds no module, or no name at all, leaves out what most relations are about."""
    place.write(
        "train.py",
        "import torch\nwrapper = object()\nnet = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(3):\n"
        "    net(torch.ones(1, 2)).sum().backward()\n    optimizer.step()\n",
    )

    result = place.collect("-p", "train.py", *options)

    assert result.returncode == 0
    assert "warning: no parameters are recorded" in result.stderr
    assert told in result.stderr


def test_a_stray_word_is_refused(place):
    """Only what stands after -- is for the program."""
    place.write("train.py", "import torch\n")

    result = place.collect("-p", "train.py", "stray")

    assert result.returncode == 2
    assert "stray" in result.stderr


def test_a_trace_that_reaches_its_size_ends_and_the_program_does_not(training):
    """The option is named once, the traces stay below it, and the result is the plain run's."""
    options = ("--models-to-track", "model", "--max-trace-size", "1MB")

    plain = training.run("python", "train.py", "300")
    recorded = training.collect("-p", "train.py", *options, "--", "300")

    assert recorded.returncode == 0
    assert recorded.stdout == plain.stdout
    assert recorded.stderr.count("--max-trace-size") == 1
    assert sum(path.stat().st_size for path in training.out.glob("trace_*")) <= 1_000_000


def test_compressed_traces_are_read_like_others(training):
    """`--gzip` names them `.json.gz`; the summary counts their steps."""
    options = ("--models-to-track", "model", "--gzip")

    recorded = training.collect("-p", "train.py", *options, "--", "3")

    (trace,) = training.out.glob("trace_*")
    assert trace.name.endswith(".json.gz")
    assert "training steps seen: 3\n" in recorded.stderr
