"""Delivery of the chat page: headers, caches, path prefixes, and settings that turn it off."""

import gzip
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from agui_container.main import build_app
from agui_container.settings import Settings, SettingsError
from agui_container.web.console.assets import STATIC, ConsoleOptions, SignIn, SignInEndpoints
from agui_container.web.console.routes import routes


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with visiting(build_app(Settings())) as client:
        yield client


def visiting(app: FastAPI, path: str = "") -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://localhost:8080{path}")


async def test_the_page_may_run_only_its_own_scripts_and_is_framed_by_nobody(client: httpx.AsyncClient) -> None:
    page = await client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "set-cookie" not in page.headers
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=|\bstyle=", page.text)


NAMED = "connect=https://api.example&resource=https://a.tiles.example&resource=https://*.tiles.example"
FORGED = (
    "connect=https://api.example/x&connect=https://api.example;script-src&connect=https://b.example"
    "&connect=https://evil.example/x.tiles.example&connect=*&connect=data:&resource=https://api.example:1"
)


@pytest.mark.parametrize(
    ("query", "connected", "script"),
    [
        ("", "connect-src", "script-src 'unsafe-inline'"),
        (
            NAMED,
            "connect-src https://api.example",
            "script-src 'unsafe-inline' https://a.tiles.example https://*.tiles.example",
        ),
        (FORGED, "connect-src", "script-src 'unsafe-inline'"),
    ],
)
async def test_the_frame_of_an_app_reaches_the_domains_that_it_names_and_the_settings_allow(
    query: str, connected: str, script: str
) -> None:
    settings = Settings(app_domains=("https://api.example", "https://*.tiles.example"))
    async with visiting(build_app(settings)) as client:
        frame = await client.get(f"/console/app-frame.html?{query}")
    policy = set(frame.headers["content-security-policy"].split("; "))
    assert {
        "sandbox allow-scripts allow-forms",
        "default-src 'none'",
        "form-action 'none'",
        connected,
        script,
    } <= policy
    assert "x-frame-options" not in frame.headers


async def test_the_page_names_no_other_server_and_no_absolute_path(client: httpx.AsyncClient) -> None:
    page = await client.get("/")
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert addresses
    assert not [address for address in addresses if address.startswith(("/", "http"))]


async def test_files_are_compressed_for_who_takes_it(client: httpx.AsyncClient) -> None:
    plain = await client.get("/console/app.js", headers={"Accept-Encoding": "identity"})
    small = await client.get("/console/app.js", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert small.content == plain.content
    assert small.headers["vary"] == "Accept-Encoding"


async def test_chunks_are_kept_for_ever_and_everything_else_is_asked_for_again(client: httpx.AsyncClient) -> None:
    script = await client.get("/console/app.js")
    chunk = re.findall(r"\./(chunks/[\w-]+\.js)", script.text)[0]
    assert "immutable" in (await client.get(f"/console/{chunk}")).headers["cache-control"]
    assert script.headers["cache-control"] == "no-cache"
    again = await client.get("/console/app.js", headers={"If-None-Match": script.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/console/", "/console/index.html", "/console/app.js.gz", "/console/../main.py", "/console/%2e%2e/main.py"],
)
async def test_nothing_but_the_files_of_the_page_is_served(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404


async def test_there_is_no_page_where_it_is_turned_off() -> None:
    async with visiting(build_app(Settings(console=False))) as client:
        assert (await client.get("/")).status_code == 404
        assert (await client.get("/console/app.js")).status_code == 404
        assert (await client.get("/ping")).status_code in {200, 503}


def test_every_compressed_copy_is_of_the_file_beside_it() -> None:
    copies = sorted(STATIC.rglob("*.gz"))
    assert copies
    for copy in copies:
        assert gzip.decompress(copy.read_bytes()) == copy.with_suffix("").read_bytes()


async def test_the_page_has_the_greeting_and_the_logo_of_the_settings(tmp_path: Path) -> None:
    logo = tmp_path / "logo.svg"
    logo.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    settings = Settings(console_greeting="What's <new>?", console_logo=str(logo))
    async with visiting(build_app(settings)) as client:
        page, image = await client.get("/"), await client.get("/console/logo.svg")
    assert 'data-greeting="What&#x27;s &lt;new&gt;?" data-logo="console/logo.svg"' in page.text
    assert (image.headers["content-type"], image.content) == ("image/svg+xml", logo.read_bytes())
    assert "script-src 'self'" in image.headers["content-security-policy"]


def test_a_logo_that_is_not_there_stops_the_start() -> None:
    with pytest.raises(SettingsError, match=r"AGUI_CONSOLE_LOGO=nowhere\.png: there is no such file"):
        build_app(Settings(console_logo="nowhere.png"))


def test_prices_are_capabilities_and_wrong_ones_stop_the_start() -> None:
    prices = {"gpt-5": {"input": 1.25, "output": 10.0, "cachedInput": 0.125}}
    app = build_app(Settings(model_prices=json.dumps(prices)))
    assert app.state.service.capabilities.custom["prices"] == prices
    with pytest.raises(SettingsError, match="AGUI_MODEL_PRICES"):
        build_app(Settings(model_prices='{"gpt-5": {"input": -1, "output": 1}}'))


async def visit_with_sign_in(endpoints: SignInEndpoints | None) -> tuple[httpx.Response, httpx.Response]:
    """The page and its script, at a server whose issuer has these endpoints."""

    async def find() -> SignInEndpoints | None:
        return endpoints

    options = ConsoleOptions("Chat", "#123abc", sign_in=SignIn("the-page", "openid", find))
    app = build_app(Settings(console=False))
    app.router.routes.extend(routes(options))
    async with visiting(app) as client:
        return await client.get("/"), await client.get("/console/app.js")


async def test_only_the_page_of_a_sign_in_may_connect_with_the_issuer() -> None:
    issuer = "https://issuer.example"
    answers = await visit_with_sign_in(SignInEndpoints(f"{issuer}/authorize", f"{issuer}/token"))
    policies = [answer.headers["content-security-policy"] for answer in answers]
    assert [f"connect-src 'self' {issuer};" in policy for policy in policies] == [True, False]
    assert "data-sign-in" in answers[0].text


async def test_without_its_issuer_the_page_is_served_without_sign_in() -> None:
    page, _ = await visit_with_sign_in(None)
    assert page.status_code == 200
    assert "data-sign-in" not in page.text


def test_a_client_id_needs_tokens() -> None:
    with pytest.raises(SettingsError, match="AGUI_CONSOLE_CLIENT_ID needs AGUI_AUTH=jwt"):
        build_app(Settings(console_client_id="the-page"))
