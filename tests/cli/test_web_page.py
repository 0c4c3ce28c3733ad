"""``agui chat --web``: the page's way to an agent, here behind the local AgentCore, and the command around it."""

import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from agui_client import SessionOptions
from agui_container.aws.platform.authorizer import JwtAuthorizer
from agui_container.cli.target import Target
from agui_container.cli.web_page import build_page
from agui_container.settings import Settings
from tests.auth.issuer import AUDIENCE, TestIssuer
from tests.aws.platform.doubles import ARN
from tests.aws.platform.process import NO_CREDENTIALS, platform_process
from tests.behaviour.server import listening
from tests.cli.deployed import deployed, page_for, signed_runtime
from tests.cli.terminal import PYTHONPATH
from tests.engine.doubles import ask
from tests.ports import free_port
from tests.secret_search import planted
from tests.server.sockets.process import STOP_SECONDS, ServerProcess
from tests.sse import events_of
from tests.websocket import receive_until, send, socket_to

pytestmark = [pytest.mark.wire, pytest.mark.processes]

Talk = Callable[[ServerConnection], Awaitable[None]]
LIST = {"command": {"type": "threads.list"}}

SIGNAL = "signal.signal(signal.SIGINT, signal.SIG_DFL)"
START = f"import os, signal, sys; {SIGNAL}; os.dup2(2, 1); os.execv(sys.argv[1], sys.argv[1:])"
"""Standard output is read with the log. A SIGINT that the tests ignore, because they run in the background, counts."""

COMMAND = (sys.executable, "-c", START, sys.executable, "-m", "agui_container", "chat", "--web", ARN)


@pytest.fixture
async def page() -> AsyncIterator[str]:
    async with signed_runtime() as runtime, listening(build_page(page_for(runtime, planted("aws")))) as address:
        yield f"{address}/"


async def test_a_runtime_for_tokens_gets_the_token_from_the_page_and_not_from_the_browser(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in NO_CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    issuer = TestIssuer()
    async with listening(issuer.scripted_app()) as issuer.url:
        token = issuer.token("alice", aud=AUDIENCE)
        rules = Settings(auth="jwt", auth_discovery_url=issuer.discovery_url, auth_allowed_audience=(AUDIENCE,))
        async with deployed(JwtAuthorizer(rules)) as runtime:
            cases: list[tuple[SessionOptions, str]] = [
                ({"token": token}, "RUN_FINISHED"),
                ({"token": f"{token}x"}, "closed"),
                ({}, "closed"),
            ]
            for options, end in cases:
                target = Target("runtime", runtime, {**options, "session_id": "s" * 33})
                async with listening(build_page(target)) as address, httpx.AsyncClient(base_url=address) as http:
                    listed = await http.post("/invocations", json=LIST)
                    run = await http.post("/invocations", json=ask())
                    assert await end_over_a_socket(address) == end
                assert listed.is_success is run.is_success is (end == "RUN_FINISHED")
    assert "Traceback" not in caplog.text


async def end_over_a_socket(address: str) -> str:
    async with socket_to(address) as socket:
        try:
            await send(socket, ask(run="r2"))
            frames = await receive_until(socket, lambda frame: frame.get("type") in {"RUN_FINISHED", "RUN_ERROR"})
        except ConnectionClosed:
            return "closed"
    return str(frames[-1]["type"])


async def test_other_web_pages_cannot_drive_the_agent(page: str) -> None:
    async with httpx.AsyncClient(base_url=page) as http:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"}):
            refused = await http.post("/invocations", json=LIST, headers=headers)
            assert refused.status_code == 403


async def test_a_session_that_agentcore_would_refuse_is_refused_with_the_reason(page: str) -> None:
    async with httpx.AsyncClient(
        base_url=page, headers={"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "short"}
    ) as http:
        answer = await http.post("/invocations", json=LIST)
    [refusal] = events_of(answer.content)
    assert (answer.status_code, refusal["code"]) == (502, "ACCESS_DENIED")
    assert "33 to 256" in refusal["message"]


async def close_without_a_code(connection: ServerConnection) -> None:
    await connection.recv()
    connection.protocol.send_close()
    connection.transport.write(b"".join(connection.protocol.data_to_send()))
    await connection.wait_closed()


async def break_off(connection: ServerConnection) -> None:
    await connection.recv()
    connection.transport.abort()


async def refuse(connection: ServerConnection) -> None:
    await connection.recv()
    await connection.close(4001, "because")


@pytest.mark.parametrize(
    ("talk", "code"), [(close_without_a_code, 1013), (break_off, 1013), (refuse, 4001)], ids=["1005", "1006", "4001"]
)
async def test_the_page_gets_a_close_code_however_its_agent_goes_away(talk: Talk, code: int) -> None:
    async with serve(talk, "127.0.0.1", 0) as agent:
        port = agent.sockets[0].getsockname()[1]
        async with (
            listening(build_page(Target("agent", f"http://127.0.0.1:{port}/invocations", {}))) as page,
            socket_to(page) as connection,
        ):
            await connection.send("{}")
            with pytest.raises(ConnectionClosed) as closed:
                await connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == code


async def test_the_page_gets_a_close_code_if_its_agent_is_not_there() -> None:
    async with (
        listening(build_page(Target("agent", "http://127.0.0.1:9/invocations", {}))) as page,
        socket_to(page) as connection,
    ):
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013


@pytest.mark.parametrize(
    ("options", "ending", "status"),
    [((), signal.SIGINT, 1), (("--no-open",), signal.SIGTERM, 128 + signal.SIGTERM)],
    ids=["open-until-ctrl-c", "no-open-until-sigterm"],
)
def test_the_page_of_a_runtime_is_served_on_its_port_until_a_signal_ends_it(
    tmp_path: Path, options: tuple[str, ...], ending: signal.Signals, status: int
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    port = free_port()
    url = f"http://localhost:{port}/"
    with platform_process("tests.cli.terminal_agent:agent") as address:
        keys = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
        own = {"PYTHONPATH": PYTHONPATH, "XDG_STATE_HOME": str(tmp_path), "BROWSER": str(browser)}
        variables = {"AWS_ENDPOINT_URL_BEDROCK_AGENTCORE": address, **keys, **own}
        with ServerProcess((*COMMAND, "--web-port", str(port), *options), **variables) as page:
            assert page.log[0] == f"The page for {ARN} is at {url}. Ctrl-C ends it."
            answer = httpx.post(f"{url}invocations", json=ask(), timeout=STOP_SECONDS)
            assert events_of(answer.content)[-1]["type"] == "RUN_FINISHED"
            page.interrupt() if ending == signal.SIGINT else page.term()
            assert page.wait() == status
    assert not any("Traceback" in line for line in page.log)
    assert (tmp_path / "opened").exists() is not bool(options)
