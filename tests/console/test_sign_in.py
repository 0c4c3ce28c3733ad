"""Signing in on the page: authorization code with PKCE at the issuer of the server's tokens."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect

from agui_container import Settings, SettingsError, create_app
from tests.auth.issuer import issuer_process
from tests.behaviour.server import serving
from tests.console.conftest import Visit, over_both
from tests.console.driver import User

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with issuer_process() as address:
        yield address


def guarded_by(issuer: str, **settings: str) -> Settings:
    return Settings(
        auth="jwt",
        auth_discovery_url=f"{issuer}/.well-known/openid-configuration",
        auth_allowed_clients=("the-page",),
        console_client_id="the-page",
        **settings,
    )


@pytest_asyncio.fixture(loop_scope="package")
async def guarded(issuer: str) -> AsyncIterator[str]:
    async with serving(create_app(None, guarded_by(issuer))) as address:
        yield f"{address}/"


async def sign_in(user: User) -> None:
    await user.conversation.get_by_role("button", name="Sign in").click()
    await expect(user.page.get_by_role("button", name="Sign in")).to_have_count(0)
    await expect(user.page.get_by_text("Your chats will be here.")).to_be_visible()


@over_both
async def test_a_user_signs_in_and_the_token_is_kept_in_memory_only(guarded: str, visit: Visit) -> None:
    user = await visit(guarded)
    user.expect_complaints("401")
    await sign_in(user)
    assert user.page.url == guarded
    await user.say("calculate 6*7")
    await user.reads("42")
    await user.is_done()
    kept = await user.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert "eyJ" not in kept
    assert "agui.sign-in" not in kept
    await user.page.reload()
    await expect(user.page.get_by_role("navigation").get_by_role("button", name="Sign in")).to_be_visible()


@over_both
async def test_signing_in_comes_back_to_the_thread_that_was_shown(guarded: str, visit: Visit) -> None:
    user = await visit(guarded)
    user.expect_complaints("401")
    await sign_in(user)
    await user.say("calculate 6*7")
    await user.is_done()
    await user.page.reload()
    await user.page.get_by_role("navigation").get_by_role("button", name="Sign in").click()
    await user.reads("42")
    await user.inspect("Server")
    await user.press("Sign out")
    await expect(user.page.get_by_role("button", name="Sign in").first).to_be_visible()


async def test_an_answer_that_the_page_did_not_ask_for_gets_no_token(guarded: str, visit: Visit) -> None:
    user = await visit(guarded)
    user.expect_complaints("401")
    await user.page.evaluate("""sessionStorage["agui.sign-in"] = '{"state": "mine", "verifier": "v", "hash": ""}'""")
    await user.page.goto(f"{guarded}?code=stolen&state=another")
    await expect(user.page.get_by_text("The sign-in did not come from this page.").first).to_be_visible()
    assert user.page.url == guarded


async def test_only_the_page_of_a_sign_in_may_connect_with_the_issuer(guarded: str, issuer: str) -> None:
    async with httpx.AsyncClient() as http:
        policies = [
            (await http.get(guarded + path)).headers["content-security-policy"] for path in ("", "console/app.js")
        ]
    assert [f"connect-src 'self' {issuer};" in policy for policy in policies] == [True, False]


async def test_without_its_issuer_the_page_is_served_without_the_button(visit: Visit) -> None:
    async with serving(create_app(None, guarded_by("http://localhost:1"))) as address:
        user = await visit(f"{address}/")
        user.expect_complaints("401")
        await expect(user.page.get_by_role("button", name="Sign in")).to_have_count(0)
        await user.page.close()


async def test_a_client_id_needs_tokens() -> None:
    with pytest.raises(SettingsError, match="AGUI_CONSOLE_CLIENT_ID needs AGUI_AUTH=jwt"):
        create_app(None, Settings(console_client_id="the-page"))
