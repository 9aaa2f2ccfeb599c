"""The hard promise: a recorded run computes the very bits of a plain one."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


# The programs print their loss with six decimals; the bits say more.
PRINTED = re.compile(r'print\(f"final loss \{(loss(?:\.item\(\))?):\.6f\}"\)')
EXACT = r'print(f"final loss {float(\1).hex()}")'


def last_line(text):
    return text.strip().splitlines()[-1]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["digits_cnn", "char_transformer"])
def test_the_final_loss_is_bit_identical(bench, name):
    """With full and with selective collection the last loss has the bits of the plain run."""
    source = (HERE / "workloads" / f"{name}.py").read_text()
    exact, replaced = PRINTED.subn(EXACT, source)
    assert replaced == 1
    bench.add("train.py", exact)
    steps = ("--steps", 12)

    plain = last_line(bench.python("train.py", *steps).stdout)
    full = last_line(bench.collect("train.py", "t_full", "--", *steps).stdout)
    bench.infer("t_full")
    selective = bench.collect("train.py", "t_plan", "-i", "invariants.json", "--", *steps)

    assert "0x" in plain
    assert full == plain
    assert last_line(selective.stdout) == plain
    assert bench.check("t_plan", "r_plan", code=0)["violations"] == []
