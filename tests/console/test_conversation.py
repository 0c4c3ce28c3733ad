"""Actions of a user in a conversation, over SSE and over WebSocket."""

import asyncio
import re
from collections.abc import AsyncIterator
from itertools import accumulate
from pathlib import Path

import pytest
from ag_ui.core import (
    BaseEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunAgentInput,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from playwright.async_api import FilePayload, expect

from agui_container import Settings, create_app
from tests.behaviour.server import serving
from tests.console.conftest import Visit, over_both
from tests.console.driver import WAIT_MS

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


async def test_text_streams_as_markdown_with_tables_code_and_formulas(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("markdown")
    await user.is_done()
    answer = user.conversation
    await expect(answer.locator("strong")).to_have_text("bold")
    await expect(answer.get_by_role("cell", name="27")).to_have_attribute("align", "right")
    await expect(answer.locator("code .hljs-keyword").first).to_have_text("def")
    await expect(answer.locator("math")).to_have_count(2)
    await expect(answer.get_by_role("link", name="link")).to_have_attribute("rel", "noopener noreferrer")


async def test_code_is_copied(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("markdown")
    await user.is_done()
    assert await user.copies("Copy code") == "def double(number: int) -> int:\n    return 2 * number  # twice"


async def test_an_answer_with_unicode_line_separators_is_whole(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("think about a\u2028b\u2029c")
    await user.reads("I have thought about")
    await user.is_done()
    # The browser shows a separator as it likes, so only the letters are compared.
    text = await user.answer()
    assert "".join(text.split()) == "Ihavethoughtaboutabc."


async def test_reasoning_folds_away_when_the_answer_is_there(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("think about rain")
    await user.reads("I have thought about rain.")
    thoughts = user.page.get_by_text("I am asked to think about rain.")
    await expect(thoughts).to_be_hidden()
    await user.page.get_by_text(re.compile("^Thought")).click()
    await expect(thoughts).to_be_visible()


async def test_a_tool_call_shows_its_arguments_result_and_time(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("what time is it in Europe/Berlin")
    await user.is_done()
    call = user.call("current_time")
    await expect(call).to_contain_text("Europe/Berlin")
    await expect(call.locator(".call-phase")).to_contain_text("ms")
    await call.get_by_role("button").click()
    await expect(call.get_by_role("group", name="Result")).to_contain_text("+01:00")


async def test_arguments_of_a_call_are_shown_while_they_stream(visit: Visit) -> None:
    chunks = ['{"city":', '"Lisbon",', '"gift":true}']
    is_shown = asyncio.Semaphore(0)

    async def agent(_input: RunAgentInput) -> AsyncIterator[BaseEvent]:
        yield ToolCallStartEvent(tool_call_id="c", tool_call_name="send")
        for chunk in chunks:
            yield ToolCallArgsEvent(tool_call_id="c", delta=chunk)
            await asyncio.wait_for(is_shown.acquire(), WAIT_MS / 1000)
        yield ToolCallEndEvent(tool_call_id="c")
        yield ToolCallResultEvent(message_id="m", tool_call_id="c", content="sent")

    async with serving(create_app(agent, Settings())) as url:
        user = await visit(url)
        await user.say("send it")
        call = user.call("send")
        for text in accumulate(chunks):
            await expect(call.locator(".call-arguments")).to_have_text(text)
            await expect(call.locator(".call-phase")).to_have_text("Writing arguments")
            is_shown.release()
        await user.is_done()
        await expect(call.locator(".call-phase")).to_contain_text("ms")
        await user.page.close()


async def test_reasoning_and_calls_show_how_long_they_take(visit: Visit) -> None:
    is_shown = asyncio.Semaphore(0)

    async def agent(_input: RunAgentInput) -> AsyncIterator[BaseEvent]:
        yield ReasoningMessageStartEvent(message_id="r", role="reasoning")
        yield ReasoningMessageContentEvent(message_id="r", delta="I think.")
        await asyncio.wait_for(is_shown.acquire(), WAIT_MS / 1000)
        yield ReasoningMessageEndEvent(message_id="r")
        yield ToolCallStartEvent(tool_call_id="c", tool_call_name="send")
        yield ToolCallEndEvent(tool_call_id="c")
        await asyncio.wait_for(is_shown.acquire(), WAIT_MS / 1000)
        yield ToolCallResultEvent(message_id="m", tool_call_id="c", content="sent")

    async with serving(create_app(agent, Settings())) as url:
        user = await visit(url)
        await user.page.evaluate("Date.now = () => 1000")
        await user.say("send it")
        await user.reads("Thinking…")
        await user.page.evaluate("Date.now = () => 3300")
        is_shown.release()
        await user.reads("Thought for 2.3 s")
        call = user.call("send").locator(".call-phase")
        await expect(call).to_have_text("Running")
        await user.page.evaluate("Date.now = () => 8300")
        await expect(call).to_have_text("Running5 s")
        await user.page.evaluate("Date.now = () => 10_400")
        await expect(call).to_have_text("Running7 s")
        is_shown.release()
        await user.is_done()
        await expect(call).to_have_text("7.1 s")
        await user.page.close()


async def test_actions_of_former_messages_are_shown_where_the_pointer_is(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    for message in ("stream 1", "stream 2"):
        await user.say(message)
        await user.is_done()
    question, answer = user.messages.first.locator(".actions"), user.conversation.locator(".answer-foot .actions")
    await expect(answer.last).to_have_css("opacity", "1")
    for actions, place in (
        (question, user.messages.first),
        (answer.first, user.conversation.locator(".markdown").first),
    ):
        await user.composer.hover()
        await expect(actions).to_have_css("opacity", "0")
        await place.hover()
        await expect(actions).to_have_css("opacity", "1")


async def test_a_failed_call_says_why(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say('call current_time {"timezone": "Mars/Base"}')
    await user.is_done()
    await expect(user.call("current_time")).to_contain_text("Failed")
    await expect(user.call("current_time").locator(".call-error")).to_contain_text("Mars/Base")


async def test_a_subagent_has_a_lane_of_its_own_inside_the_call(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("delegate delegate what time is it")
    await user.is_done()
    lane = user.call("delegate").first.get_by_label("Subagent delegate")
    await expect(user.conversation.get_by_label("Subagent delegate")).to_have_count(2)
    await expect(lane.last.locator("[data-call='current_time']")).to_have_count(1)


async def test_steps_and_activities_are_shown(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("steps")
    await user.is_done()
    await expect(user.page.get_by_label("Steps").get_by_role("listitem")).to_have_text(["search", "write"])
    activity = user.conversation.locator("[data-activity='WEB_SEARCH']")
    await expect(activity).to_contain_text("75 %")
    await expect(activity.get_by_role("progressbar")).to_have_attribute("value", "0.75")


async def test_stop_ends_the_run_at_the_server(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await user.press("Stop")
    await user.reads("You stopped this answer.")
    await user.say("stream 2")
    await user.reads("hello world, hello world,")


async def test_a_failure_can_be_tried_again(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("fail")
    await expect(user.page.get_by_role("alert")).to_contain_text("MODEL_ERROR")
    await user.press("Try again")
    await expect(user.page.get_by_role("alert")).to_contain_text("MODEL_ERROR")
    await expect(user.messages).to_have_count(1)


async def test_an_editor_that_is_open_waits_for_the_end_of_a_run(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("hi")
    await user.is_done()
    await user.press("Edit and send again")
    editor = user.page.get_by_label("Edit your message")
    await user.say("wait 30")
    send = user.page.locator(".user-editor").get_by_role("button", name="Send")
    await expect(send).to_be_disabled()
    await editor.press("Enter")
    await expect(user.messages).to_have_count(1)
    await user.press("Stop")
    await expect(send).to_be_enabled()


async def test_pictures_and_files_are_attached_by_paste_and_drop(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.composer.evaluate(
        """(area) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array([137, 80, 78, 71])], 'dot.png', {type: 'image/png'}));
            area.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true}));
        }"""
    )
    await user.page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(['hello'], 'note.txt', {type: 'text/plain'}));
            document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
        }"""
    )
    attached = user.page.get_by_label("Attachments", exact=True).get_by_role("listitem")
    await expect(attached).to_have_count(2)
    await user.press("Send")
    await user.reads("I see image, document.")
    await expect(user.conversation.locator(".part-file")).to_have_text("note.txt")
    async with user.page.expect_download() as download:
        await user.press("note.txt")
    assert (await download.value).suggested_filename == "note.txt"
    await user.press("Open dot.png")
    await expect(user.page.get_by_role("dialog", name="dot.png")).to_be_visible()
    await user.page.keyboard.press("Escape")
    await expect(user.page.get_by_role("dialog")).to_have_count(0)


async def test_files_that_are_too_large_say_so_each_and_the_thread_goes_on(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    files = [
        FilePayload(name=f"{name}.bin", mimeType="application/octet-stream", buffer=b"x" * size)
        for name, size in (("first", 4_900_000), ("second", 4_900_000), ("third", 5_100_000))
    ]
    async with user.page.expect_file_chooser() as chooser:
        await user.press("Attach files")
    await (await chooser.value).set_files(files)
    await expect(user.page.get_by_label("Attachments", exact=True).get_by_role("listitem")).to_have_text("first.bin")
    refused = user.page.get_by_label("Files that are not attached").get_by_role("listitem")
    await expect(refused.first).to_contain_text("second.bin is not attached. Too large together with the other files")
    await expect(refused.last).to_contain_text("third.bin is not attached. Too large: it has 5.1 MB")
    await user.press("Send")
    await user.reads("I see document.")
    await user.say("hello")
    await user.reads("Hello.")


async def test_files_of_earlier_messages_are_not_sent_again(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    for number in (1, 2):
        file = FilePayload(name=f"{number}.bin", mimeType="application/octet-stream", buffer=b"x" * 4_900_000)
        async with user.page.expect_file_chooser() as chooser:
            await user.press("Attach files")
        await (await chooser.value).set_files(file)
        await user.press("Send")
        await expect(user.conversation.locator(".markdown")).to_have_text(["I see document."] * number)
        await user.is_done()
    await user.say("hello")
    await user.reads("Hello.")


async def test_files_are_chosen_removed_and_refused_if_they_are_empty(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    dot = FilePayload(name="dot.png", mimeType="image/png", buffer=b"\x89PNG")
    note = FilePayload(name="note.txt", mimeType="text/plain", buffer=b"hello")
    empty = FilePayload(name="empty.txt", mimeType="text/plain", buffer=b"")
    async with user.page.expect_file_chooser() as chooser:
        await user.press("Attach files")
    await (await chooser.value).set_files([dot, note, empty])
    attached = user.page.get_by_label("Attachments", exact=True).get_by_role("listitem")
    await expect(attached).to_have_text(["dot.png", "note.txt"])
    await expect(user.page.get_by_role("alert")).to_have_text("empty.txt is not attached. It is empty.")
    await user.press("Remove dot.png")
    await user.press("Send")
    await user.reads("I see document.")
    await expect(user.page.get_by_role("alert")).to_have_count(0)
    await expect(user.conversation.locator(".part-file")).to_have_text("note.txt")


async def test_a_folder_that_is_dropped_is_refused_and_the_files_beside_it_are_attached(
    visit: Visit, scripted: str, tmp_path: Path
) -> None:
    user = await visit(scripted)
    (tmp_path / "folder").mkdir()
    (tmp_path / "note.txt").write_text("hello")
    devtools = await user.page.context.new_cdp_session(user.page)
    data = {"items": [], "files": [str(tmp_path / name) for name in ("folder", "note.txt")], "dragOperationsMask": 1}
    for step in ("dragEnter", "dragOver", "drop"):
        await devtools.send("Input.dispatchDragEvent", {"type": step, "x": 600, "y": 300, "data": data})
    await expect(user.page.get_by_label("Attachments", exact=True).get_by_role("listitem")).to_have_text(["note.txt"])
    await expect(user.page.get_by_role("alert")).to_contain_text("folder is not attached.")


async def test_notices_are_shown_at_their_place_also_after_the_page_was_loaded_again(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    await user.say("notices")
    await user.is_done()
    await user.say("hello")
    await user.reads("Hello.")
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        notices = user.conversation.locator(".turn").first.locator(".notice")
        await expect(notices).to_have_text(
            [
                "The model was not given the image: only inline data is used, nothing is fetched.",
                "Tools of weather are unavailable: The server does not answer.",
                "Earlier messages were left out to fit the context window: 9000 tokens became 4000.",
                "The model stopped early: length.",
            ]
        )
        await expect(user.conversation.locator(".notice")).to_have_count(4)


async def test_something_moves_while_a_text_that_is_open_pauses(visit: Visit) -> None:
    is_seen = asyncio.Event()

    async def agent(_input: RunAgentInput) -> AsyncIterator[str]:
        yield "Let me see."
        await asyncio.wait_for(is_seen.wait(), WAIT_MS / 1000)
        yield " I see."

    async with serving(create_app(agent, Settings())) as url:
        user = await visit(url)
        await user.say("look")
        await user.reads("Let me see.")
        await expect(user.page.locator(".working")).to_be_visible()
        is_seen.set()
        await user.is_done()
        await expect(user.page.locator(".working")).to_have_count(0)
        await user.page.close()
