"""``agui doctor`` asks models, MCP servers and AWS, and survives checks that break."""

import asyncio
import json
import os
import sys

import pytest

from agui_container.cli import doctor
from agui_container.cli.checks import Findings, ok
from agui_container.settings import Settings
from tests.cli.test_doctor import FAILED, OK, FixedServer, examine, fixed_server, folder
from tests.docs.documents import ROOT
from tests.secret_search import planted

pytestmark = [pytest.mark.wire, pytest.mark.processes]

__all__ = ["fixed_server", "folder"]

STREAM = (
    'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    '"delta":{"role":"assistant","content":"ok"},"finish_reason":null}]}\n\ndata: [DONE]\n\n'
)
IDENTITY = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::123456789012:user/ann</Arn><UserId>AIDA</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
REFUSED = """<ErrorResponse><Error><Type>Sender</Type><Code>InvalidClientTokenId</Code>
<Message>The security token included in the request is invalid.</Message></Error></ErrorResponse>"""


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (200, ""),
        (401, "Check the key or the AWS credentials"),
        (404, "Check the name of the model"),
        (400, "Check AGUI_MODEL_OPTIONS"),
    ],
)
def test_a_model_is_asked_for_a_token(
    status: int,
    advice: str,
    fixed_server: FixedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fixed_server.status, fixed_server.body = status, STREAM if status == 200 else '{"error": {"message": "bad"}}'
    fixed_server.content_type = "text/event-stream" if status == 200 else "application/json"
    monkeypatch.setenv("AGUI_MODEL", "openai:m")
    monkeypatch.setenv("AGUI_MODELS", "other=openai:n")
    monkeypatch.setenv("AGUI_OPENAI_BASE_URL", fixed_server.url)
    monkeypatch.setenv("AGUI_OPENAI_API_KEY", planted("key"))
    found = examine(capsys, "model")
    assert [finding["status"] for finding in found] == [OK if status == 200 else FAILED] * 2
    assert [finding["detail"].partition(" ")[0].rstrip(":") for finding in found] == ["openai:m", "other"]
    assert all((finding.get("advice") or "").startswith(advice) for finding in found)


def test_mcp_servers_list_their_tools(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    env = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'app'}:{ROOT / 'clients/python/src'}"}
    demo = {"name": "demo", "command": sys.executable, "args": ["-m", "tests.tools.mcp_demo"], "env": env}
    gone = {"name": "gone", "command": "no-such-program"}
    monkeypatch.setenv("AGUI_MCP_SERVERS", json.dumps([demo, gone]))
    there, missing = examine(capfd, "mcp")
    assert there["status"] == OK, there
    assert there["detail"].startswith("demo: demo_")
    assert missing["status"] == FAILED
    assert missing["detail"].startswith("gone: The MCP server 'gone' cannot be reached: FileNotFoundError: ")


def test_the_identity_and_region_of_aws_are_shown(
    fixed_server: FixedServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed_server.body, fixed_server.content_type = IDENTITY, "text/xml"
    monkeypatch.setattr(doctor, "CHECKS", {"aws": doctor.CHECKS["aws"]})
    monkeypatch.setenv("AGUI_MODEL", "bedrock:m")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", fixed_server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", planted("aws"))
    region, identity = examine(capsys, "aws")
    assert (region["status"], region["detail"]) == (FAILED, "there is none")
    assert (identity["status"], identity["detail"]) == (OK, "arn:aws:iam::123456789012:user/ann")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    region, identity = examine(capsys, "aws")
    assert (region["status"], region["detail"]) == (OK, "eu-west-1")
    fixed_server.status, fixed_server.body = 403, REFUSED
    region, identity = examine(capsys, "aws")
    assert (region["status"], identity["status"]) == (OK, FAILED)
    assert "InvalidClientTokenId" in identity["detail"]


@pytest.mark.parametrize(("skew", "status"), [(0, OK), (3_600, FAILED)])
def test_the_clock_is_compared_with_that_of_the_issuer(
    skew: float,
    status: str,
    fixed_server: FixedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fixed_server.skew = skew
    monkeypatch.setattr(doctor, "CHECKS", {"clock": doctor.CHECKS["clock"]})
    monkeypatch.setenv("AGUI_AUTH", "jwt")
    monkeypatch.setenv("AGUI_AUTH_DISCOVERY_URL", f"{fixed_server.url}/.well-known/openid-configuration")
    (clock,) = examine(capsys, "clock")
    assert clock["status"] == status


def test_a_check_that_breaks_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(_: Settings) -> Findings:
        yield ok("store", "there")
        raise RuntimeError(f"broke with {planted('key')}")

    monkeypatch.setattr(doctor, "CHECKS", {"store": broken, "bus": doctor.CHECKS["bus"]})
    monkeypatch.setenv("AGUI_OPENAI_API_KEY", planted("key"))
    _, store = examine(capsys, "store")
    assert (store["status"], store["detail"]) == (FAILED, "RuntimeError: broke with ********")
    (bus,) = examine(capsys, "bus")
    assert bus["status"] == OK


def test_a_check_that_hangs_is_a_fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def silent(_: Settings) -> Findings:
        await asyncio.Event().wait()
        yield ok("store", "there")

    monkeypatch.setattr(doctor, "CHECKS", {"store": silent})
    monkeypatch.setattr(doctor, "CHECK_SECONDS", 0.01)
    (found,) = examine(capsys, "store")
    assert (found["status"], found["detail"]) == (FAILED, "no answer within 0.01 seconds")
