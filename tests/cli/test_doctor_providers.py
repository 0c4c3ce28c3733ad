"""``agui doctor`` asks models, MCP servers and AWS, and survives checks that break."""

import asyncio
import json
import sys

import pytest

from agui_container.cli import doctor
from agui_container.cli.checks import Findings, ok
from agui_container.settings import Settings
from tests.auth.issuer import TestIssuer
from tests.cli.test_doctor import FAILED, OK, SKIPPED, examine, folder
from tests.docs.documents import ROOT
from tests.fixed_server import FixedServer, fixed_server
from tests.secret_search import planted

pytestmark = [pytest.mark.wire, pytest.mark.processes]

__all__ = ["fixed_server", "folder"]

STREAM = (
    'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    '"delta":{"role":"assistant","content":"ok"},"finish_reason":null}]}\n\ndata: [DONE]\n\n'
)


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
    monkeypatch.setenv("AGUI_OPENAI_BASE_URL", f"http://127.0.0.1:{fixed_server.port}")
    monkeypatch.setenv("AGUI_OPENAI_API_KEY", planted("key"))
    found = examine(capsys, "model")
    assert [finding["status"] for finding in found] == [OK if status == 200 else FAILED] * 2
    assert [finding["detail"].partition(" ")[0].rstrip(":") for finding in found] == ["openai:m", "other"]
    assert all((finding.get("advice") or "").startswith(advice) for finding in found)


@pytest.mark.parametrize(("keys", "status"), [(1, OK), (0, FAILED)])
def test_an_issuer_is_asked_for_its_keys(
    keys: int,
    status: str,
    fixed_server: FixedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    issuer = TestIssuer()
    issuer.url = f"http://127.0.0.1:{fixed_server.port}"
    key_set = issuer.key_set() if keys else {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}
    fixed_server.body = json.dumps({**issuer.discovery_document(), **key_set})
    monkeypatch.setenv("AGUI_AUTH", "jwt")
    monkeypatch.setenv("AGUI_AUTH_DISCOVERY_URL", issuer.discovery_url)
    monkeypatch.setenv("AGUI_AUTH_ALLOWED_AUDIENCE", "me")
    (found,) = examine(capsys, "auth")
    assert (found["status"], found["detail"].startswith(issuer.url)) == (status, True)


def test_mcp_servers_list_their_tools(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    demo = {"name": "demo", "command": sys.executable, "args": [str(ROOT / "tests" / "tools" / "mcp_process.py")]}
    gone = {"name": "gone", "command": "no-such-program"}
    monkeypatch.setenv("AGUI_MCP_SERVERS", json.dumps([demo, gone]))
    there, missing = examine(capfd, "mcp")
    assert there["status"] == OK, there
    assert there["detail"].startswith("demo: demo_")
    assert missing["status"] == FAILED
    assert missing["detail"].startswith("gone: The MCP server 'gone' cannot be reached: FileNotFoundError: ")


def test_a_check_that_breaks_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(_: Settings) -> Findings:
        yield ok("store", "there")
        raise RuntimeError(f"broke with {planted('key')}")

    monkeypatch.setattr(doctor, "CHECKS", {"store": broken, "mcp": doctor.CHECKS["mcp"]})
    monkeypatch.setenv("AGUI_OPENAI_API_KEY", planted("key"))
    _, store = examine(capsys, "store")
    assert (store["status"], store["detail"]) == (FAILED, "RuntimeError: broke with ********")
    (mcp,) = examine(capsys, "mcp")
    assert mcp["status"] == SKIPPED


def test_a_check_that_hangs_is_a_fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def silent(_: Settings) -> Findings:
        await asyncio.Event().wait()
        yield ok("store", "there")

    monkeypatch.setattr(doctor, "CHECKS", {"store": silent})
    monkeypatch.setattr(doctor, "CHECK_SECONDS", 0.01)
    (found,) = examine(capsys, "store")
    assert (found["status"], found["detail"]) == (FAILED, "no answer within 0.01 seconds")
