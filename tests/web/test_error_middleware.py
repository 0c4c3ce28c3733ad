"""Unhandled exceptions: they are answered once, and raised for the server to log."""

import pytest
from fastapi import FastAPI
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agui_container.main import build_app
from agui_container.ports import Caller
from agui_container.settings import Settings
from agui_container.web.application import ErrorMiddleware
from tests.behaviour.server import serving
from tests.engine.doubles import forever, make_service
from tests.sse import http_client


async def fault_sends(kind: str) -> list[Message]:
    """Return what is sent for a fault of the application, which is raised."""
    sent: list[Message] = []

    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise LookupError("lost")

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise NotImplementedError

    state = {"caller": Caller(owner="everybody", request_id="request-1"), "refused_status": None}
    scope = {"type": kind, "method": "POST", "path": "/", "headers": [], "state": state}
    with pytest.raises(LookupError, match="lost"):
        await ErrorMiddleware(broken)(scope, receive, send)
    return sent


async def test_a_fault_before_an_answer_is_answered_and_raised() -> None:
    start, body = await fault_sends("http")
    assert (start["type"], start["status"]) == ("http.response.start", 500)
    assert b"INTERNAL_ERROR" in body["body"]
    assert b"lost" not in body["body"]


async def test_a_fault_of_a_socket_is_raised_and_sends_nothing() -> None:
    assert await fault_sends("websocket") == []


async def test_an_applications_own_exception_handler_replaces_the_error_middleware() -> None:
    async def otherwise(_: Request, __: Exception) -> Response:
        return PlainTextResponse("otherwise", 500)

    app = build_app(Settings(), make_service(forever))
    assert isinstance(app.build_middleware_stack(), ErrorMiddleware)
    app.add_exception_handler(Exception, otherwise)
    stack = app.build_middleware_stack()
    assert isinstance(stack, ServerErrorMiddleware)
    assert stack.handler is otherwise


# --- middleware of a program ------------------------------------------------------------------------------------------


PAGE = "http://page.example"


class NamingMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-named", b"yes")]
            await send(message)

        await self._app(scope, receive, send_named)


class PaymentError(Exception):
    """An error that only the embedding program knows."""


def application(*origins: str) -> FastAPI:
    app = build_app(Settings(cors_origins=origins), make_service(forever))

    async def pay(_: Request) -> Response:
        raise PaymentError

    async def refuse(_: Request, __: Exception) -> Response:
        return PlainTextResponse("pay first", 402)

    app.add_route("/pay", pay)
    app.add_middleware(NamingMiddleware)
    app.add_exception_handler(PaymentError, refuse)
    return app


@pytest.mark.parametrize("origins", [(), (PAGE,)])
async def test_middleware_and_exception_handlers_can_be_added(origins: tuple[str, ...]) -> None:
    headers = {"origin": PAGE} if origins else {}
    async with serving(application(*origins)) as url, http_client(url) as http:
        response = await http.get("/pay", headers=headers)
    assert (response.status_code, response.text) == (402, "pay first")
    assert response.headers["x-named"] == "yes"
    assert response.headers.get("access-control-allow-origin") == (PAGE if origins else None)
