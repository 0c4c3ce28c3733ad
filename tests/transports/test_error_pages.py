"""Pages for people at addresses that have none, and the same errors for everything that is no browser."""

import re
from urllib.parse import urljoin

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Mount

from agui_container.main import build_app
from agui_container.settings import Settings
from tests.requirements import requirement

CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
BROWSER = {"accept": CHROME, "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def browser_client(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8080", headers=BROWSER)


def addresses(page: httpx.Response) -> list[str]:
    """Return the URLs of the links of a page."""
    return [urljoin(str(page.request.url), address) for address in re.findall(r'href="([^"]*)"', page.text)]


@requirement("page.unknown")
@pytest.mark.parametrize(
    ("path", "status", "title"),
    [
        ("/nowhere", 404, "There is nothing at this address"),
        ("/console/nothing.js", 404, "There is nothing at this address"),
        ("/runs/nobody", 404, "There is nothing at this address"),
        ("/invocations", 405, "This address is for programs"),
        ("/threads?limit=0", 400, "The server refused this request"),
    ],
)
@pytest.mark.parametrize("error_status", ["http", "stream"])
async def test_a_browser_gets_a_page(path: str, status: int, title: str, error_status: str) -> None:
    async with browser_client(build_app(Settings.model_validate({"error_status": error_status}))) as client:
        page = await client.get(path)
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert f"<h1>{title}</h1>" in page.text
    assert f"GET {path.partition('?')[0]}" in page.text
    assert page.headers["x-request-id"] in page.text
    assert page.headers["cache-control"] == "no-store"


@requirement("page.unknown")
async def test_a_page_names_the_method_that_its_address_takes() -> None:
    async with browser_client(build_app(Settings())) as client:
        assert (await client.get("/invocations")).headers["allow"] == "POST"


@requirement("page.unknown")
@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/event-stream", "text/html, text/event-stream"])
async def test_everybody_else_gets_the_error_as_an_event(accept: str) -> None:
    async with browser_client(build_app(Settings())) as client:
        answer = await client.get("/nowhere", headers={"accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/event-stream; charset=utf-8")
    assert answer.text.startswith('data: {"type":"RUN_ERROR"')


@requirement("page.unknown")
async def test_a_refused_post_is_answered_by_an_event() -> None:
    async with browser_client(build_app(Settings())) as client:
        answer = await client.post("/invocations", content=b"{")
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/event-stream; charset=utf-8")


@requirement("page.safe")
async def test_nothing_of_the_request_becomes_markup() -> None:
    async with browser_client(build_app(Settings())) as client:
        page = await client.get("/<script>alert(1)</script>?<b>")
        refused = await client.get("/threads", params={"limit": "<script>"})
    assert "<script" not in page.text + refused.text
    assert "<b>" not in page.text
    assert page.text.count("script") == 2


@requirement("page.safe")
async def test_a_page_may_run_and_load_nothing() -> None:
    async with browser_client(build_app(Settings())) as client:
        page = await client.get("/nowhere")
    policy = page.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"} <= set(policy)
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "script-src" not in page.headers["content-security-policy"]
    assert (page.headers["x-frame-options"], page.headers["x-content-type-options"]) == ("DENY", "nosniff")


@requirement("page.links")
@pytest.mark.parametrize("path", ["/nowhere", "/no/where", "/no/where/", "/no%2Fwhere"])
@pytest.mark.parametrize("prefix", ["", "/agents/tea"])
async def test_every_link_of_a_page_leads_to_a_page(path: str, prefix: str) -> None:
    app = build_app(Settings())
    outer = FastAPI(routes=[Mount(prefix, app)]) if prefix else app
    async with browser_client(outer) as client:
        found = addresses(await client.get(f"http://localhost:8080{prefix}{path}"))
        assert found == [f"http://localhost:8080{prefix}/{name}" for name in ("", "docs", "capabilities")]
        assert [(await client.get(address)).status_code for address in found] == [200, 200, 200]


@requirement("page.links")
async def test_a_proxy_may_remove_the_prefix() -> None:
    async with browser_client(build_app(Settings())) as client:
        page = await client.get("/no/where")
    assert urljoin("https://agents.example/tea/no/where", re.findall(r'href="([^"]*)"', page.text)[0]) == (
        "https://agents.example/tea/"
    )


@requirement("page.links")
async def test_a_page_offers_no_chat_where_there_is_none() -> None:
    async with browser_client(build_app(Settings(console=False))) as client:
        page = await client.get("/")
    assert page.status_code == 404
    assert addresses(page) == ["http://localhost:8080/docs", "http://localhost:8080/capabilities"]


@requirement("page.unknown", "origin.foreign")
async def test_a_browser_under_a_foreign_name_is_told_which_setting_allows_it() -> None:
    async with browser_client(build_app(Settings())) as client:
        page = await client.get("/", headers={"host": "rebound.example"})
    assert page.status_code == 403
    assert "AGUI_ALLOWED_HOSTS" in page.text
