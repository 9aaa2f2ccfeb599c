"""`--follow-subprocesses`: the Python programs that the program starts are recorded, too."""

import json

import pytest

PROGRAM = """\
import os, subprocess, sys
import torch

torch.nn.functional.relu(torch.ones(1))
python = sys.executable
told = [subprocess.run([python, "-u", "part.py", "1"], capture_output=True, text=True)]
told.append(subprocess.run([python, "-m", "part", "2"], capture_output=True, text=True))
print([(one.returncode, one.stdout) for one in told], os.system(f"{python} other.py"))
print(subprocess.run([python, "part.py", "3"], capture_output=True, text=True).returncode)
"""
PART = """\
import sys
import torch

torch.nn.functional.relu6(torch.ones(1))
print(sys.argv, __name__)
if sys.argv[1] == "3":
    raise ValueError("of the part")
"""
SEEN = r"""[(0, "['part.py', '1'] __main__\n"), (0, "['{folder}/part.py', '2'] __main__\n")] 1024
1
"""


@pytest.fixture
def family(place):
    """A program that starts others: three that import torch, and one that does not."""
    place.write("train.py", PROGRAM)
    place.write("part.py", PART)
    place.write("other.py", "raise SystemExit(4)\n")
    return place


def traces(place):
    shards = [path.read_text().splitlines() for path in place.out.glob("trace_*")]
    return [[json.loads(line) for line in lines] for lines in shards]


@pytest.mark.torch
def test_what_the_program_starts_has_a_trace_of_its_own(family):
    """As a worker of the run; one that raises has no footer, and all go on as they would."""
    done = family.collect("--follow-subprocesses", "-p", "train.py")

    assert done.stdout == SEEN.replace("{folder}", str(family.path))
    main, *parts = sorted(traces(family), key=lambda records: records[0]["role"])
    assert [main[0]["role"], *{one[0]["role"] for one in parts}] == ["main", "worker"]
    assert len({records[0]["run_id"] for records in (main, *parts)}) == 1
    calls = [{one["function"] for one in part if one["kind"] == "call_begin"} for part in parts]
    assert calls == [{"torch.nn.functional.relu6"}] * 3
    assert sorted(part[-1]["kind"] == "footer" for part in parts) == [False, True, True]
    assert done.returncode == 0


@pytest.mark.torch
def test_nothing_of_it_is_recorded_unless_it_is_asked_for(family):
    """Nor has the program another environment."""
    done = family.collect("-p", "train.py")

    assert done.stdout == SEEN.replace("{folder}", str(family.path))
    assert len(traces(family)) == 1


@pytest.mark.torch
@pytest.mark.ranks
def test_ranks_stay_ranks(family):
    """What starts them is no part of the program."""
    family.write("train.py", "import torch\ntorch.nn.functional.relu(torch.ones(1))\n")

    done = family.collect("--follow-subprocesses", "--nproc-per-node", "2", "-p", "train.py")

    assert done.returncode == 0
    assert [records[0]["role"] for records in traces(family)] == ["main", "main"]
