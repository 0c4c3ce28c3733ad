"""Sending what was recorded, when there is nothing else to do.

Rule: where the platform may freeze or take away an idle process, spans that wait for the next batch are lost; so they
go before the process says that it is idle. Nobody's answer waits for that. Source: the entry on frozen microVMs in
docs/architecture.md.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from opentelemetry._logs import get_logger_provider
from opentelemetry.metrics import get_meter_provider
from opentelemetry.trace import get_tracer_provider

from agui_container.runtime.daemon_threads import DaemonThreadPool, ThreadPoolBusy

SECONDS = 5.0
"""How long the process stays busy for it, at most."""

logger = logging.getLogger(__name__)

Flush = Callable[[], object]

_threads = DaemonThreadPool(2)


def make_exporter() -> Awaitable[None] | None:
    """Sends what was recorded; None where there is no SDK that could send spans."""
    spans: Flush | None = getattr(get_tracer_provider(), "force_flush", None)
    return _export(spans) if spans is not None else None


async def _export(spans: Flush) -> None:
    """Spans, measurements and log lines, in a thread. Where two are at it, what is left goes with the next batch."""

    def work() -> None:
        spans()
        for provider in (get_meter_provider(), get_logger_provider()):
            getattr(provider, "force_flush", bool)()

    try:
        async with asyncio.timeout(SECONDS):
            with contextlib.suppress(ThreadPoolBusy):
                await _threads.call("export telemetry", work)
    except TimeoutError:
        logger.warning("telemetry was not exported within %s s", SECONDS)
