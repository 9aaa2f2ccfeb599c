"""`--report-mlflow`, with a file store on this machine, read back with MLflow's client."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_check.reporting.exporters.mlflow import MlflowReporter
from traincheck_trace_schema.results_file import read_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Check, Start, WriteRun

    from traincheck_check.reporting.api import Report

pytest.importorskip("mlflow")


@pytest.fixture(autouse=True)
def _file_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


def client() -> Any:
    from mlflow.tracking import MlflowClient  # noqa: PLC0415  slow

    return MlflowClient()


def runs(experiment: str = "Default") -> dict[str, Any]:
    """Return the runs of an experiment by name."""
    id_ = client().get_experiment_by_name(experiment).experiment_id
    return {run.info.run_name: run for run in client().search_runs([id_])}


def history(run: Any, name: str) -> list[tuple[int, float]]:
    return [(each.step, each.value) for each in client().get_metric_history(run.info.run_id, name)]


def rows(path: Path) -> list[dict[str, Any]]:
    table = json.loads(path.read_text())
    return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]


@contextmanager
def server(answer: object) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Answer all requests the same: gives the address, and what was asked by POST."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, json.loads(body)))
            self.do_GET()

        def do_GET(self) -> None:
            text = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", asked
        finally:
            listening.shutdown()
            thread.join()


def test_a_run_of_mlflow_has_the_results(run_check: Check, bad_run: Path) -> None:
    """Metrics by step, tags, tables, and the files."""
    result = run_check(
        *("-f", bad_run, "--format", "json", "--report-mlflow"),
        *("--mlflow-experiment", "digits", "--mlflow-run-name", "nightly"),
    )

    assert result.exit_code == 1, result.output
    json.loads(result.stdout)  # nothing of MLflow's stands between
    run = runs("digits")["nightly"]
    assert run.info.status == "FINISHED"
    assert run.data.metrics["checks_failed"] == 1
    assert run.data.metrics["checks_pass_rate_pct"] == pytest.approx(66.667, rel=1e-3)
    assert run.data.metrics["coverage_applied_pct"] == 75
    assert run.data.tags["traincheck.mode"] == "finished"
    assert history(run, "traincheck_violations") == [
        *((step, 0) for step in (0, 1, 2)),
        *((step, 1) for step in (3, 4, 5)),
    ]
    folder = Path(client().download_artifacts(run.info.run_id, "", str(Path.cwd())))
    assert (folder / "violations_summaries/violations_summary.json").read_bytes() == Path(
        "results/violations_summary.json"
    ).read_bytes()
    (row,) = rows(folder / "violations.json")
    assert (row["invariant_id"], row["first_step"]) == ("moves-each", 3)
    assert "model.fc2.weight" in row["happened"]
    (group,) = rows(folder / "violation_groups.json")
    told = read_summary(Path("results/violations_summary.json")).groups[0]
    assert (group["diagnosis"], group["look_at"]) == (told.diagnosis, told.look_at)
    (relation,) = rows(folder / "relation_breakdown.json")
    assert [relation[name] for name in ("failed", "passed", "not_triggered")] == [1, 2, 1]


def test_checked_runs_have_runs_of_their_own(
    run_check: Check, bad_run: Path, write_run: WriteRun
) -> None:
    """Each is named after the checked run."""
    run_check(
        *("-f", bad_run, write_run("good"), "--report-mlflow", "--mlflow-run-name", "nightly")
    )

    failed = {name: run.data.metrics["checks_failed"] for name, run in runs().items()}
    assert failed == {"nightly-bad": 1, "nightly-good": 0}


def test_a_live_run_is_one_run(live_reports: list[Report], start: Start) -> None:
    """No step comes twice; one that is left while it goes on is marked as such."""
    sink = start(MlflowReporter(), "--report-mlflow", "--mlflow-run-name", "live")
    for report in live_reports:
        sink.update(report)
    sink.close()
    cut = start(MlflowReporter(), "--report-mlflow", "--mlflow-run-name", "cut")
    cut.update(live_reports[1])
    cut.close()

    found = runs()
    assert [step for step, _ in history(found["live"], "traincheck_violations")] == [*range(8)]
    assert history(found["live"], "traincheck_violations_so_far")[-1] == (7, 5)
    assert {*history(found["live"], "violations_total")} <= {(0, 0), (3, 2), (7, 5)}
    assert history(found["live"], "violations_total")[-1] == (7, 5)
    assert {name: run.info.status for name, run in found.items()} == {
        "live": "FINISHED",
        "cut": "KILLED",
    }


def test_a_server_is_told_and_nothing_of_it_is_printed(
    run_check: Check, bad_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow prints where a run is to be seen; it would stand between the documents."""
    info = {
        "run_id": "r1",
        "run_uuid": "r1",
        "run_name": "r",
        "experiment_id": "0",
        "status": "RUNNING",
        "lifecycle_stage": "active",
        "start_time": 1,
        "artifact_uri": (tmp_path / "artifacts").as_uri(),
    }
    answer = {"run": {"info": info, "data": {}}, "run_info": info}
    monkeypatch.delenv("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", raising=False)

    with server(answer) as (address, asked):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        result = run_check("-f", bad_run, "--format", "json", "--report-mlflow")

    assert result.exit_code == 1, result.output
    assert not result.stderr
    json.loads(result.stdout)
    batches = [body for path, body in asked if path.endswith("/runs/log-batch")]
    told = {each["key"]: each["value"] for body in batches for each in body["metrics"]}
    assert (told["checks_failed"], told["traincheck_violations_so_far"]) == (1, 3)
    assert [body["status"] for path, body in asked if path.endswith("/runs/update")] == ["FINISHED"]


def test_a_server_that_fails_costs_no_results(
    run_check: Check, bad_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and the check goes on."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")  # nobody listens
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")

    result = run_check("-f", bad_run, "--report-mlflow")

    assert result.exit_code == 1, result.output
    assert "warning: reporter mlflow failed, and is left out" in result.stderr
    assert read_summary(Path("results/violations_summary.json")).failed == 1


def test_a_store_that_can_not_be_used_is_told_at_once(
    run_check: Check, bad_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is checked, in one line."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://store")

    result = run_check("-f", bad_run, "--report-mlflow")

    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: MLflow can't be used")
    assert len(result.stderr.splitlines()) == 1
    assert not Path("results/violations_summary.json").exists()
