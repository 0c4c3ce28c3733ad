"""Unhandled exceptions: they are answered once, and raised for the server to log."""

import pytest
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from agui_container.main import build_app
from agui_container.ports import Caller
from agui_container.settings import Settings
from agui_container.transports.application import ErrorMiddleware
from tests.engine.doubles import forever, make_service
from tests.requirements import requirement


class Peer:
    """A server that refuses to begin a response twice, as every server does."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    async def send(self, message: Message) -> None:
        begins = message["type"] == "http.response.start"
        if begins and any(each["type"] == message["type"] for each in self.sent):
            raise RuntimeError("one response has begun")
        self.sent.append(message)

    async def receive(self) -> Message:
        raise NotImplementedError


def scope(kind: str = "http") -> Scope:
    state = {"caller": Caller(owner="everybody", request_id="request-1"), "refused_status": None}
    return {"type": kind, "method": "POST", "path": "/", "headers": [], "state": state}


@requirement("http.internal")
async def test_a_fault_before_an_answer_is_answered_and_raised() -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise LookupError("lost")

    peer = Peer()
    with pytest.raises(LookupError, match="lost"):
        await ErrorMiddleware(broken)(scope(), peer.receive, peer.send)
    start, body = peer.sent
    assert (start["type"], start["status"]) == ("http.response.start", 500)
    assert b"INTERNAL_ERROR" in body["body"]
    assert b"lost" not in body["body"]


@requirement("http.internal")
async def test_a_fault_amid_an_answer_is_raised_and_begins_no_other() -> None:
    async def broken(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"so far", "more_body": True})
        raise LookupError("lost")

    peer = Peer()
    with pytest.raises(LookupError, match="lost"):
        await ErrorMiddleware(broken)(scope(), peer.receive, peer.send)
    assert [message.get("status") or message["body"] for message in peer.sent] == [200, b"so far"]


async def test_a_fault_of_a_socket_is_raised_and_sends_nothing() -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise LookupError("lost")

    peer = Peer()
    with pytest.raises(LookupError, match="lost"):
        await ErrorMiddleware(broken)(scope("websocket"), peer.receive, peer.send)
    assert peer.sent == []


async def test_an_applications_own_exception_handler_replaces_the_error_middleware() -> None:
    async def otherwise(_: Request, __: Exception) -> Response:
        return PlainTextResponse("otherwise", 500)

    app = build_app(Settings(), make_service(forever))
    assert isinstance(app.build_middleware_stack(), ErrorMiddleware)
    app.add_exception_handler(Exception, otherwise)
    stack = app.build_middleware_stack()
    assert isinstance(stack, ServerErrorMiddleware)
    assert stack.handler is otherwise
