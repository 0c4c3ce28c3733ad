"""Settings that are ARNs of secrets: the server reads the secrets at its start, and nothing prints them."""

from pathlib import Path

import pytest
from boto3.session import Session  # type: ignore[import-untyped]
from moto import mock_aws

from agui_container.cli.command_line import main
from agui_container.settings import SettingsError
from agui_container.settings_sources import load_settings
from tests.secret_search import planted

pytestmark = pytest.mark.packages


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AGUI_OPENAI_API_KEY", "AGUI_STORE"):
        monkeypatch.delenv(name, raising=False)


def store(text: str) -> str:
    client = Session(region_name="eu-central-1").client("secretsmanager")
    arn: str = client.create_secret(Name="agui", SecretString=text)["ARN"]
    return arn


@mock_aws
def test_an_arn_stands_for_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGUI_OPENAI_API_KEY", store(planted("secret")))
    assert load_settings().openai_api_key.get_secret_value() == planted("secret")


@mock_aws
def test_a_key_behind_the_arn_names_one_value_of_a_secret_that_is_json(tmp_path: Path) -> None:
    arn = store(f'{{"url": "postgresql://me:{planted("secret")}@db/agui"}}')
    (tmp_path / "agui.toml").write_text(f'store = "{arn}:url"\n')
    assert planted("secret") in load_settings().store.get_secret_value()
    (tmp_path / "agui.toml").write_text(f'store = "{arn}:other"\n')
    with pytest.raises(SettingsError, match="store: the secret is no JSON object with the key other") as failed:
        load_settings()
    assert planted("secret") not in str(failed.value)


@mock_aws
def test_a_secret_that_cannot_be_read_stops_the_start_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:missing-a1B2c3"
    monkeypatch.setenv("AGUI_OPENAI_API_KEY", arn)
    with pytest.raises(SettingsError, match="AGUI_OPENAI_API_KEY: the secret cannot be read: ResourceNotFound"):
        load_settings()


def test_printing_settings_reads_no_secret(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agui-a1B2c3"
    monkeypatch.setenv("AGUI_OPENAI_API_KEY", arn)
    monkeypatch.setattr("botocore.httpsession.URLLib3Session.send", None)
    assert main(["config"]) == 0
    assert "AGUI_OPENAI_API_KEY" in capsys.readouterr().out
