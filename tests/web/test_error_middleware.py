"""Unhandled exceptions: they are answered once, and raised for the server to log."""

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agui_container.main import build_app
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.engine.doubles import forever, make_service
from tests.sse import http_client

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
