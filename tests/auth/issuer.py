"""A token issuer for tests, with its faults: slow, unreachable, or with wrong answers."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from examples.local_issuer import LocalIssuer
from tests.secret_search import remember_token
from tests.server.sockets.process import announced

AUDIENCE = "my-agent"


class TestIssuer(LocalIssuer):
    """An issuer whose answers a test decides. While it is not ``is_awake``, requests wait."""

    __test__ = False  # not a class of tests

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.asked: list[str] = []
        self.answers: dict[str, Response] = {}
        self.is_awake = asyncio.Event()
        self.is_awake.set()

    def token(self, subject: str, /, **claims: object) -> str:
        """Return a token whose signature is searched for in all that the suite produces."""
        return remember_token(super().token(subject, **claims))

    def answer(self, path: str, content: object, status: int = 200) -> None:
        self.answers[path] = JSONResponse(content, status)

    def tell(self, **members: object) -> None:
        self.answer("/.well-known/openid-configuration", {**self.discovery_document(), **members})

    def publish(self, *keys: Mapping[str, object]) -> None:
        self.answer("/keys", {"keys": keys})

    def scripted_app(self) -> ASGIApp:
        usual = self.app()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await usual(scope, receive, send)
                return
            path = Request(scope).url.path
            self.asked.append(path)
            await self.is_awake.wait()
            await self.answers.get(path, usual)(scope, receive, send)

        return app


@contextmanager
def issuer_process() -> Iterator[str]:
    """The issuer of the examples; gives its address."""
    with announced("examples/local_issuer.py", "--port", "0") as line:
        found = re.search(r"http://localhost:\d+", line)
        assert found
        yield found[0]
