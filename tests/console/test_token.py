"""The page at a server that asks for tokens."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect

from agui_container import Settings, create_app
from tests.auth.issuer import issuer_process
from tests.behaviour.server import serving
from tests.console.conftest import Visit, over_both
from tests.console.driver import User, curl

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with issuer_process() as address:
        yield address


@pytest_asyncio.fixture(loop_scope="package")
async def guarded(issuer: str) -> AsyncIterator[str]:
    settings = Settings(
        auth="jwt",
        auth_discovery_url=f"{issuer}/.well-known/openid-configuration",
        auth_allowed_audience=("my-agent",),
    )
    async with serving(create_app(None, settings)) as address:
        yield address


@pytest_asyncio.fixture(loop_scope="package")
async def token(issuer: str) -> str:
    """A token that the server accepts."""
    async with httpx.AsyncClient() as http:
        return (await http.get(f"{issuer}/token")).text


async def enter(user: User, token: str) -> None:
    await user.inspect("Server")
    field = user.page.get_by_label("Token")
    await field.fill(token)
    await field.press("Enter")
    await expect(user.page.get_by_text("All capabilities")).to_be_visible()


@over_both
async def test_a_token_is_sent_and_not_kept(guarded: str, token: str, visit: Visit) -> None:
    user = await visit(guarded)
    await enter(user, token)
    await user.say("calculate 6*7")
    await user.reads("42")
    await user.is_done()
    await expect(user.page.get_by_role("navigation").get_by_text("calculate 6*7").first).to_be_visible()
    kept = await user.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert "agui.session" in kept
    assert token not in kept
    async with user.page.expect_response(lambda response: response.url.endswith("/threads")) as listed:
        await user.page.reload()
    assert (await listed.value).status == 401
    user.expect_complaints("401")


@over_both
async def test_a_run_without_a_token_is_refused_at_once(guarded: str, visit: Visit) -> None:
    user = await visit(guarded)
    await user.say("calculate 6*7")
    await expect(user.conversation.get_by_role("alert")).to_contain_text("UNAUTHORIZED")
    threads = user.page.get_by_role("navigation", name="Threads")
    await expect(threads).to_contain_text("A bearer token is required. Enter one in the inspector, under Server.")
    await expect(user.page.get_by_text("Offline")).to_have_count(0)
    user.expect_complaints("401", "WebSocket connection to")


@over_both
async def test_a_run_is_copied_as_curl_with_a_variable_in_place_of_the_token(
    guarded: str, token: str, visit: Visit
) -> None:
    user = await visit(guarded)
    await enter(user, token)
    await user.say("it's 6*7")
    await user.is_done()
    await user.page.get_by_role("tab", name="Events").click()
    command = await user.copies("Copy as curl")
    assert token not in command
    assert (await curl(command, TOKEN=token))[-1] == "RUN_FINISHED"
    user.expect_complaints("401")
