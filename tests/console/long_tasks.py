"""Long tasks of the page's main thread, by the time that they have on the processor."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page

LONGEST_TASK_MS = 200
LONGEST_PART = 0.25
"""Part of all the work that one task may be, on a machine that is slower."""


@asynccontextmanager
async def no_long_task(page: Page) -> AsyncIterator[None]:
    """Fail if one task of the page's main thread did too much of the work.

    Time on the processor is what counts, because other programs share the machine. On a slow machine all tasks take
    longer, so there the longest is compared with all of them.
    """
    browser = page.context.browser
    assert browser is not None
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
    assert max(times) <= max(LONGEST_TASK_MS, LONGEST_PART * sum(times))
