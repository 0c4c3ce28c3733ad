"""A conversation: text, reasoning, calls, subagents, steps, notices, attachments, messages that wait."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import FilePayload, Route, expect

from tests.web.console.browser.conftest import Visit, over_both
from tests.web.console.driver import User, command_of, serve_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]


@pytest.fixture(scope="module")
def unset() -> Iterator[str]:
    """The server of `make run`, on another port."""
    with serve_page() as server:
        yield server.url


@over_both
async def test_a_newcomer_gets_to_a_tool_an_approval_and_a_fork_by_clicks(visit: Visit, unset: str) -> None:
    user = await visit(unset, color_scheme="light")
    await expect(user.page.get_by_label("Suggestions").get_by_role("button")).to_have_count(6)
    await user.page.get_by_role("button", name="Call a tool").click()
    await user.reads("The result of calculate is 14.")
    await user.is_done()
    tool_thread = user.page.url
    await user.press("New chat")
    await user.page.get_by_role("button", name="Approve a change").click()
    await user.press("Allow")
    await user.reads("The result of set_theme is The theme is dark now.")
    await expect(user.page.locator("body")).to_have_css("background-color", "rgb(22, 22, 24)")
    await user.threads.get_by_role("button", name="calculate 2*(3+4)", exact=True).click()
    await user.reads("The result of calculate is 14.")
    await user.press("Fork from here")
    await expect(user.page).not_to_have_url(tool_thread)
    await expect(user.items).to_have_count(3)
    await user.press("Ask again")
    await user.is_done()
    await user.reads("The result of calculate is 14.")


async def test_text_is_markdown_with_tables_code_and_formulas(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.finishes("markdown")
    answer = user.conversation
    await expect(answer.locator("strong")).to_have_text("bold")
    await expect(answer.get_by_role("cell", name="27")).to_have_attribute("align", "right")
    await expect(answer.locator("code .hljs-keyword").first).to_have_text("def")
    await expect(answer.locator("math")).to_have_count(2)
    await expect(answer.get_by_role("link", name="link")).to_have_attribute("rel", "noopener noreferrer")
    assert await user.copies("Copy code") == "def double(number: int) -> int:\n    return 2 * number  # twice"


async def test_calls_show_arguments_results_times_and_failures_and_subagents_are_inside(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.finishes("what time is it in Europe/Berlin")
    call = user.call("current_time")
    await expect(call).to_contain_text("Europe/Berlin")
    await expect(call.locator(".call-phase")).to_contain_text("ms")
    await call.get_by_role("button").click()
    await expect(call.get_by_role("group", name="Result")).to_contain_text("+01:00")
    await user.finishes('call current_time {"timezone": "Mars/Base"}')
    await expect(call).to_contain_text("Failed")
    await expect(call.locator(".call-error")).to_contain_text("Mars/Base")
    await user.finishes("delegate delegate what time is it")
    lane = user.call("delegate").first.get_by_label("Subagent delegate")
    await expect(user.conversation.get_by_label("Subagent delegate")).to_have_count(2)
    await expect(lane.last.locator("[data-call='current_time']")).to_have_count(1)
    await user.inspect("Trace")
    trace = user.page.get_by_role("list", name="Trace")
    for name in ("tool delegate", "subagent delegate", "tool current_time"):
        await expect(trace.get_by_text(name, exact=True).first).to_be_visible()


async def attach(user: User, *files: FilePayload) -> None:
    async with user.page.expect_file_chooser() as chooser:
        await user.press("Attach files")
    await (await chooser.value).set_files(files)


def binary(name: str, size: int) -> FilePayload:
    return FilePayload(name=name, mimeType="application/octet-stream", buffer=b"x" * size)


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""

PASTE_AND_DROP = """(area) => {
    const pasted = new DataTransfer();
    const picture = [new Uint8Array([137, 80, 78, 71]), new Uint8Array(70_000)];  // is uploaded
    pasted.items.add(new File(picture, 'dot.png', {type: 'image/png'}));
    area.dispatchEvent(new ClipboardEvent('paste', {clipboardData: pasted, bubbles: true}));
    const dropped = new DataTransfer();
    dropped.items.add(new File(['hello'], 'note.txt', {type: 'text/plain'}));
    document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: dropped, bubbles: true, cancelable: true}));
}"""


async def test_pictures_and_files_are_pasted_dropped_shown_and_saved(
    visit: Visit, scripted: str, tmp_path: Path
) -> None:
    user = await visit(scripted)
    attached = user.page.get_by_label("Attachments", exact=True).get_by_role("listitem")
    await user.composer.evaluate(PASTE_AND_DROP)
    await expect(attached).to_have_count(2)
    await user.press("Send")
    await user.reads("I see image, document.")
    async with user.page.expect_download() as download:
        await user.press("note.txt")
    assert (await download.value).suggested_filename == "note.txt"
    picture = FilePayload(name="large.png", mimeType="image/png", buffer=PIXEL + bytes(70_000))
    await attach(user, picture, binary("large", 70_000))
    await expect(attached).to_have_text(["large.png", "large"])
    await user.press("Send")
    await expect(user.conversation.locator(".markdown")).to_have_text(["I see image, document."] * 2)
    await user.is_done()
    await user.page.reload()  # messages name the large ones, which are asked for
    async with user.page.expect_download() as download:
        await user.press("large")
    assert (await download.value).suggested_filename == "large"
    await expect(user.page.get_by_role("img", name="large.png")).to_have_js_property("naturalWidth", 1)
    await user.press("Open dot.png")
    await expect(user.page.get_by_role("dialog", name="dot.png")).to_be_visible()
    await user.page.keyboard.press("Escape")
    await expect(user.page.get_by_role("dialog")).to_have_count(0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "letter.txt").write_text("hello")
    devtools = await user.page.context.new_cdp_session(user.page)
    data = {"items": [], "files": [str(tmp_path / name) for name in ("folder", "letter.txt")], "dragOperationsMask": 1}
    for step in ("dragEnter", "dragOver", "drop"):
        await devtools.send("Input.dispatchDragEvent", {"type": step, "x": 600, "y": 300, "data": data})
    await expect(attached).to_have_text(["letter.txt"])
    await expect(user.page.get_by_role("alert")).to_contain_text("folder is not attached.")


async def test_files_are_chosen_and_removed_and_those_that_cannot_be_sent_say_why(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    attached = user.page.get_by_label("Attachments", exact=True).get_by_role("listitem")
    refused = user.page.get_by_label("Files that are not attached").get_by_role("listitem")
    dot = FilePayload(name="dot.png", mimeType="image/png", buffer=b"\x89PNG")

    async def forbid(route: Route) -> None:
        if command_of(route.request) == "files.put" and '"second"' in (route.request.post_data or ""):
            error = {"type": "RUN_ERROR", "code": "ACCESS_DENIED", "message": "You may not store files."}
            await route.fulfill(body=f"data: {json.dumps(error)}\n\n")
        else:
            await route.fallback()

    await user.page.route("**/invocations", forbid)
    sizes = {"empty": 0, "first": 4_900_000, "second": 70_000, "third": 5_100_000}
    await attach(user, dot, *(binary(name, size) for name, size in sizes.items()))
    await expect(attached).to_have_text(["dot.png", "first"])
    await expect(refused.nth(0)).to_have_text("empty is not attached. It is empty.")
    await expect(refused.nth(1)).to_have_text("second is not attached. You may not store files.")
    await expect(refused.nth(2)).to_contain_text("third is not attached. Too large: it has 5.1 MB")
    await user.press("Remove dot.png")
    await user.press("Send")
    await user.reads("I see document.")
    await expect(refused).to_have_count(0)
    await user.is_done()
    await attach(user, binary("fourth", 4_900_000))  # the first one is not sent again
    await user.press("Send")
    await expect(user.conversation.locator(".markdown")).to_have_text(["I see document."] * 2)
