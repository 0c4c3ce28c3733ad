"""Export of recorded telemetry before the process reports that it is idle.

Rule: the platform may freeze or stop an idle process, and spans that wait for the next batch would be lost. Therefore
they are exported before the process reports that it is idle. No client waits for the export.

Source: docs/observability.md.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from opentelemetry._logs import get_logger_provider
from opentelemetry.metrics import get_meter_provider
from opentelemetry.trace import get_tracer_provider

from agui_container.log_values import format_fields
from agui_container.threads import DaemonThreadPool, ThreadPoolBusy

TIMEOUT_SECONDS = 0.5
"""Maximum time that the process reports to be busy because of an export. A collector that does not answer must not keep
a session, which its user pays for."""

logger = logging.getLogger(__name__)

Flush = Callable[[], object]

_threads = DaemonThreadPool(2)


def make_exporter() -> Awaitable[None] | None:
    """Return an awaitable that exports recorded telemetry, or None if the process has no SDK."""
    flush_spans: Flush | None = getattr(get_tracer_provider(), "force_flush", None)
    return _export(flush_spans) if flush_spans is not None else None


async def _export(flush_spans: Flush) -> None:
    """Export spans, metrics and log records in a thread.

    Do nothing if two exports are running; the next batch follows anyway.
    """

    def flush() -> None:
        flush_spans()
        for provider in (get_meter_provider(), get_logger_provider()):
            getattr(provider, "force_flush", bool)()

    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            with contextlib.suppress(ThreadPoolBusy):
                await _threads.call("export telemetry", flush)
    except TimeoutError:
        logger.warning("telemetry export timed out %s", format_fields({"seconds": TIMEOUT_SECONDS}))
