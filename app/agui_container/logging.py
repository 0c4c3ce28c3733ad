"""Log lines: readable ones for a terminal, or one JSON object per line for CloudWatch.

Rules: every line carries the ids of the request or run it belongs to (``LOG_FIELDS``); no line holds a header, a token
or a password. Each record starts at column 0, and texts of callers are escaped, so they cannot imitate a record. A
message is a fixed phrase and then ``format_fields``, which quotes values, so that none can imitate another field.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType

from opentelemetry import trace

from agui_container.log_values import FACTS, format_fields, mask_passwords
from agui_container.ports import LOG_FIELDS
from agui_container.run.user_code import format_exception

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

INVALID_FRAME = "Invalid UTF-8 sequence received from client."
"""Log message of uvicorn, with a traceback, for a text frame that is not UTF-8."""

NO_HANDSHAKE = "ASGI callable returned without completing handshake."
"""Log message of uvicorn, at ERROR, after each handshake that was refused with an answer."""

BIDI_CONTROLS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the direction of text, so that a terminal shows a line in another order than it has."""

CONTROLS = (*range(9), *range(11, 32), *range(127, 160), 0x2028, 0x2029, *BIDI_CONTROLS)
"""Control characters except tabs and line breaks. Viewers break lines at some of them (U+0085, U+2028, U+2029)."""

CONSOLE_ESCAPES = {number: ascii(chr(number))[1:-1] for number in CONTROLS}
JSON_ESCAPES = {number: f"\\u{number:04x}" for number in CONTROLS}

OWN = ("agent", "agui_container")
"""The loggers of ``ctx.logger`` and of this package. ``AGUI_LOG_LEVEL`` may turn on debug lines of these only."""

WARNINGS_ONLY = ("alembic", "httpx", "httpx2", "mcp", "sqlalchemy", "uvicorn", "watchfiles")
"""At INFO, HTTP clients log the URL of each request, MCP's client the session and SQLAlchemy the values that are
written. All of these may be secrets. watchfiles counts changes."""

NO_DEBUG = (
    "aiosqlite",
    "boto3",
    "botocore",
    "grpclib",
    "h2",
    "hpack",
    "httpcore",
    "httpcore2",
    "openai",
    "psycopg",
    "redis",
    "s3transfer",
    "sse_starlette",
    "urllib3",
    "websockets",
)
"""Debug lines of these libraries hold headers, bodies and statements."""

MINIMUM_LEVELS = {**dict.fromkeys(WARNINGS_ONLY, logging.WARNING), **dict.fromkeys(NO_DEBUG, logging.INFO)}
"""Lowest level of a library's lines, even if an agent sets a lower one."""


class TracebackFormatter(logging.Formatter):
    """Formatter whose tracebacks begin in the user's own code, if the fault is there."""

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 - the standard library's name
        return format_exception(ei[1]) if ei[1] is not None else ""


class JsonFormatter(TracebackFormatter):
    """One JSON object per line, with the field names AgentCore's own SDK uses."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FACTS, {}),
            **LOG_FIELDS.get(),
            **current_trace_ids(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["errorType"] = record.exc_info[0].__name__
            fields["stackTrace"] = self.formatException(record.exc_info)
        return mask_passwords(escape(json.dumps(fields, ensure_ascii=False, default=str), JSON_ESCAPES))


def escape(text: str, escapes: Mapping[int, str]) -> str:
    """Replace control characters. A printable text has none, and looking each symbol up takes a third of a log line."""
    return text if text.isprintable() else text.translate(escapes)


def current_trace_ids() -> dict[str, str]:
    span = trace.get_current_span().get_span_context()
    return {"traceId": f"{span.trace_id:032x}", "spanId": f"{span.span_id:016x}"} if span.is_valid else {}


class ConsoleFormatter(TracebackFormatter):
    """``12:00:00 INFO engine.run: message [runId=…]``. Further lines are indented."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler may have written the whole traceback into it
        return mask_passwords(escape(super().format(record), CONSOLE_ESCAPES).replace("\n", "\n  "))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        ids = format_fields(LOG_FIELDS.get())
        line = super().formatMessage(record)
        return f"{line} [{ids}]" if ids else line


def configure_logging(log_format: str, log_level: str = "info") -> None:
    """Send log lines to standard error. Pings and requests are not logged.

    Args:
        log_format: ``console`` or ``json``.
        log_level: ``debug``, ``info``, ``warning`` or ``error``. Loggers other than ``OWN`` have no debug lines.
    """
    level = logging.getLevelNamesMapping()[log_level.upper()]
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else ConsoleFormatter())
    logging.basicConfig(handlers=[handler], level=max(level, logging.INFO), force=True)
    for each in logging.getLogger().handlers:  # OpenTelemetry adds one of its own
        each.addFilter(_may_be_written)
    for name in OWN:
        logging.getLogger(name).setLevel(level)
    for name, minimum in MINIMUM_LEVELS.items():
        logging.getLogger(name).setLevel(max(level, minimum))
    logging.getLogger("uvicorn.error").addFilter(without_refusals)


def _may_be_written(record: logging.LogRecord) -> bool:
    """Return False for lines of libraries that may hold secrets, if other code has lowered a logger's level."""
    return record.levelno >= MINIMUM_LEVELS.get(record.name.partition(".")[0], logging.NOTSET)


def without_refusals(record: logging.LogRecord) -> bool:
    """Leave one line of what a client can cause as often as it likes, because it is no fault of the server."""
    if record.msg == INVALID_FRAME:
        record.exc_info = None
    return record.msg != NO_HANDSHAKE
