"""Web pages that may not call: pages of other sites, and pages whose own name leads to this server."""

import pytest
from starlette.types import Scope

from agui_container.protocol.errors import AppError
from agui_container.web.browser_policy import MAX_LOGGED, BrowserPolicy, Headers, log_refused_page, same_host
from tests.conftest import Serve
from tests.engine.doubles import forever
from tests.sse import http_client
from tests.web.responses import refusal_event
from tests.websocket import refused_handshake, socket_to

REBOUND = "evil.example:8080"
PATHS = ["/threads", "/runs/r1", "/runs/r1/events", "/threads/t1/transcript", "/capabilities", "/", "/ping", "/docs"]


SAME_HOST = [
    ("http://localhost:8080", "localhost:8080"),
    ("http://example.org", "example.org"),
    ("http://example.org", "example.org:80"),
    ("http://example.org:80", "example.org"),
    ("https://example.org", "example.org:443"),
    ("https://example.org:443", "example.org"),
    ("http://EXAMPLE.org", "example.ORG"),
    ("http://[::1]:8080", "[::1]:8080"),
]
OTHER_HOST = [
    ("http://localhost:3000", "localhost:8080"),
    ("http://localhost", "127.0.0.1"),
    ("http://example.org", "example.org:8080"),
    ("http://example.org.evil.net", "example.org"),
    ("http://evil.net/example.org", "example.org"),
    ("http://example.org@evil.net", "example.org"),
    ("null", "null"),
    ("null", ""),
    ("", ""),
    ("http://x:99999", "x:99999"),
    ("http://[", "["),
    ("http://x", ""),
]


@pytest.mark.parametrize(("origin", "host"), SAME_HOST + OTHER_HOST)
def test_a_page_may_call_its_own_host_and_port_only(origin: str, host: str) -> None:
    assert same_host(origin, host) is ((origin, host) in SAME_HOST)


def allows(headers: dict[str, str], path: str = "/threads", method: str = "GET", hosts: tuple[str, ...] = ()) -> bool:
    sent: Headers = list(headers.items())
    scope: Scope = {"type": "http", "method": method, "path": path}
    try:
        BrowserPolicy(["https://app.example"], hosts).check(sent, scope)
    except AppError:
        return False
    return True


OWN_HOSTS = ["localhost:8080", "LOCALHOST", "agent.localhost", "127.0.0.1:8080", "[::1]:8080", "192.168.0.7"]
FOREIGN_HOSTS = [REBOUND, "localhost.evil.example", "127.0.0.1.evil.example", "::1", "[", ""]


@pytest.mark.parametrize("host", [*OWN_HOSTS, "app.example", "app.example:8443", "name.example", "name.example.:80"])
@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_page_under_a_name_that_no_other_page_can_have_may_read(host: str, site: str) -> None:
    assert allows({"host": host, "sec-fetch-site": site}, hosts=("Name.example",))


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
@pytest.mark.parametrize("site", ["same-origin", "none", "same-site", "cross-site"])
@pytest.mark.parametrize("hosts", [(), ("name.example",), ("",)])
def test_a_page_under_any_other_name_may_not_even_read(host: str, site: str, hosts: tuple[str, ...]) -> None:
    assert not allows({"host": host, "sec-fetch-site": site}, hosts=hosts)


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def test_a_link_elsewhere_may_open_the_start_page_and_nothing_else() -> None:
    link = {"host": "localhost:8080", **LINK}
    assert allows(link, "/")
    assert allows({**link, "sec-fetch-site": "same-site"}, "/")
    assert not allows(link, "/threads")
    assert not allows(link, "/", method="POST")
    assert not allows({**link, "sec-fetch-dest": "iframe"}, "/")
    assert not allows({**link, "sec-fetch-mode": "no-cors"}, "/")
    assert not allows({**link, "host": REBOUND}, "/")


@pytest.mark.parametrize("host", [*OWN_HOSTS, *FOREIGN_HOSTS])
@pytest.mark.parametrize("more", [{}, {"sec-fetch-mode": "cors", "accept-language": "*"}], ids=["curl", "Node's fetch"])
def test_clients_that_are_no_browser_may_call_any_host(host: str, more: dict[str, str]) -> None:
    assert allows({"host": host, **more})


def test_a_page_of_a_configured_origin_may_call_whatever_its_site() -> None:
    page = {"origin": "https://app.example", "sec-fetch-site": "cross-site"}
    assert allows({"host": "localhost", **page})
    assert not allows({"host": "localhost", **page, "origin": "https://evil.example"})


def test_a_page_under_an_allowed_name_may_call_its_own_host_only() -> None:
    page = {"origin": "https://name.example", "sec-fetch-site": "same-origin"}
    assert allows({"host": "name.example", **page}, method="POST", hosts=("name.example",))
    assert not allows({"host": "name.example", **page}, method="POST")
    assert not allows({"host": "other.example", **page}, method="POST", hosts=("name.example", "other.example"))


async def test_a_rebound_page_reads_nothing(serve: Serve) -> None:
    client, _ = await serve(forever)
    page = {"host": REBOUND, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    async with http_client(client.url) as http:
        for path in PATHS:
            response = await http.get(path, headers=page)
            assert (response.status_code, refusal_event(response)["code"]) == (403, "ACCESS_DENIED"), path


async def test_a_socket_of_a_rebound_page_is_refused(serve: Serve) -> None:
    client, _ = await serve(forever, allowed_hosts="name.example")
    port = int(client.url.rpartition(":")[2])
    for host in (REBOUND, "name.example"):
        refused = await refused_handshake(f"ws://{host}", host="127.0.0.1", port=port, origin=f"http://{REBOUND}")
        assert (refused.status, refused.event["code"]) == (403, "ACCESS_DENIED")
    async with socket_to("ws://name.example", host="127.0.0.1", port=port, origin="http://name.example"):
        pass


async def test_a_refused_page_is_logged_with_its_origin(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client, _ = await serve(forever)
    host = client.url.removeprefix("http://")
    async with http_client(client.url) as http:
        assert (await http.get("/threads", headers={"Origin": "https://evil.example"})).status_code == 403
        await http.get("/threads", headers={"Sec-Fetch-Site": "cross-site"})
    await refused_handshake(client.url, origin="https://other.example")
    assert [message for message in caplog.messages if message.startswith("web page refused")] == [
        f"web page refused origin=https://evil.example host={host}",
        f"web page refused origin=none host={host}",
        f"web page refused origin=https://other.example host={host}",
    ]


@pytest.mark.parametrize(
    ("origin", "written"),
    [
        ("https://a b host=c", "'https://a b host=c'"),
        ("https://a\x1b[2J\x85\u202e", "'https://a\\x1b[2J\\x85\\u202e'"),
        ("https://" + "a" * 10_000, "https://" + "a" * (MAX_LOGGED - 8)),
    ],
)
def test_an_origin_cannot_forge_a_field_or_a_line(origin: str, written: str, caplog: pytest.LogCaptureFixture) -> None:
    log_refused_page(origin, "localhost")
    assert caplog.messages == [f"web page refused origin={written} host=localhost"]
