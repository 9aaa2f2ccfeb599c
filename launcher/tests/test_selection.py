"""What is recorded for invariants, also for old ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_launcher.preparing.selection import select
from traincheck_trace_schema.errors import ConfigError, InvariantError

if TYPE_CHECKING:
    from pathlib import Path


def contains(parent: str, child: str, relation: str = "APIContainRelation") -> dict[str, Any]:
    """Return an invariant as TrainCheck 0.x wrote it."""
    params = [{"param_type": "APIParam", "api_full_name": name} for name in (parent, child)]
    return {"text_description": "", "relation": relation, "params": params, "precondition": {}}


def write(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "old.json"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_a_plan_holds_what_can_be_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others, and what can't be expressed, are told."""
    lost = contains("h", "i") | {"params": [{"param_type": "MoodParam"}]}
    path = write(tmp_path, contains("f", "g"), contains("h", "i", "MoodRelation"), lost)

    plan = select([path]).plan

    assert [function.name for function in plan.functions or ()] == ["f", "g"]
    told = capsys.readouterr().err
    assert f"note: {path}:3: left out, it can't be expressed" in told
    assert (
        "warning: nothing is recorded for 1 invariant: relation 'MoodRelation' is not installed"
        in told
    )


def test_if_none_can_be_checked_nothing_is_collected(tmp_path: Path) -> None:
    """The error names the relations."""
    path = write(tmp_path, contains("f", "g", "MoodRelation"))

    with pytest.raises(InvariantError, match="relation 'MoodRelation' is not installed"):
        select([path])


def test_if_none_can_be_expressed_nothing_is_collected(tmp_path: Path) -> None:
    """The file is named."""
    path = write(tmp_path, contains("f", "g") | {"params": [{"param_type": "MoodParam"}]})

    with pytest.raises(ConfigError, match=r"no invariant in .*old.json"):
        select([path])
