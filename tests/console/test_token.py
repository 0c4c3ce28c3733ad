"""The page at a server that asks for tokens."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.async_api import expect

from tests.auth.issuer import issuer_process
from tests.console.conftest import Visit
from tests.console.driver import PageServer, User, served

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with issuer_process() as address:
        yield address


@pytest.fixture(scope="module")
def guarded(issuer: str) -> Iterator[PageServer]:
    settings = {
        "AGUI_AUTH": "jwt",
        "AGUI_AUTH_DISCOVERY_URL": f"{issuer}/.well-known/openid-configuration",
        "AGUI_AUTH_ALLOWED_AUDIENCE": "my-agent",
    }
    with served(**settings) as server:
        yield server


async def enter(user: User, token: str) -> None:
    await user.press("Inspector")
    await user.page.get_by_role("tab", name="Server").click()
    field = user.page.get_by_label("Token")
    await field.fill(token)
    await field.press("Enter")
    await expect(user.page.get_by_text("All capabilities")).to_be_visible()


@pytest.mark.parametrize("wire", ["sse", "websocket"])
async def test_a_token_is_sent_and_not_kept(visit: Visit, guarded: PageServer, issuer: str, wire: str) -> None:
    async with httpx.AsyncClient() as http:
        token = (await http.get(f"{issuer}/token")).text
    user = await visit(guarded, wire=wire)
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
    await user.page.close()  # nothing is written to its console afterwards
    assert [complaint for complaint in user.complaints if "401" not in complaint] == []
    user.complaints.clear()
