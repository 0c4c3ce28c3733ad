"""Long tasks of the page's main thread, by the time that they have on the processor."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page

LONGEST_TASK_MS = 200
LOOP_MS = 70
"""Time of the loop on a machine that has to keep to ``LONGEST_TASK_MS``."""

# The shortest of several times is the one in which no other program had the processor.
TIME_LOOP = """() => {
    const times = Array.from({ length: 10 }, () => {
        const start = performance.now();
        let number = 1;
        for (let index = 0; index < 10_000_000; index++) number = (number * 1_103_515_245 + 12_345) | 0;
        return performance.now() - start + 0 * number;
    });
    return Math.min(...times);
}"""


@asynccontextmanager
async def no_long_task(page: Page) -> AsyncIterator[None]:
    """Fail if one task of the page's main thread has worked for too long.

    Time on the processor is what counts, because other programs share the machine. A slower machine may take longer,
    by a loop that is timed in the same page.
    """
    browser = page.context.browser
    assert browser is not None
    slowness = max(1, await page.evaluate(TIME_LOOP) / LOOP_MS)
    await browser.start_tracing(
        page=page, categories=["disabled-by-default-devtools.timeline", "toplevel", "__metadata"]
    )
    try:
        yield
    finally:
        trace = json.loads(await browser.stop_tracing())
    main = {
        (event["pid"], event["tid"])
        for event in trace["traceEvents"]
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    times = [
        event["tdur"] / 1000
        for event in trace["traceEvents"]
        if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in main and "tdur" in event
    ]
    assert times
    assert max(times) <= LONGEST_TASK_MS * slowness
