"""Every entrance asks for a token, but for those that are listed here.

Rule: the routes and the rpcs are those of the application itself, so a new one cannot be forgotten.
"""

from collections.abc import Iterator

import pytest
from starlette.routing import BaseRoute, Route, WebSocketRoute

from tests.auth.conftest import Guard, Guarded
from tests.sse import http_client
from tests.websocket import refused_handshake

pytestmark = pytest.mark.wire

OPEN = {
    *("/", "/ping", "/console/{name:path}", "/.well-known/oauth-protected-resource"),
    *("/openapi.json", "/docs"),
}

IDS = {"name": "app.js", "path": "x", "index": "0"}


def address(route: Route, **ids: str) -> str:
    path = route.path
    for name in route.param_convertors:
        value = ids.get(name, IDS.get(name, "x"))
        path = path.replace(f"{{{name}}}", value).replace(f"{{{name}:path}}", value)
    return path


def requests_to(routes: list[BaseRoute]) -> Iterator[tuple[str, Route]]:
    for route in routes:
        assert isinstance(route, Route | WebSocketRoute)
        if isinstance(route, Route):
            for method in sorted(route.methods or {"GET"}):
                yield method, route


@pytest.fixture
async def everything(guard: Guard) -> Guarded:
    return await guard(roboto=True, metrics=True)


async def test_every_route_asks_for_a_token_but_those_that_are_open(everything: Guarded) -> None:
    async with http_client(everything.url) as http:
        for method, route in requests_to(everything.app.routes):
            response = await http.request(method, address(route))
            is_refused = response.status_code == 401
            assert is_refused is (route.path not in OPEN), f"{method} {route.path}"
            assert ("www-authenticate" in response.headers) is is_refused


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/nothing",
            "/ping/",
            "/PING",
            "/console",
            "/threads/..%2Fping",
            "/threads/%2e%2e",
            "/runs?x=/ping",
        ),
        *("/.well-known/openid-configuration", "/ping%2F..%2Fruns", "/runs/ping", "/threads/console%2F"),
    ],
)
async def test_a_path_that_looks_like_an_open_one_asks_for_a_token(everything: Guarded, path: str) -> None:
    assert (await everything.get(path)).status_code == 401


async def test_an_open_prefix_opens_no_other_route(everything: Guarded) -> None:
    for path in ("/console/../threads", "/console/%2e%2e/threads", "/console/..%2Fthreads"):
        async with http_client(everything.url) as http:
            response = await http.get(http.base_url.copy_with(raw_path=path.encode()))
        assert response.status_code in (401, 404), path
        assert "threads" not in response.text


async def test_a_socket_asks_for_a_token(everything: Guarded) -> None:
    for route in everything.app.routes:
        if isinstance(route, WebSocketRoute):
            assert (await refused_handshake(everything.url, route.path)).status == 401
