"""Suggestions of a new chat: those of the agent, and the offline model's commands only where that model answers."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import AgentCapabilities, RunAgentInput
from playwright.async_api import expect

from agui_container import Settings, create_app
from tests.behaviour.server import serving
from tests.console.conftest import Visit, over_both
from tests.console.driver import User

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


class SuggestionGuide:
    """An agent of somebody's own, with suggestions of its own."""

    def __init__(self, *suggestions: str) -> None:
        self._suggestions = suggestions

    def capabilities(self) -> AgentCapabilities:
        return AgentCapabilities(custom={"suggestions": list(self._suggestions)} if self._suggestions else {})

    async def run(self, _input: RunAgentInput) -> AsyncIterator[str]:
        yield "Go by tram."


async def suggestions_are(user: User, *texts: str) -> None:
    await expect(user.page.get_by_label("Suggestions").get_by_role("button")).to_have_text([*texts])


async def test_an_agent_suggests_messages(visit: Visit) -> None:
    async with serving(create_app(SuggestionGuide("Plan a day", "Find a café"), Settings())) as url:
        user = await visit(url)
        await suggestions_are(user, "Plan a day", "Find a café")
        await user.press("Plan a day")
        await user.reads("Go by tram.")
        await user.page.close()


async def test_a_setting_replaces_the_suggestions_of_the_agent(visit: Visit) -> None:
    settings = Settings.model_validate({"console_suggestions": '["What is new?"]'})
    async with serving(create_app(SuggestionGuide("Plan a day"), settings)) as url:
        user = await visit(url)
        await suggestions_are(user, "What is new?")
        await user.page.close()


async def test_an_agent_without_suggestions_is_not_offered_the_commands_of_the_offline_model(visit: Visit) -> None:
    async with serving(create_app(SuggestionGuide(), Settings())) as url:
        user = await visit(url)
        await expect(user.page.get_by_text("Ask something to begin.")).to_be_visible()
        await expect(user.page.get_by_label("Suggestions")).to_have_count(0)
        await user.page.close()


async def test_nothing_is_suggested_before_the_server_has_said_what_answers(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.page.route("**/capabilities", lambda route: route.fulfill(status=401, body="data: {}"))
    await user.page.reload()
    await expect(user.page.get_by_text("Ask something to begin.")).to_be_visible()
    await expect(user.page.get_by_label("Suggestions")).to_have_count(0)
    user.expect_complaints("Failed to load resource")
