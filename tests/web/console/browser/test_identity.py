"""The agent and its model, what a new chat suggests, and sign-in."""

import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio
from ag_ui.core import AgentCapabilities, IdentityCapabilities, RunAgentInput
from playwright.async_api import expect

from agui_container import Settings, create_app
from tests.auth.issuer import issuer_process
from tests.behaviour.server import serving
from tests.engine.doubles import WAIT
from tests.web.console.browser.conftest import Visit, over_both
from tests.web.console.driver import User, curl, serve_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]


class Guide:
    """An agent of somebody's own, with a name, a description and suggestions."""

    def capabilities(self) -> AgentCapabilities:
        return AgentCapabilities(
            identity=IdentityCapabilities(name="Guide", description="Knows every tram."),
            custom={"suggestions": ["Plan a day", "Find a café"]},
        )

    async def run(self, _input: RunAgentInput) -> AsyncIterator[str]:
        yield "Go by tram."


async def suggestions_are(user: User, *texts: str) -> None:
    await expect(user.page.get_by_label("Suggestions").get_by_role("button")).to_have_text([*texts])


async def test_an_agent_has_its_own_name_description_and_suggestions_unless_a_setting_replaces_them(
    visit: Visit,
) -> None:
    async with serving(create_app(Guide(), Settings())) as url:
        user = await visit(url)
        await expect(user.page.locator(".answerer")).to_have_text("Guide")
        await expect(user.page.locator(".empty")).to_contain_text("Knows every tram.")
        await suggestions_are(user, "Plan a day", "Find a café")
        await user.press("Plan a day")
        await user.reads("Go by tram.")
        await user.page.close()
    settings = Settings.model_validate({"console_suggestions": '["What is new?"]'})
    async with serving(create_app(Guide(), settings)) as url:
        user = await visit(url)
        await suggestions_are(user, "What is new?")
        await user.page.close()


CUT = """() => [...document.querySelectorAll(".thread-title, .answerer-name, .answerer select")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.clientWidth < 40)
    .map((each) => `${each.outerHTML.slice(0, 80)} ${each.scrollWidth}>${each.clientWidth}`)
"""
"""Names in the top bar that are cut or hidden."""

IS_ONE_LINE = "(element) => element.offsetHeight < 2 * parseFloat(getComputedStyle(element).fontSize)"


async def test_an_agent_and_a_model_are_chosen_and_their_names_are_shown_at_every_width(visit: Visit) -> None:
    choice = {
        "AGUI_AGENT": "helper",
        "AGUI_AGENTS": "helper=assistant,guide=tests.web.console.scripted:agent",
        "AGUI_MODELS": "spare=offline",
    }
    with serve_page(AGUI_CONTEXT_TOKENS="4000", **choice) as server:
        user = await visit(server.url)
        agent, model = user.page.get_by_label("Agent"), user.page.get_by_label("Model")
        await model.select_option("spare")
        async with user.page.expect_request(lambda request: '"runId"' in (request.post_data or "")) as sent:
            await user.finishes("what time is it")
        assert json.loads((await sent.value).post_data or "{}")["forwardedProps"] == {"model": "spare"}
        meter = user.page.locator(".context-meter")
        await expect(meter).to_contain_text("Context")
        assert await meter.evaluate(IS_ONE_LINE)
        for width in (390, 820, 1000, 1280):
            await user.page.set_viewport_size({"width": width, "height": 844})
            await expect(user.page.get_by_role("heading", name="what time is it")).to_be_visible()
            await expect(agent).to_be_visible()
            await expect(model).to_be_visible()
            assert await user.page.evaluate(CUT) == []
        await user.page.reload()
        await expect(model).to_have_value("spare")
        await agent.select_option("guide")
        await user.press("New chat")
        await expect(user.page.get_by_label("Suggestions")).to_have_count(0)
        await user.page.reload()
        await expect(agent).to_have_value("guide")
        await user.say("ask")
        form = user.page.get_by_role("form", name="Where to?")
        await form.get_by_label("City").fill("Lisbon")
        await form.get_by_label("Speed").select_option("fast")
        await form.get_by_role("group", name="Address").get_by_label("Street").fill("Rua A")
        await agent.select_option("")
        await form.get_by_role("button", name="Send").click()
        await user.reads("You answered:")  # by the agent that has asked
        await user.say("stream 1")
        await user.reads("hello world,")
        await user.page.close()


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with issuer_process() as address:
        yield address


def guarded_by(issuer: str) -> Settings:
    return Settings(
        auth="jwt",
        auth_discovery_url=f"{issuer}/.well-known/openid-configuration",
        auth_allowed_clients=("the-page",),
        console_client_id="the-page",
    )


@pytest_asyncio.fixture(loop_scope="package")
async def guarded(issuer: str) -> AsyncIterator[str]:
    async with serving(create_app(None, guarded_by(issuer))) as address, httpx.AsyncClient(base_url=address) as http:
        while "data-sign-in" not in (await http.get("/")).text:
            pass  # the server asks its issuer until it has an answer
        yield f"{address}/"


async def is_signed_in(user: User) -> None:
    await expect(user.page.get_by_role("button", name="Sign in")).to_have_count(0)
    await expect(user.page.get_by_role("button", name="New chat")).to_be_visible()


KEPT = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"


@over_both
async def test_a_user_signs_in_comes_back_to_the_thread_and_signs_out(guarded: str, visit: Visit) -> None:
    user = await visit(guarded)
    user.expect_complaints("401")
    await user.conversation.get_by_role("button", name="Sign in").click()
    await is_signed_in(user)
    assert user.page.url == guarded
    await user.finishes("calculate 6*7")
    await user.reads("42")
    kept = await user.page.evaluate(KEPT)
    assert "eyJ" not in kept
    assert "agui.sign-in" not in kept
    await user.page.reload()
    await user.threads.get_by_role("button", name="Sign in").click()
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


@over_both
async def test_a_token_is_asked_for_sent_and_not_kept(issuer: str, visit: Visit) -> None:
    settings = Settings(
        auth="jwt",
        auth_discovery_url=f"{issuer}/.well-known/openid-configuration",
        auth_allowed_audience=("my-agent",),
    )
    async with httpx.AsyncClient(timeout=WAIT) as http:
        token = (await http.get(f"{issuer}/token")).text
    async with serving(create_app(None, settings)) as address:
        user = await visit(address)
        user.expect_complaints("401", "WebSocket connection to")
        await user.say("calculate 6*7")
        await expect(user.conversation.get_by_role("alert")).to_contain_text("UNAUTHORIZED")
        hint = "A bearer token is required. Enter one in the inspector, under Server."
        await expect(user.threads).to_contain_text(hint)
        await expect(user.page.get_by_text("Offline")).to_have_count(0)
        await user.inspect("Server")
        await user.page.get_by_label("Token").fill(token)
        await user.page.get_by_label("Token").press("Enter")
        await expect(user.page.get_by_text("All capabilities")).to_be_visible()
        await user.press("New chat")
        await user.finishes("it's calculate 6*7")
        await expect(user.items).to_have_count(1)
        kept = await user.page.evaluate(KEPT)
        assert "agui.session" in kept
        assert token not in kept
        await user.page.get_by_role("tab", name="Events").click()
        command = await user.copies("Copy as curl")
        assert token not in command
        assert (await curl(command, TOKEN=token))[-1] == "RUN_FINISHED"
        await user.page.reload()
        await expect(user.threads).to_contain_text(hint)
        await user.page.close()
