"""Delivery of the chat page: headers, caches, path prefixes, and settings that turn it off."""

import base64
import gzip
import json
import re
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Mount

from agui_container.main import build_app
from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import load_settings
from agui_container.transports.console.assets import STATIC


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


async def test_a_diagram_is_drawn_in_a_sandbox_with_one_script_and_only_in_a_frame_of_this_server(
    client: httpx.AsyncClient,
) -> None:
    diagram = await client.get("/console/diagram.html")
    script = diagram.content.partition(b"<script>")[2].rpartition(b"</script>")[0]
    source = f"script-src 'sha256-{base64.b64encode(sha256(script).digest()).decode()}'"
    policy = set(diagram.headers["content-security-policy"].split("; "))
    assert {"sandbox allow-scripts", "default-src 'none'", source, "frame-ancestors 'self'"} <= policy
    assert diagram.headers["x-frame-options"] == "SAMEORIGIN"
    assert diagram.headers["content-encoding"] == "gzip"
    page = await client.get("/")
    assert "frame-src 'self'" in page.headers["content-security-policy"].split("; ")


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


async def test_the_page_works_behind_a_path_prefix() -> None:
    outer = FastAPI(routes=[Mount("/agents/tea", build_app(Settings()))])
    async with visiting(outer) as client:
        page = await client.get("/agents/tea/")
        assert page.status_code == 200
        for address in re.findall(r'(?:src|href)="([^"]*)"', page.text):
            assert (await client.get(f"/agents/tea/{address}")).status_code == 200


async def test_there_is_no_page_where_it_is_turned_off() -> None:
    async with visiting(build_app(Settings(console=False))) as client:
        assert (await client.get("/")).status_code == 404
        assert (await client.get("/console/app.js")).status_code == 404
        assert (await client.get("/ping")).status_code in {200, 503}


async def test_title_and_accent_are_data_and_never_markup() -> None:
    settings = Settings(console_title='"><script>alert(1)</script>', console_accent="#123abc")
    async with visiting(build_app(settings)) as client:
        page = (await client.get("/")).text
        assert "<script>alert" not in page
        assert 'data-accent="#123abc"' in page


@pytest.mark.parametrize("accent", ["red", "#12345", "#12345g", "#123456;color:red"])
def test_an_accent_is_a_colour_in_hexadecimal(monkeypatch: pytest.MonkeyPatch, accent: str) -> None:
    monkeypatch.setenv("AGUI_CONSOLE_ACCENT", accent)
    with pytest.raises(SettingsError, match="AGUI_CONSOLE_ACCENT"):
        load_settings()


@pytest.mark.parametrize(("value", "is_on"), [("on", True), ("off", False), ("false", False), ("1", True)])
def test_the_page_is_turned_off_by_a_setting(monkeypatch: pytest.MonkeyPatch, value: str, *, is_on: bool) -> None:
    monkeypatch.setenv("AGUI_CONSOLE", value)
    assert load_settings().console is is_on


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
