"""MCP servers that forgot their sessions, as a server does that was restarted."""

from collections.abc import Callable

import pytest
from starlette.responses import JSONResponse, Response

from agui_container.ports import ToolError
from tests.tools.mcp_scripted import Scripted, refused, scripted

CLEAR = {
    "404": refused(404),
    "404 with an error": refused(404, -32600, "Session not found"),
    "400": refused(400),
    "400 with an error": refused(400, -32000, "Bad Request: No valid session ID provided"),
    "401": refused(401),
    "410": refused(410),
    "an error": refused(200, -32600, "Session not found"),
    "a malformed error": lambda id_: JSONResponse({"jsonrpc": "2.0", "id": id_, "error": "Session not found"}),
    "an error of initialization": refused(200, -32000, "Server not initialized"),
}
"""Answers that say that the session is unknown."""

UNCLEAR = {
    "500": refused(500),
    "wrong parameters": refused(200, -32602, "Invalid request parameters"),
    "an error of its own": refused(200, -32603, "KeyError"),
}
"""Answers after which a call may have been carried out."""


@pytest.mark.parametrize("refuse", CLEAR.values(), ids=CLEAR)
async def test_a_call_in_a_session_that_the_server_forgot_is_sent_in_a_new_one(
    refuse: Callable[[object], Response],
) -> None:
    async with scripted(Scripted(refuse=refuse)) as rig:
        await rig.names()
        rig.server.sessions.clear()
        assert await rig.call() == "carried out"
        assert rig.server.methods == ["initialize", "tools/list", "initialize", "tools/call"]


@pytest.mark.parametrize("refuse", [*CLEAR.values(), *UNCLEAR.values()], ids=[*CLEAR, *UNCLEAR])
async def test_a_list_in_a_session_that_the_server_forgot_is_asked_for_in_a_new_one(
    refuse: Callable[[object], Response],
) -> None:
    async with scripted(Scripted(refuse=refuse)) as rig:
        await rig.names()
        rig.server.sessions.clear()
        rig.source.drop_listing()
        assert await rig.names() == ["echo"]
        assert rig.server.methods == ["initialize", "tools/list", "initialize", "tools/list"]


@pytest.mark.parametrize("refuse", UNCLEAR.values(), ids=UNCLEAR)
async def test_a_call_that_may_have_been_carried_out_is_not_repeated_and_the_next_run_finds_the_server(
    refuse: Callable[[object], Response],
) -> None:
    async with scripted(Scripted(refuse=refuse)) as rig:
        await rig.names()
        rig.server.sessions.clear()
        with pytest.raises(ToolError):
            await rig.call()
        assert rig.server.methods == ["initialize", "tools/list"]
        assert await rig.call() == "carried out"
        assert rig.server.methods[2:] == ["initialize", "tools/list", "tools/call"]


async def test_a_session_is_opened_only_once_for_a_request() -> None:
    class Forgetful(Scripted):
        """Each request finds its session forgotten, except the list."""

        def _initialize(self, message: dict[str, object]) -> Response:
            answer = super()._initialize(message)
            if len(self.methods) > 1:
                self.sessions.clear()
            return answer

    async with scripted(Forgetful(refuse=refused(400))) as rig:
        await rig.names()
        rig.server.sessions.clear()
        with pytest.raises(
            ToolError, match=r"^The MCP server 'demo' refused the session; the call was not carried out\.$"
        ):
            await rig.call()
        assert rig.server.methods == ["initialize", "tools/list", "initialize"]


async def test_a_call_that_is_refused_for_its_arguments_is_not_repeated() -> None:
    async with scripted(Scripted(refuse=refused(400, -32602, "a is missing"))) as rig:
        await rig.names()
        rig.server.sessions.clear()
        with pytest.raises(ToolError, match=r"^a is missing$"):
            await rig.call()
        assert rig.server.methods == ["initialize", "tools/list"]


async def test_a_list_that_failed_is_asked_for_in_a_new_session() -> None:
    async with scripted(Scripted(pages=lambda _: {"tools": "none"})) as rig:
        with pytest.raises(ToolError, match="could not list its tools"):
            await rig.names()
        before = rig.server.methods.count("initialize")
        with pytest.raises(ToolError, match="could not list its tools"):
            await rig.names()
        assert rig.server.methods.count("initialize") == before + 1
