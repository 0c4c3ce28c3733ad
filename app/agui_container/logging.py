"""Log lines: readable ones for a terminal, or one JSON object per line for CloudWatch.

Rules: every line carries the ids of the request or run it belongs to (``LOG_FIELDS``); no line holds a header or token.
What begins at the margin is a record: ids and field names are callers' words, and none of them passes for one.
"""

import json
import logging
from datetime import UTC, datetime

from opentelemetry import trace

from agui_container.ports import LOG_FIELDS

INVALID_FRAME = "Invalid UTF-8 sequence received from client."
"""Log message of uvicorn, with a traceback, for a text frame that is not UTF-8."""

CONTROLS = {
    number: ascii(chr(number))[1:-1] for number in (*range(9), *range(11, 32), *range(127, 160), 0x2028, 0x2029)
}
"""Control characters except tabs and line breaks, and the escapes that are written instead of them."""

QUIET = ("alembic", "httpx", "httpx2", "mcp", "uvicorn")
"""Only their warnings are logged. HTTP clients say the URL of each request, and MCP's the session: both may be keys."""


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the field names AgentCore's own SDK uses."""

    def format(self, record: logging.LogRecord) -> str:
        """The record and the ids of its context."""
        fields: dict[str, object] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **LOG_FIELDS.get(),
            **current_trace_ids(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["errorType"] = record.exc_info[0].__name__
            fields["stackTrace"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def current_trace_ids() -> dict[str, str]:
    """The ids of the span that goes on, where somebody traces; so a line is found from its trace and the other way."""
    span = trace.get_current_span().get_span_context()
    return {"traceId": f"{span.trace_id:032x}", "spanId": f"{span.span_id:016x}"} if span.is_valid else {}


class ConsoleFormatter(logging.Formatter):
    """``12:00:00 INFO engine.run: message [runId=…]``; what follows on other lines is indented."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """The record, its traceback below it."""
        return super().format(record).translate(CONTROLS).replace("\n", "\n  ")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        """The line without a traceback, and the ids of its context."""
        ids = " ".join(f"{name}={value}" for name, value in LOG_FIELDS.get().items())
        line = super().formatMessage(record)
        return f"{line} [{ids}]" if ids else line


def configure_logging(log_format: str) -> None:
    """Send all log lines to standard error as ``console`` or ``json``. Pings and requests are not logged."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else ConsoleFormatter())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_without_traceback)


def _without_traceback(record: logging.LogRecord) -> bool:
    """A client can cause this as often as it likes, and it is no fault of the server: one line is enough."""
    if record.msg == INVALID_FRAME:
        record.exc_info = None
    return True
