"""The agent and its model in the top bar."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import AgentCapabilities, IdentityCapabilities, RunAgentInput
from playwright.async_api import expect

from agui_container import Settings, create_app
from tests.behaviour.server import serving
from tests.console.conftest import Visit, over_both
from tests.console.driver import serve_page

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


class Guide:
    """An agent with a name and a description."""

    def capabilities(self) -> AgentCapabilities:
        return AgentCapabilities(identity=IdentityCapabilities(name="Guide", description="Knows every tram."))

    async def run(self, _input: RunAgentInput) -> AsyncIterator[str]:
        yield "Go by tram."


async def test_the_offline_model_is_named_as_what_it_is(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await expect(user.page.locator(".answerer")).to_have_text("assistantoffline model")


async def test_an_agent_is_named_as_the_setting_names_it(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await expect(user.page.locator(".answerer")).to_have_text("tests.console.scripted:agent")


async def test_an_agent_has_its_own_name_and_description(visit: Visit) -> None:
    async with serving(create_app(Guide(), Settings())) as url:
        user = await visit(url)
        await expect(user.page.locator(".answerer")).to_have_text("Guide")
        await expect(user.page.locator(".empty")).to_contain_text("Knows every tram.")
        await user.page.close()


async def test_a_model_is_chosen(visit: Visit) -> None:
    with serve_page(AGUI_MODELS="spare=offline") as server:
        user = await visit(server.url)
        await user.page.emulate_media(color_scheme="dark")
        await expect(user.page.get_by_label("Model")).to_have_css("background-color", "rgb(30, 30, 33)")
        await expect(user.page.get_by_label("Model")).to_have_css("color", "rgb(235, 235, 238)")
        await user.inspect("Events")
        await user.page.get_by_label("Model").select_option("spare")
        await user.say("stream 1")
        await user.reads("hello world,")
        await user.page.get_by_label("Filter events").fill("RUN_INPUT")
        await user.page.get_by_role("list", name="Events").get_by_role("button").first.click()
        await expect(user.page.get_by_role("group", name="Frame")).to_contain_text('"model": "spare"')
        await user.page.reload()
        await expect(user.page.get_by_label("Model")).to_have_value("spare")
        await user.page.close()


async def test_an_agent_is_chosen_and_gets_the_answers_to_its_questions(visit: Visit) -> None:
    agents = "helper=assistant,guide=tests.console.scripted:agent"
    with serve_page(AGUI_AGENT="helper", AGUI_AGENTS=agents) as server:
        user = await visit(server.url)
        choice = user.page.get_by_label("Agent")
        await expect(user.page.locator(".answerer")).to_contain_text("offline model")
        await choice.select_option("guide")
        await expect(user.page.get_by_label("Suggestions")).to_have_count(0)
        await user.say("hello")
        await user.reads("Hello.")
        await user.page.reload()
        await expect(choice).to_have_value("guide")
        await user.say("ask")
        form = user.page.get_by_role("form", name="Where to?")
        await form.get_by_label("City").fill("Lisbon")
        await form.get_by_label("Speed").select_option("fast")
        await form.get_by_role("group", name="Address").get_by_label("Street").fill("Rua A")
        await choice.select_option("")
        await form.get_by_role("button", name="Send").click()
        await user.reads("You answered:")
        await user.say("stream 1")
        await user.reads("hello world,")
        await user.page.close()
