"""The dump of the environment: useful, and without secrets."""

from __future__ import annotations

import pytest

from traincheck_launcher.environment import describe


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_SECRET_ACCESS_KEY", "s3cr3t"),
        ("wandb_api_key", "s3cr3t"),
        ("HF_TOKEN", "s3cr3t"),
        ("DB_PASSWORD", "s3cr3t"),
        ("MYSQL_PWD", "s3cr3t"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "s3cr3t"),
        ("BASIC_AUTH", "s3cr3t"),
        ("COOKIE", "s3cr3t"),
        ("TRACKING_URI", "https://user:s3cr3t@example.org/"),
        ("HTTPS_PROXY", "http://s3cr3t@proxy:3128"),
        ("EXTRA", "run --with hf_s3cr3ts3cr3ts3cr3t"),
    ],
)
def test_secrets_are_blanked(name, value):
    """The name stands there, the value does not."""
    text = describe([], {name: value})

    assert f"{name}=(blanked)" in text
    assert "s3cr3t" not in text


@pytest.mark.parametrize(
    "argument", [["--api-key", "s3cr3t"], ["--token=s3cr3t"], ["--uri", "redis://:s3cr3t@host"]]
)
def test_secrets_in_arguments_are_blanked(argument):
    """The command line is dumped too; what follows a secret's option is not."""
    text = describe(["traincheck-collect", "--", *argument, "--epochs", "3"], {})

    assert "s3cr3t" not in text
    assert "--epochs\n3\n" in text


def test_what_explains_a_run_is_there():
    """Versions, folder, and variables that are no secrets."""
    text = describe(["traincheck-collect"], {"OMP_NUM_THREADS": "2", "PWD": "/x", "A": "1\n2"})

    assert "traincheck-launcher " in text
    assert "OMP_NUM_THREADS=2\n" in text
    assert "PWD=/x\n" in text
    assert "A=1\\n2\n" in text
