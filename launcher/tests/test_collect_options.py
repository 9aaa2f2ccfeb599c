"""Options of traincheck-collect around a run, with real processes."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from traincheck_trace_schema.reading import open_runs

pytestmark = pytest.mark.torch

COLLECT = ("python", "-m", "traincheck_launcher")
FROM_ELSEWHERE = (
    "there=$PWD && mkdir away && cd away && "
    'python -m traincheck_launcher --use-config --config "$there/conf/t.yml"'
)


def test_a_config_file_is_all_that_a_run_needs(training):
    """From any folder; the record says what was in it, without secrets."""
    training.write(
        "conf/t.yml",
        "pyscript: ../train.py\noutput_dir: ../out\nmodels_to_track: model\n"
        "arguments: [3, --api-key, s3cr3t]\nsampling_interval: 2\n",
    )

    result = training.run("bash", "-c", FROM_ELSEWHERE)

    assert result.returncode == 0, result.stderr
    assert "training steps seen: 3, recorded: 2\n" in result.stderr
    assert json.loads((training.out / "recording.json").read_text())["models"] == ["model"]
    dump = (training.out / "env_dump.txt").read_text()
    assert "\n[config file]\n" in dump
    assert "\nmodels_to_track=model\n" in dump
    assert "s3cr3t" not in dump


def test_only_instr_runs_nothing_and_says_how_to(training):
    """Its command line, typed into a shell, records the run."""
    options = ("--only-instr", "--models-to-track", "model", "--", "3", "a b")

    plain = training.run("python", "train.py", "3")
    written = training.collect("-p", "train.py", *options)
    told = written.stderr.splitlines()[-1]
    files = {path.name for path in training.out.iterdir()}
    recorded = training.run("bash", "-c", told.partition("to run and record it: ")[2])

    assert (written.returncode, written.stdout) == (0, "")
    assert told.startswith("traincheck: nothing was run; to run and record it: env ")
    assert {"_traincheck_train.py", "traincheck-entry.py", "env_dump.txt"} < files
    assert not any(name.startswith("trace_") for name in files)
    assert recorded.stdout == plain.stdout
    assert shlex.split(told)[-1] == "a b"
    assert len(list(training.out.glob("trace_*"))) == 1


def test_only_instr_has_nothing_to_check(training):
    """Both are refused together, before anything is written."""
    training.write("claims.json", "")

    result = training.collect("-p", "train.py", "--only-instr", "--check", "-i", "claims.json")

    assert result.returncode == 2
    assert result.stderr.startswith("error: --only-instr: nothing is run")
    assert not training.out.exists()


def test_the_latest_link_is_a_trace_folder(training):
    """It is there as soon as the run begins, and only for folders that nobody named."""
    command = [*COLLECT, "-p", "train.py", "--models-to-track", "model", "--", "2"]

    named = training.collect("-p", "train.py", "--", "2")
    link = training.path / "traincheck_run_latest"
    was_there = os.path.lexists(link)
    result = training.run(*command)

    assert (named.returncode, result.returncode) == (0, 0)
    assert not was_there
    (run,) = open_runs([link])
    assert [path.name for path in link.resolve().glob("trace_*")]
    assert run.run_id == json.loads((link / "recording.json").read_text())["run_id"]


def test_files_beside_the_script_are_copied_if_asked_for(training):
    """With the output folder among them; --overwrite deletes them again."""
    training.write("lib/net.py", "x = 1\n")
    training.write("out/mine.txt", "mine")

    copied = training.collect("-p", "train.py", "-a", "--overwrite", "--", "1")
    copy = training.out / "program_files/lib/net.py"
    text = copy.read_text()
    again = training.collect("-p", "train.py", "--overwrite", "--", "1")

    assert (copied.returncode, again.returncode) == (0, 0)
    assert (
        f"traincheck: 2 files of {training.path} copied to out/program_files; left out: "
        "the output folder (1)\n"
    ) in copied.stderr
    assert text == "x = 1\n"
    assert not (training.out / "program_files").exists()
    assert (training.out / "mine.txt").read_text() == "mine"


BY_HAND = """\
import torch
import traincheck_instrument

model = torch.nn.Linear(2, 1)
other = torch.nn.Linear(2, 1)
traincheck_instrument.track(other, name="other")
"""


@pytest.mark.parametrize("by_hand", [True, False])
def test_models_are_looked_for_unless_the_program_tracks_them(training, by_hand):
    """With --no-auto-var-instr nothing is put in for `model`; without a track(), that is told."""
    script = training.path / "train.py"
    if by_hand:
        script.write_text(script.read_text().replace("import torch\n", BY_HAND))

    options = ("--no-auto-var-instr", "--models-to-track", "model")
    result = training.collect("-p", "train.py", *options, "--", "2")

    assert result.returncode == 0
    marked = (training.out / "_traincheck_train.py").read_text()
    assert "__traincheck__.track" not in marked
    assert "__traincheck__.start_step" in marked
    assert ("track(model) nowhere" in result.stderr) != by_hand
    assert ("models tracked: other (" in result.stderr) == by_hand


def test_options_without_effect_say_so(training):
    """The program runs; old command lines go on to work."""
    options = ("--disable-scan-proxy-in-args", "--use-torch-compile")

    result = training.collect("-p", "train.py", *options, "--", "1")

    assert result.returncode == 0
    notes = [line for line in result.stderr.splitlines() if line.startswith("note: ")]
    assert [line.split(":")[1].strip() for line in notes] == list(options)


def test_profiling_is_refused(training):
    """Nobody is to wait for a file that does not come."""
    result = training.collect("-p", "train.py", "--profiling", "--", "1")

    assert result.returncode == 2
    assert "py-spy record --subprocesses" in result.stderr
    assert not training.out.exists()


@pytest.mark.parametrize("debug", [True, False])
def test_debug_mode_shows_tracebacks_of_our_faults_in_the_program(training, debug):
    """Here the plan is gone, so that recording can't begin; the program runs all the same."""
    options = ("--debug-mode",) if debug else ()
    training.write("go.sh", f"rm {training.out}/plan.json; python train.py 2\n")
    training.write("claims.json", json.dumps(CLAIM))
    selective = ("-i", "claims.json", "-s", "go.sh")

    result = training.collect("-p", "train.py", *selective, *options)

    assert result.returncode == 0
    assert result.stdout.startswith("weight")
    assert "recording could not begin, the program runs without it" in result.stderr
    assert ("Traceback (most recent call last)" in result.stderr) == debug


CLAIM = {
    "text_description": "",
    "relation": "APIContainRelation",
    "params": [
        {"param_type": "APIParam", "api_full_name": "torch.optim.Optimizer.step"},
        {"param_type": "APIParam", "api_full_name": "torch.optim.Optimizer.zero_grad"},
    ],
    "precondition": {"parent_func_call_pre": {"preconditions": [{"clauses": "Unconditional"}]}},
}


def test_a_folder_that_is_not_empty_is_refused(training):
    """Before anything runs, and nothing is written into it."""
    training.write("out/notes.txt", "mine")

    result = training.collect("-p", "train.py", "--", "1")

    assert result.returncode == 2
    assert result.stderr.startswith(f"error: --output-dir: {training.out} is not empty (notes.txt)")
    assert result.stdout == ""
    assert [path.name for path in Path(training.out).iterdir()] == ["notes.txt"]
