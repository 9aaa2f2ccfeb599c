"""The report of the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from traincheck_check.commands.check import check


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(check, [*map(str, args), "-o", "results"])


def test_a_check_writes_a_report(run, write_run, claims_file, tmp_path, parse) -> None:
    """With the diagnosis of the terminal, and evidence from the trace."""
    result = run("-f", write_run(stuck=["model.fc2.weight"], since=4), "-i", claims_file)

    assert result.exit_code == 1, result.output
    tree = parse((tmp_path / "results" / "report.html").read_text(encoding="utf-8"))
    assert tree.find(".//h2").text == result.stdout.splitlines()[0]
    (title,) = tree.iter("h4")
    assert f"1. {title.text}" in result.stdout.splitlines()
    fields = ["".join(each.itertext()) for each in tree.iterfind(".//tr/th[@scope='row']")]
    assert "function" in fields


def test_several_runs_have_one_report(run, write_run, claims_file, tmp_path, parse) -> None:
    """In the folder that has the results of all."""
    result = run("-f", write_run("a"), write_run("b"), "-i", claims_file)

    assert result.exit_code == 0, result.output
    tree = parse((tmp_path / "results" / "report.html").read_text(encoding="utf-8"))
    assert len(tree.findall(".//section[@class='run']")) == 2
    assert not (tmp_path / "results" / "a" / "report.html").exists()


def test_no_report_is_written_if_none_is_wanted(run, write_run, claims_file, tmp_path) -> None:
    """--no-html-report."""
    result = run("-f", write_run(), "-i", claims_file, "--no-html-report")

    assert result.exit_code == 0, result.output
    assert not (tmp_path / "results" / "report.html").exists()


def test_help_does_not_load_what_writes_the_report() -> None:
    """It answers at once."""
    code = (
        "import sys\nfrom click.testing import CliRunner\n"
        "from traincheck_check.commands.check import check\n"
        "assert '--no-html-report' in CliRunner().invoke(check, ['--help']).stdout\n"
        "print(sorted({'jinja2', 'markupsafe'} & set(sys.modules)))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"
