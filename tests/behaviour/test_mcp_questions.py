"""Questions of an MCP server: answered after a restart and through another replica, each call carried out once."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agui_container.settings import Settings
from agui_container.tools.mcp.tool import CUT_OFF
from tests.behaviour.conversations import ClientThread, answer, cancelled_answer, interrupts, results
from tests.behaviour.test_restart import server
from tests.engine.doubles import Json
from tests.tools.mcp_demo import Demo, serve_app

pytestmark = pytest.mark.wire

BOOK, BUY = 'call demo_book {"name": "Ada"}', "call demo_buy"


@pytest.fixture
async def demo() -> AsyncIterator[tuple[Demo, int]]:
    demo = Demo()
    async with serve_app(demo.server.streamable_http_app()) as port:
        yield demo, port


def settings_of(tmp_path: Path, port: int, **fields: object) -> Settings:
    servers = [{"name": "demo", "url": f"http://127.0.0.1:{port}/mcp", **fields}]
    return Settings.model_validate({"store": f"sqlite:///{tmp_path}/store.db", "mcp_servers": json.dumps(servers)})


async def test_questions_are_answered_through_other_replicas_and_after_a_restart(
    demo: tuple[Demo, int], tmp_path: Path
) -> None:
    settings = settings_of(tmp_path, demo[1])
    async with AsyncExitStack() as stack:
        thread = ClientThread(await stack.enter_async_context(server(settings)))
        size, _ = interrupts(await thread.say(BOOK))
        assert (size["reason"], size["message"]) == ("elicitation", "Which size?")
        assert size["responseSchema"]["required"] == ["size"]
        thread.client = await stack.enter_async_context(server(settings))
        (other,) = interrupts(await thread.resume(answer(size, size=3)))
    async with server(settings) as thread.client:
        assert results(await thread.resume(answer(other, action="decline"))) == ["Ada 3 decline"]
        await thread.resume(answer(other, size=4))  # from another tab
    assert demo[0].calls == ["book"]


@pytest.mark.parametrize(("given", "read"), [({"size": 3}, "3"), ({"action": "decline"}, "decline"), (None, "cancel")])
async def test_the_server_is_busy_while_a_call_of_the_older_handshake_waits(
    given: Json | None, read: str, demo: tuple[Demo, int], tmp_path: Path
) -> None:
    async with server(settings_of(tmp_path, demo[1], handshake="initialize")) as client:
        thread = ClientThread(client)
        (question,) = interrupts(await thread.say(BUY))
        assert client.service.health.report()["status"] == "HealthyBusy"
        events = await thread.resume(cancelled_answer(question) if given is None else answer(question, **given))
        assert results(events) == [read]
        assert client.service.health.report()["status"] == "Healthy"


async def test_a_call_of_the_older_handshake_is_cut_off_by_a_restart_and_not_repeated(
    demo: tuple[Demo, int], tmp_path: Path
) -> None:
    settings = settings_of(tmp_path, demo[1], handshake="initialize")
    async with server(settings) as client:
        thread = ClientThread(client)
        (question,) = interrupts(await thread.say(BUY))
    calls = list(demo[0].calls)
    async with server(settings) as thread.client:
        assert results(await thread.resume(answer(question, size=3))) == [f"Error: {CUT_OFF}"]
    assert demo[0].calls == calls
