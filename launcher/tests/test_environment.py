"""The dump of the environment: useful, and without secrets."""

from __future__ import annotations

import pytest

from traincheck_launcher.output.environment import describe


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
        ("PASS", "s3cr3t"),
        ("DBPASS", "s3cr3t"),
        ("MYPWD", "s3cr3t"),
        ("GPG_PASSPHRASE", "s3cr3t"),
        ("DATABASE", "postgres://u:s3/cr3t-s3cr3t@h"),
        ("EXTRA", "github_pat_11ABCDEFG0_s3cr3ts3cr3t"),
        ("STORAGE", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=s3cr3t=="),
        ("HEADER", "Authorization: Bearer s3cr3t"),
        ("OPTIONS", '{"db": {"password": "s3cr3t"}}'),
        ("COMMAND", "run --token s3cr3t"),
    ],
)
def test_secrets_are_blanked(name, value):
    """The name stands there, the value does not."""
    text = describe([], {name: value})

    assert f"{name}=(blanked)" in text
    assert "s3cr3t" not in text


@pytest.mark.parametrize(
    "argument",
    [
        ["--api-key", "s3cr3t"],
        ["--token=s3cr3t"],
        ["--uri", "redis://:s3cr3t@host"],
        ["--uri=postgres://u:pa/s3cr3t@host"],
        ["wandb.api_key=s3cr3t"],
        ["+wandb.api_key=s3cr3t"],
        ["password=s3cr3t"],
        ["--auth", "s3cr3t"],
        ["--auth", "Bearer", "s3cr3t"],
        ["--pwd", "s3cr3t"],
        ["--token", "-s3cr3t"],
        ["--private", "--token", "s3cr3t"],
        ["--env", "HF_TOKEN=s3cr3t"],
        ["--env=HF_TOKEN=s3cr3t"],
        ["--set", "a=1,password=s3cr3t"],
        ["sk-s3cr3ts3cr3ts3cr3t=="],
        ["https://host/?token=s3cr3t"],
        ["bash -c 'run --token s3cr3t'"],
    ],
)
def test_secrets_in_arguments_are_blanked(argument):
    """The command line is dumped too; what follows a secret's option is not."""
    text = describe(["traincheck-collect", "--", *argument, "--epochs", "3"], {})

    assert "s3cr3t" not in text
    assert "--epochs\n3\n" in text


def test_what_is_no_secret_stays_readable():
    """Options, folders and paths of a run are what the dump is for."""
    arguments = ["--tokenizer", "gpt2", "--lr=0.1", "optim.lr=3e-4", "bypasses=2"]
    folders = {"PWD": "/x", "OLDPWD": "/y", "PATH": "/opt/keybase:/usr/bin"}

    text = describe(arguments, {**folders, "INDEX": "https://example.org:8080/simple"})

    assert "(blanked)" not in text


def test_what_explains_a_run_is_there():
    """Versions, folder, and variables that are no secrets."""
    text = describe(["traincheck-collect"], {"OMP_NUM_THREADS": "2", "PWD": "/x", "A": "1\n2"})

    assert "traincheck-launcher " in text
    assert "OMP_NUM_THREADS=2\n" in text
    assert "PWD=/x\n" in text
    assert "A=1\\n2\n" in text
