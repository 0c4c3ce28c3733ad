"""A project of ``agui init`` in the working folder, an account of AWS in this process, and a program ``docker``."""

import os
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from moto import mock_aws

from agui_container.aws.deploy.image import find_builder
from agui_container.cli.command_line import main
from agui_container.settings import Settings
from tests.aws.deploy.account import Account
from tests.aws.deploy.docker import FakeDocker


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"AGUI_{name.upper()}", raising=False)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "BEARER_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stand_in_wheels: None) -> Path:
    folder = tmp_path / "weather"
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert main(["init", str(folder)]) == 0
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Account]]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setattr("boto3.session.Session.client", Account.client)
    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", Account.call)
    monkeypatch.setattr("botocore.waiter.time.sleep", lambda _: None)
    Account.reset()
    with mock_aws():
        yield Account


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeDocker]:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    find_builder.cache_clear()
    yield FakeDocker(folder)
    find_builder.cache_clear()
