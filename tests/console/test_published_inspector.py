"""An outside opinion: ``agui-inspector``, a page of other people that checks every event, drives this server."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from agui_inspector import Agent, mount_inspector  # type: ignore[import-untyped]
from playwright.async_api import expect

from agui_container import Settings, create_app
from tests.behaviour.server import serving
from tests.console.conftest import POLICY
from tests.console.driver import User
from tests.console.profiles import Profiles

pytestmark = pytest.mark.asyncio(loop_scope="package")

EVENT_STREAM = "text/event-stream"


class Inspector:
    """The page in one browser tab."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.page = page = user.page
        self.conversation = page.get_by_role("region", name="Conversation")
        self.stop = page.get_by_role("button", name="Stop", exact=True)

    async def say(self, text: str) -> None:
        await self.page.get_by_role("textbox", name="Message", exact=True).fill(text)
        await self.page.get_by_role("button", name="Send message").click()

    async def answer(self, payload: str) -> None:
        """Resolve the interrupt that waits."""
        await self.page.get_by_role("textbox", name="Answer for interrupt").fill(payload)
        await self.page.get_by_role("button", name="Resolve interrupt").click()

    async def reads(self, text: str) -> None:
        """Wait until the conversation has this text and no run is open."""
        await expect(self.conversation).to_contain_text(text)
        await expect(self.stop).to_be_disabled()

    async def finds_no_fault(self, *, runs: int) -> None:
        """Wait until there are so many runs, each answered by a stream, and check that no event has a fault."""
        frames = self.page.get_by_role("region", name="Inspection", exact=True)
        await expect(frames.get_by_role("button", name=re.compile(r"^POST .invocations .*\b200 "))).to_have_count(runs)
        await expect(frames.get_by_role("button", name="Issues 0", exact=True)).to_be_visible()


Inspect = Callable[..., Awaitable[Inspector]]


@pytest_asyncio.fixture(loop_scope="package")
async def inspect(profiles: Profiles) -> AsyncIterator[Inspect]:
    """Mount the page into an application, serve it, and open it. An error in the page's console fails the test."""
    async with AsyncExitStack() as stack:

        async def inspect(agent: str | None = None, **settings: str) -> Inspector:
            app = create_app(agent, Settings.model_validate(settings))
            mount_inspector(app, agents=[Agent("agent", "/invocations", capabilities="/capabilities")], enabled=True)
            url = await stack.enter_async_context(serving(app))
            profile = await stack.enter_async_context(profiles.borrow())
            return Inspector(await profile.open(f"{url}/agui-inspector/"))

        yield inspect


async def test_it_finds_no_fault_in_what_the_assistant_does(inspect: Inspect) -> None:
    inspector = await inspect()
    await inspector.say("what time is it")
    await inspector.reads("The result of current_time is")
    await inspector.say("think about rain")
    await inspector.reads("I have thought about rain.")
    await inspector.say("delegate what time is it")
    await inspector.reads("The result of delegate is")
    await inspector.say("fail")
    await inspector.reads("MODEL_ERROR · The model failed.")
    await inspector.finds_no_fault(runs=4)


async def test_it_finds_no_fault_in_state_steps_activities_and_goals(inspect: Inspect) -> None:
    inspector = await inspect("tests.console.scripted:agent")
    await inspector.say("steps")
    await inspector.reads("Found three.")
    for runs, script in enumerate(("state", "goals"), start=2):
        await inspector.say(script)
        await inspector.finds_no_fault(runs=runs)
    await inspector.reads("Found three.")


async def test_it_finds_a_fault_where_there_is_one(inspect: Inspect) -> None:
    inspector = await inspect()
    stream = 'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":7}\n\n'
    await inspector.page.route("**/invocations", lambda route: route.fulfill(body=stream, content_type=EVENT_STREAM))
    await inspector.say("hello")
    await expect(inspector.page.get_by_text("schema.invalid-event")).to_be_visible()
    inspector.user.expect_complaints("ZodError")


async def test_its_answer_to_an_approval_runs_the_tool(inspect: Inspect) -> None:
    inspector = await inspect(tool_policy=POLICY)
    await inspector.say("calculate 6*7")
    await inspector.answer('{"approved": true}')
    await inspector.reads("The result of calculate is 42.")
    await inspector.finds_no_fault(runs=2)


async def test_a_thread_goes_on_after_its_stop(inspect: Inspect) -> None:
    inspector = await inspect()
    await inspector.say("wait 60")
    await expect(inspector.conversation).to_contain_text("Waiting 60 s.")
    await inspector.stop.click()
    await expect(inspector.stop).to_be_disabled()
    await inspector.say("stream 2")
    await inspector.reads("hello world, hello world,")
