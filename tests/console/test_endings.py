"""Answers that were stopped or have failed: they say so, also when their thread is loaded again."""

import re

import pytest
from playwright.async_api import expect

from agui_container import Settings, create_app
from agui_container.agents.assistant.assistant import Assistant
from agui_container.ports import StopDelta, StopReason, TextDelta
from tests.agents.doubles import ScriptedModel
from tests.behaviour.server import serving
from tests.console.conftest import Visit, over_both

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


async def test_a_failed_answer_can_be_tried_again_after_the_page_was_loaded_again(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("fail")
    alert = user.conversation.get_by_role("alert")
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        await expect(alert).to_contain_text("The model failed.")
        await expect(alert).to_contain_text(re.compile("MODEL_ERROR · request [0-9a-f-]{36}"))
    await user.press("Try again")
    await expect(user.messages.get_by_role("group", name="Versions")).to_have_text("2/2")
    await expect(alert).to_contain_text("MODEL_ERROR")


async def test_an_earlier_failed_answer_names_its_error_and_its_request(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("fail")
    await expect(user.conversation.get_by_role("alert")).to_contain_text("The model failed.")
    await user.say("stream 1")
    await user.is_done()
    for _ in range(2):
        ending = user.conversation.locator(".notice")
        await expect(ending).to_contain_text("The run failed. The model failed.")
        await expect(ending).to_contain_text(re.compile("MODEL_ERROR · request [0-9a-f-]{36}"))
        await user.page.reload()


async def test_a_stopped_answer_says_so_after_the_page_was_loaded_again_and_in_the_middle_of_a_thread(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await user.press("Stop")
    await user.reads("You stopped this answer.")
    await user.page.reload()
    await user.reads("This answer was stopped.")
    await expect(user.page.get_by_role("button", name="Try again")).to_be_visible()
    await user.say("stream 1")
    await user.reads("hello world,")
    await user.is_done()
    for _ in range(2):
        await expect(user.conversation.locator(".notice")).to_have_text(["This answer was stopped."])
        await expect(user.page.get_by_role("button", name="Try again")).to_have_count(0)
        await user.page.reload()


async def test_a_message_whose_run_was_stopped_is_tried_again(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await user.press("Stop")
    await user.is_done()
    await user.press("Try again")
    await user.reads("Waiting 60 s.")
    await expect(user.page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    await user.press("Stop")
    await user.is_done()


async def test_an_answer_that_another_tab_has_stopped_is_not_ascribed_to_the_user(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    other = await user.open_tab(user.page.url)
    await other.reads("Waiting 60 s.")
    await other.press("Stop")
    await other.reads("You stopped this answer.")
    await user.reads("This answer was stopped.")


async def test_an_answer_that_the_model_has_not_completed_says_so_after_the_page_was_loaded_again(visit: Visit) -> None:
    model = ScriptedModel([[TextDelta("Once upon"), StopDelta(StopReason.LENGTH)]])
    async with serving(create_app(Assistant(model, ()), Settings())) as url:
        user = await visit(url)
        await user.say("tell me a story")
        for _ in range(2):
            await user.reads("Once upon")
            await expect(user.conversation.locator(".notice")).to_have_text(["The model stopped early: length."])
            await user.page.reload()
        await user.page.close()
