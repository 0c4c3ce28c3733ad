"""The boto3 client is made as the options and the platform say."""

import subprocess
import sys

import pytest

from agui_container.models.bedrock.client import _create_client
from agui_container.models.bedrock.options import BedrockOptions


def region_of(options: BedrockOptions) -> object:
    meta: object = getattr(_create_client(options), "meta", None)
    return getattr(meta, "region_name", None)


def test_the_region_is_the_platforms_unless_an_option_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert region_of(BedrockOptions()) == "eu-central-1"
    assert region_of(BedrockOptions(region="eu-west-1")) == "eu-west-1"


def test_without_the_platforms_region_boto3_finds_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert region_of(BedrockOptions()) == "us-west-2"


LAZY = """
import sys
from agui_container.models.bedrock import BedrockModel
BedrockModel("any.model")
assert not {"boto3", "botocore"} & sys.modules.keys()
"""


def test_boto3_is_not_imported_before_the_first_call() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", LAZY], check=True, timeout=300)
