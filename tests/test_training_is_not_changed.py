"""The hard promise: a recorded run computes the very bits of a plain one, and keeps nothing alive.

Each workload is run as it stands, but for two lines that let a witness see it: at some calls of its
clock, and when it prints its last loss.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TRACKERS = ("subclass", "proxy", "sampler")
# Of each, the options that bring all that it does into few steps, evaluation too.
WORKLOADS = {
    "digits_cnn": ("--batch-size", 360),
    "char_transformer": ("--eval-every", 3),
    "ddp_digits": ("--batch-size", 180),
    "digits_vae": ("--batch-size", 500),
    "char_lstm": ("--eval-every", 3),
    "digits_mlp_amp": ("--batch-size", 375),
    "gcn_synthetic": (),
    "dcgan_digits": ("--batch-size", 450),
}
MATRIX = pytest.mark.matrix
STEPS = 6
# All trackers on all workloads take minutes: `hatch run promises`.
WITH_ALL = ("ddp_digits", "digits_vae")
EARLY, LATE = 3, 7  # calls of the clock: one or two a step

CLOCK = re.compile(r"^def clock\(\):$", re.MULTILINE)
LAST_LINE = re.compile(r'^( *)print\(f"final loss .*\n', re.MULTILINE)
# The programs print their loss with six decimals; the bits say more.
PRINTED = re.compile(r"\{(\w+(?:\.item\(\))?):\.6f\}")


def seen_by_witness(name, *, at=(EARLY, LATE)):
    """Return a workload that lets the witness see it."""
    source = (HERE / "workloads" / f"{name}.py").read_text()
    watched = f"from witness import witness\n\ndef clock():\n    witness.tick(at={at})"
    source, clocks = CLOCK.subn(watched, source)
    source, ends = LAST_LINE.subn(
        lambda line: PRINTED.sub(r"{float(\1).hex()}", line[0]) + f"{line[1]}witness.tell()\n",
        source,
    )
    assert (clocks, ends) == (1, 1)
    return source


def account(output):
    """Return what the witness saw, and the last loss in all its bits."""
    lines = output.splitlines()
    (told,) = (line for line in lines if line.startswith("witness: "))
    (loss,) = (line for line in lines if line.startswith("final loss 0x"))
    return {"loss": loss, **json.loads(told.partition(" ")[2])}


def matrix(names):
    """Return parameters: each workload with what is run always, and with all that there is."""
    for name in names:
        always = TRACKERS if name in WITH_ALL else TRACKERS[:1]
        yield pytest.param(name, always, id=f"{name}-{'-'.join(always)}")
        if others := TRACKERS[len(always) :]:
            yield pytest.param(name, others, id=f"{name}-{'-'.join(others)}", marks=MATRIX)


def plain_and_recorded(bench, name, trackers, *options, at=(EARLY, LATE)):
    """Run a workload plainly, and under each tracker; return what was seen of each run."""
    shutil.copy(HERE / "witness.py", bench.folder)
    bench.add("train.py", seen_by_witness(name, at=at))
    models = ("netG", "netD") if name == "dcgan_digits" else ("model",)
    ranks = 2 if name == "ddp_digits" else 1
    launch = ("torchrun", "--standalone", "--nproc-per-node", ranks) if ranks > 1 else ("python",)
    plain = account(bench.run(*launch, "train.py", *options).stdout)
    recorded = {}
    for tracker in trackers:
        chosen = ("--model-tracker-style", tracker, "--", *options)
        run = bench.collect("train.py", f"t_{tracker}", *chosen, models=models, ranks=ranks)
        recorded[tracker] = account(run.stdout)
        assert bench.has_changes(f"t_{tracker}")
    return plain, recorded


@pytest.mark.torch
@pytest.mark.parametrize(("name", "trackers"), [*matrix(WORKLOADS)])
def test_a_recorded_run_is_the_plain_run_bit_for_bit(bench, name, trackers):
    """Loss, weights, gradients, optimizers, random states, living tensors, autograd graphs."""
    options = ("--steps", STEPS, *WORKLOADS[name])

    plain, recorded = plain_and_recorded(bench, name, trackers, *options)

    assert plain["weights"]
    assert plain["alive"].keys() == {str(EARLY), str(LATE)}
    assert all(plain["graphs"].values())
    for tracker, seen in recorded.items():
        assert seen == plain, tracker


@pytest.mark.torch
@pytest.mark.parametrize(("name", "trackers"), [*matrix(["digits_mlp_amp", "gcn_synthetic"])])
def test_no_tensor_lives_longer_over_200_steps(bench, name, trackers):
    """As many tensors, of the same shapes, as in the plain run, which has no more at its end."""
    at = (20, 200)

    plain, recorded = plain_and_recorded(bench, name, trackers, "--steps", 200, at=at)

    assert plain["alive"]["20"] == plain["alive"]["200"]
    for tracker, seen in recorded.items():
        assert seen == plain, tracker


@pytest.mark.torch
def test_a_selective_run_is_the_plain_run_bit_for_bit(bench):
    """What invariants need is recorded, and a healthy run breaks none of them."""
    shutil.copy(HERE / "witness.py", bench.folder)
    bench.add("train.py", seen_by_witness("digits_cnn"))
    options = ("--steps", 12)

    plain = account(bench.python("train.py", *options).stdout)
    full = account(bench.collect("train.py", "t_full", "--", *options).stdout)
    bench.infer("t_full")
    plan = bench.collect("train.py", "t_plan", "-i", "invariants.json", "--", *options)

    assert full == plain
    assert account(plan.stdout) == plain
    assert bench.check("t_plan", "r_plan", code=0)["violations"] == []
