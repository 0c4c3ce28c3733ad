"""Diagrams of Mermaid in answers: how they are drawn, and that their sandbox has no way out."""

import pytest
from playwright.async_api import Frame, FrameLocator, Locator, Route, expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import AXE, NO_NETWORK, User, release
from tests.console.scripted import DIAGRAM

pytestmark = pytest.mark.asyncio(loop_scope="package")

MAX_HEIGHT = 1600

TRY_TO_LEAVE = """async () => {
    const attempt = async (action) => {
        try {
            const result = await action();
            return result ?? null;
        } catch {
            return null;
        }
    };
    const script = document.createElement("script");
    script.textContent = "window.attacked = 1";
    document.body.append(script);
    return [
        window.attacked ?? null,
        await attempt(() => parent.document.title),
        await attempt(() => parent.localStorage.length),
        await attempt(() => localStorage.length),
        await attempt(() => document.cookie),
        await attempt(() => window.open("https://spy.example/window")),
        await attempt(() => fetch("https://spy.example/fetch", { mode: "no-cors" })),
        await attempt(() => fetch(new URL("/threads", location.href))),
        await attempt(() => { top.location.href = "https://spy.example/top"; }),
    ];
}"""

# A frame needs no landmarks and no heading of its own.
FIND_VIOLATIONS_OF_CONTENT = """async () => {
    const { violations } = await axe.run({ runOnly: ["wcag2a", "wcag2aa"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}"""

LOAD_PICTURE = """() => new Promise((resolve) => {
    const picture = new Image();
    picture.onload = () => resolve(true);
    picture.onerror = () => resolve(false);
    picture.src = "https://spy.example/picture.png";
})"""


def frames(user: User) -> Locator:
    """Frames of diagrams in the conversation."""
    return user.conversation.locator("iframe")


def drawing(user: User) -> FrameLocator:
    """The page inside the first frame."""
    return user.conversation.frame_locator("iframe").first


async def inside(user: User) -> Frame:
    """The document inside the first frame."""
    frame = await (await frames(user).first.element_handle()).content_frame()
    assert frame is not None
    return frame


async def spied_requests(user: User) -> list[str]:
    """Requests to a server that only a hostile text names, from now on."""
    asked: list[str] = []

    async def record(route: Route) -> None:
        asked.append(route.request.url)
        await route.fulfill(body="")

    await user.page.context.route("https://spy.example/**", record)
    return asked


@over_both
async def test_a_diagram_is_drawn_once_its_block_is_complete(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("slow_diagram")
    await expect(user.conversation.locator("pre")).to_contain_text("Known -->|yes| Answer")
    await expect(frames(user)).to_have_count(0)
    await release(scripted)
    picture = drawing(user).get_by_label("Diagram").locator("svg")
    await expect(picture).to_contain_text("Is it known?")
    await expect(picture).to_have_attribute("aria-label", "Diagram")
    await expect(frames(user)).to_be_visible()
    await expect(frames(user)).to_have_attribute("title", "Diagram")
    await expect(user.conversation.locator("pre")).to_be_hidden()


async def test_the_source_of_a_diagram_is_shown_and_copied(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("diagram")
    await user.press("Show source")
    await expect(user.conversation.locator("pre")).to_be_visible()
    await expect(frames(user)).to_be_hidden()
    source = DIAGRAM.partition("```mermaid\n")[2].partition("\n```")[0]
    assert await user.copies("Copy code") == source
    await user.press("Show diagram")
    await expect(frames(user)).to_be_visible()


async def test_a_diagram_is_there_after_a_reload_and_follows_the_theme(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("diagram")
    await user.is_done()
    await user.page.reload()
    root, node = drawing(user).locator(":root"), drawing(user).locator("g.node rect").first
    await expect(root).to_have_css("color-scheme", "light")
    light = await node.evaluate("(shape) => getComputedStyle(shape).fill")
    await user.page.emulate_media(color_scheme="dark")
    await expect(root).to_have_css("color-scheme", "dark")
    await expect(node).not_to_have_css("fill", light)
    await user.page.close()


async def test_axe_finds_nothing_in_a_diagram(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("diagram")
    await expect(frames(user)).to_be_visible()
    assert await user.violations() == []
    frame = await inside(user)
    await frame.evaluate(AXE.read_text())
    for theme in ("light", "dark"):
        await user.page.emulate_media(color_scheme=theme)
        await expect(drawing(user).locator(":root")).to_have_css("color-scheme", theme)
        assert await frame.evaluate(FIND_VIOLATIONS_OF_CONTENT) == [], theme


@over_both
async def test_a_diagram_with_an_error_stays_readable_as_code(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("wrong_diagram")
    await user.reads("The diagram is not drawn: Parse error on line 2.")
    await expect(user.conversation.locator("pre")).to_be_visible()
    await expect(frames(user)).to_be_hidden()
    await expect(user.page.get_by_role("button", name="Show source")).to_have_count(0)


async def test_without_the_page_that_draws_a_diagram_stays_readable_as_code(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    user.expect_complaints(*NO_NETWORK)
    await user.page.route("**/console/diagram.html", lambda route: route.abort("connectionrefused"))
    await user.say("diagram")
    await user.reads("The diagram is not drawn: its page does not answer.")
    await expect(user.conversation.locator("pre")).to_be_visible()
    await expect(frames(user)).to_be_hidden()


@over_both
async def test_nothing_of_a_hostile_diagram_runs_or_is_loaded(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    user.expect_complaints("Content Security Policy")
    asked = await spied_requests(user)
    await user.say("hostile_diagram")
    await expect(frames(user).first).to_be_visible()
    await expect(user.conversation.get_by_text("The diagram is not drawn")).to_have_count(2)
    frame, picture = await inside(user), drawing(user).locator("svg")
    for tag in ("script", "iframe", "a[href]", "a[*|href]"):
        await expect(picture.locator(tag)).to_have_count(0)
    for name in ("Address", "Callback", "Link"):
        await picture.get_by_text(name, exact=True).click()
    assert await frame.evaluate("window.attacked ?? null") is None
    assert await user.page.evaluate("window.attacked ?? null") is None
    assert frame.url == f"{scripted}console/diagram.html"
    assert asked == []


async def test_a_fault_of_mermaid_would_reach_neither_the_page_nor_the_network(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    user.expect_complaints("Content Security Policy", "Blocked", "sandbox", "Unsafe attempt", "Failed to load resource")
    asked = await spied_requests(user)
    await user.say("diagram")
    await expect(frames(user)).to_be_visible()
    frame = await inside(user)
    assert [reached for reached in await frame.evaluate(TRY_TO_LEAVE) if reached is not None] == []
    assert await frame.evaluate(LOAD_PICTURE) is False
    assert asked == []
    assert user.page.url.startswith(scripted)


async def test_the_page_takes_a_bounded_height_and_a_text_of_its_frame(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("diagram")
    await expect(frames(user)).to_be_visible()
    frame = await inside(user)
    await frame.evaluate("parent.postMessage({ height: 1e9 }, '*')")
    await expect(frames(user)).to_have_attribute("height", str(MAX_HEIGHT))
    await frame.evaluate("parent.postMessage({ problem: '<b>bold</b>' }, '*')")
    note = user.conversation.get_by_text("The diagram is not drawn: <b>bold</b>.")
    await expect(note).to_be_visible()
    await user.page.evaluate("postMessage({ problem: 'from another window' }, '*')")
    await frame.evaluate("parent.postMessage({ height: 50 }, '*')")
    await expect(frames(user)).to_have_attribute("height", "50")
    await expect(note).to_be_hidden()
    await expect(note).to_have_count(1)
