"""The first visit of the chat page: milliseconds from its address to a composer that can be used.

The browser has nothing in a cache, and its processor is slowed down to a quarter, as of a cheap phone. The page can be
used when the composer has the focus, is painted, and the main thread is free.
"""

import shutil
import statistics

from playwright.sync_api import Browser, Page, sync_playwright

from bench.options import Extra, MeasureError, Options, Section
from bench.server import ASSISTANT, RunningContestant

SLOWDOWN = 4

# The frame after the one in which the composer has the focus begins when that one is painted. The timer runs when the
# main thread is free.
OBSERVE = """(() => {
    const observe = () => {
        const isReady = document.activeElement?.getAttribute("aria-label") === "Message";
        requestAnimationFrame(isReady ? () => setTimeout(() => performance.mark("usable")) : observe);
    };
    observe();
})()"""

READ_USABLE = """async () => {
    let marks = [];
    while (marks.length === 0) {
        await new Promise(requestAnimationFrame);
        marks = performance.getEntriesByName("usable");
    }
    return marks[0].startTime;
}"""


def measure(options: Options) -> Section:
    """Visits one after the other, each in a profile of its own."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chromium-headless-shell")
    if program is None:
        raise MeasureError("Chromium is not installed; `make browser` installs it")
    with RunningContestant(ASSISTANT) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        times = [time_to_use(browser, f"http://127.0.0.1:{server.port}/") for _ in range(options.starts)]
        browser.close()
    line = (f"{statistics.median(times):.0f} ms", f"{min(times):.0f} to {max(times):.0f} ms", str(len(times)))
    head = ("time to use, at a quarter of the speed", "lowest and highest", "visits")
    return Section([], [Extra("The first visit of the chat page", head, [line])])


def time_to_use(browser: Browser, address: str) -> float:
    """Milliseconds until a first visit can be used."""
    context = browser.new_context()
    page = context.new_page()
    slow_down(page)
    page.add_init_script(OBSERVE)
    page.goto(address)
    milliseconds: float = page.evaluate(READ_USABLE)
    context.close()
    return milliseconds


def slow_down(page: Page) -> None:
    """Take away the cache, and three quarters of the processor."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Network.enable")
    devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
