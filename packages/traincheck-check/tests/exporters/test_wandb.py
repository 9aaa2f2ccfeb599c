"""`--report-wandb` in W&B's offline mode; its file is read back."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_check.reporting.exporters.wandb import WandbReporter
from traincheck_trace_schema.results_file import read_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Check, Start, WriteRun

    from traincheck_check.reporting.api import Report

pytest.importorskip("wandb")

_BLOCK = 32 * 1024  # of the file, which is a LevelDB log with a header of its own
_HEADER = 7


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import wandb  # noqa: PLC0415  slow

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    yield
    wandb.teardown()  # it keeps what it once read of the environment


def chunks(data: bytes) -> Iterator[bytes]:
    """Yield the records of a LevelDB log: each may be split where a block ends."""
    assert data.startswith(b":W&B")
    at, parts = _HEADER, b""
    while at < len(data):
        if _BLOCK - at % _BLOCK < _HEADER:
            at += _BLOCK - at % _BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        parts += data[at + _HEADER : at + _HEADER + length]
        at += _HEADER + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def written() -> list[dict[str, Any]]:
    """Return what each run was told: of its settings, the history, and of which files."""
    import wandb  # noqa: PLC0415  slow

    wandb.teardown()  # its service writes in the background
    return [_told(path.read_bytes()) for path in Path("wandb").glob("offline-run-*/*.wandb")]


def _told(data: bytes) -> dict[str, Any]:
    from wandb.proto.wandb_internal_pb2 import Record  # noqa: PLC0415  slow

    run: dict[str, Any] = {"history": [], "files": set()}
    for record in map(Record.FromString, chunks(data)):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run["run"] = record.run
        elif kind == "exit":
            run["exit"] = record.exit.exit_code
        elif kind == "history":
            run["history"].append(
                {_name(item): json.loads(item.value_json) for item in record.history.item}
            )
        elif kind == "request":
            run["files"] |= {
                each.path for each in record.request.log_artifact.artifact.manifest.contents
            }
        elif kind == "artifact":
            run["files"] |= {each.path for each in record.artifact.manifest.contents}
    return run


def _name(item: Any) -> str:
    return item.key or ".".join(item.nested_key)


def series(run: dict[str, Any], name: str, prefix: str = "") -> list[tuple[int, float]]:
    return [
        (row[f"{prefix}traincheck/step"], row[prefix + name])
        for row in run["history"]
        if prefix + name in row
    ]


def test_a_run_of_wandb_has_the_results(run_check: Check, bad_run: Path) -> None:
    """Metrics by step, config, tables, and the files; the place of the run is told."""
    result = run_check(
        *("-f", bad_run, "--report-wandb", "--wandb-project", "digits"),
        *("--wandb-run-name", "nightly", "--wandb-tags", "a", "b"),
    )

    assert result.exit_code == 1, result.output
    assert "note: W&B: " in result.stderr
    (run,) = written()
    record = run["run"]
    assert (record.project, record.display_name, [*record.tags]) == (
        "digits",
        "nightly",
        ["a", "b"],
    )
    config = {each.key: json.loads(each.value_json) for each in record.config.update}
    assert config["traincheck/invariants_total"] == 4
    assert series(run, "traincheck/violations") == [
        *((step, 0) for step in (0, 1, 2)),
        *((step, 1) for step in (3, 4, 5)),
    ]
    assert series(run, "checks/failed") == [(5, 1)]
    assert series(run, "coverage/applied_pct") == [(5, 75)]
    told = {name.partition(".")[0] for row in run["history"] for name in row}
    assert told >= {"violations", "violation_groups", "relation_breakdown"}
    assert run["files"] >= {"violations_summary.json", "failed.log"}
    assert run["exit"] == 0


def test_checked_runs_have_runs_of_their_own(
    run_check: Check, bad_run: Path, write_run: WriteRun
) -> None:
    """Each is named after the checked run; a group holds them together."""
    run_check("-f", bad_run, write_run("good"), "--report-wandb", "--wandb-run-name", "nightly")

    found = {each["run"].display_name: each for each in written()}
    assert found.keys() == {"nightly-bad", "nightly-good"}
    assert {each["run"].run_group for each in found.values()} == {"results"}
    assert series(found["nightly-good"], "checks/failed") == [(5, 0)]


def test_with_a_run_id_all_goes_to_that_run(
    run_check: Check, bad_run: Path, write_run: WriteRun
) -> None:
    """It is resumed; of several checked runs each has a part of its own."""
    run_check("-f", bad_run, write_run("good"), "--report-wandb", "--wandb-run-id", "training7")

    found = written()
    assert not [*Path("wandb").rglob("requirements.txt")]  # those of the checker
    assert [each["run"].run_id for each in found] == ["training7", "training7"]
    for name, failed in (("bad", 1), ("good", 0)):
        told = [series(each, "checks/failed", f"{name}/") for each in found]
        assert sorted(told) == [[], [(5, failed)]]


def test_a_live_run_is_one_run(live_reports: list[Report], start: Start) -> None:
    """No step comes twice, and the tables come at the end."""
    sink = start(WandbReporter(), "--report-wandb", "--wandb-run-name", "live")
    for report in live_reports:
        sink.update(report)
    sink.close()

    (run,) = written()
    assert [step for step, _ in series(run, "traincheck/violations")] == [*range(8)]
    assert {*series(run, "violations/total")} <= {(0, 0), (3, 2), (7, 5)}
    assert series(run, "violations/total")[-1] == (7, 5)
    assert sum("relation_breakdown" in str(row) for row in run["history"]) == 1


def test_a_service_that_fails_costs_no_results(
    run_check: Check, bad_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and the check goes on."""
    import wandb  # noqa: PLC0415  slow

    def refuse(**_: object) -> None:
        raise wandb.errors.CommError("the service\nis down")

    monkeypatch.setattr(wandb, "init", refuse)

    result = run_check("-f", bad_run, "--report-wandb")

    assert result.exit_code == 1, result.output
    assert "warning: reporter wandb failed, and is left out: CommError" in result.stderr
    assert read_summary(Path("results/violations_summary.json")).failed == 1


def test_without_an_account_it_says_so_at_once(
    run_check: Check, bad_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is checked, in one line, with what to do; it asks for no key."""
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)

    result = run_check("-f", bad_run, "--report-wandb")

    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: W&B can't be used")
    assert "WANDB_MODE=offline" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not Path("results/violations_summary.json").exists()
