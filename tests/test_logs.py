"""Log lines on standard error: JSON objects or readable lines, with the ids of their run."""

import json
import logging
import sys
from collections.abc import Iterator
from types import ModuleType

import httpx
import httpx2
import pytest

from agui_container import logging as logs
from agui_container.log_values import FACTS
from agui_container.main import build_app
from agui_container.ports import LOG_FIELDS, Caller
from agui_container.server.run import uvicorn_config
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.websocket import refused_handshake


@pytest.fixture
def ids() -> Iterator[None]:
    token = LOG_FIELDS.set({"requestId": "req-1", "runId": "r1"})
    yield
    LOG_FIELDS.reset(token)


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    names = (*logs.OWN, *logs.MINIMUM_LEVELS)
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, its_level in levels.items():
        logging.getLogger(name).setLevel(its_level)


def record(message: str = "hello %s", *values: object, error: BaseException | None = None) -> logging.LogRecord:
    failed = (type(error), error, error.__traceback__) if error is not None else None
    made = logging.LogRecord("app.x", logging.WARNING, __file__, 1, message, values or ("you",), failed)
    made.created = 1_800_000_000.5
    return made


def test_a_json_line_has_the_message_and_the_ids(ids: None) -> None:
    line = logs.JsonFormatter().format(record())
    assert json.loads(line) == {
        "timestamp": "2027-01-15T08:00:00.500+00:00",
        "level": "WARNING",
        "logger": "app.x",
        "message": "hello you",
        "requestId": "req-1",
        "runId": "r1",
    }


def test_a_json_line_is_one_line_with_the_traceback(ids: None) -> None:
    line = logs.JsonFormatter().format(record(error=ValueError("two\nlines")))
    fields = json.loads(line)
    assert "\n" not in line
    assert fields["errorType"] == "ValueError"
    assert "two\nlines" in fields["stackTrace"]


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, "\ud800"])
def test_a_json_line_can_say_anything(value: object) -> None:
    assert json.loads(logs.JsonFormatter().format(record("%s", value)))["message"] == str(value)


def test_a_console_line_ends_with_the_ids(ids: None) -> None:
    line = logs.ConsoleFormatter().format(record())
    assert line.endswith("WARNING app.x: hello you [requestId=req-1 runId=r1]")


def test_a_line_without_ids_has_none() -> None:
    assert logs.ConsoleFormatter().format(record()).endswith(": hello you")
    assert json.loads(logs.JsonFormatter().format(record())).keys() == {"timestamp", "level", "logger", "message"}


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(("name", "kind"), [("json", logs.JsonFormatter), ("console", logs.ConsoleFormatter)])
def test_lines_go_to_standard_error_and_requests_are_not_logged(name: str, kind: type[logging.Formatter]) -> None:
    logs.configure_logging(name)
    [handler] = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    assert handler.stream is sys.stderr
    assert isinstance(handler.formatter, kind)
    for quiet in ("uvicorn.access", "mcp.client.streamable_http"):
        assert not logging.getLogger(quiet).isEnabledFor(logging.INFO)
    assert logging.getLogger("agui_container").isEnabledFor(logging.INFO)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("http", [httpx, httpx2])
async def test_the_address_of_a_request_is_not_logged(http: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure_logging("console")
    answering = http.MockTransport(lambda _: http.Response(200))
    async with http.AsyncClient(transport=answering) as client:
        await client.get("https://user:secret@mcp.example/mcp?key=secret")
    assert "secret" not in capsys.readouterr().err


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("level", "own", "library", "http_client"),
    [
        ("debug", logging.DEBUG, logging.INFO, logging.WARNING),
        ("info", logging.INFO, logging.INFO, logging.WARNING),
        ("warning", logging.WARNING, logging.WARNING, logging.WARNING),
        ("error", logging.ERROR, logging.ERROR, logging.ERROR),
    ],
)
def test_the_level_is_that_of_own_lines_and_libraries_have_no_debug_lines(
    level: str, own: int, library: int, http_client: int
) -> None:
    logs.configure_logging("console", level)
    for name, expected in {
        "agui_container.engine": own,
        "agent": own,
        "some_library": library,
        "websockets.client": library,
        "hpack": library,
        "uvicorn.error": http_client,
        "httpx": http_client,
    }.items():
        assert logging.getLogger(name).getEffectiveLevel() == expected, name


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("name", ["websockets.server", "hpack.hpack", "urllib3", "uvicorn.error", "httpx"])
def test_an_agent_that_lowers_a_librarys_level_gets_none_of_its_debug_lines(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure_logging("console", "debug")
    logger = logging.getLogger(name)
    logger.setLevel(logging.DEBUG)
    try:
        logger.debug("< Authorization: Bearer secret")
        logger.warning("closed")
    finally:
        logger.setLevel(logging.NOTSET)
    written = capsys.readouterr().err
    assert "secret" not in written
    assert "closed" in written


@pytest.mark.wire
@pytest.mark.usefixtures("restored")
async def test_uvicorn_adds_no_error_to_a_refused_handshake(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings()
    app = build_app(settings)
    logs.configure_logging("console")
    async with serving(app, uvicorn_config(app, settings)) as url:
        await refused_handshake(url, origin="https://another.example")
    lines = capsys.readouterr().err.splitlines()
    assert ["refused" in line for line in lines] == [True, True], lines


@pytest.mark.parametrize("formatter", [logs.JsonFormatter(), logs.ConsoleFormatter()])
@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("redis://:secret@cache:6379/0", "redis://:***@cache:6379/0"),
        ("postgresql://agui:secret@db/agui", "postgresql://agui:***@db/agui"),
        ("postgresql://agui:sec@ret@db/agui", "postgresql://agui:***@db/agui"),
        ("https://agui:secret@model/v1?x=1", "https://agui:***@model/v1?x=1"),
        ("postgresql://db/agui?user=agui&password=secret", "postgresql://db/agui?user=agui&password=***"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        ("mail a:b@c", "mail a:b@c"),
    ],
)
def test_the_password_of_a_url_is_never_written(formatter: logging.Formatter, url: str, written: str) -> None:
    line = formatter.format(record("cannot reach %s", url, error=ValueError(f"no answer of {url}")))
    assert f"cannot reach {written}" in line
    assert f"no answer of {written}" in line
    assert "secret" not in line


def test_the_facts_of_a_line_are_fields_of_its_json_object(ids: None) -> None:
    made = record("run finished outcome=%s ms=12", "finished")
    setattr(made, FACTS, {"outcome": "finished", "ms": 12})
    fields = json.loads(logs.JsonFormatter().format(made))
    assert (fields["outcome"], fields["ms"], fields["runId"]) == ("finished", 12, "r1")


def test_a_caller_does_not_show_its_headers() -> None:
    assert "secret" not in repr(Caller("o", "r", headers={"authorization": "Bearer secret"}))


SPLITTING = "\u0085\u2028\u2029"
TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
HIDDEN = f"\x00\x08\x0b\x1b\x7f\x9b{SPLITTING}{TURNING}"
"""Control characters that a viewer would obey: it would break the line, turn it round or colour it."""


def test_a_json_line_has_no_character_that_a_viewer_would_obey(ids: None) -> None:
    line = logs.JsonFormatter().format(record("said %s é 日本 👩‍💻", HIDDEN))
    assert not set(HIDDEN) & set(line)
    assert len(line.splitlines()) == 1
    assert "é 日本 👩‍💻" in line
    assert json.loads(line)["message"] == f"said {HIDDEN} é 日本 👩‍💻"


def test_a_console_line_has_no_character_that_a_terminal_would_obey() -> None:
    line = logs.ConsoleFormatter().format(record("said %s é 日本 👩‍💻", HIDDEN))
    assert not set(HIDDEN) & set(line)
    assert line.endswith(f"said {HIDDEN.encode('unicode_escape').decode()} é 日本 👩‍💻")


def test_no_id_and_no_message_passes_for_another_line() -> None:
    token = LOG_FIELDS.set({"runId": "r\r\n12:00:00 ERROR app: forged\x1b[2J\u2028\x85"})
    try:
        lines = logs.ConsoleFormatter().format(record("said: %s", "a\nb", error=ValueError("two\nlines"))).split("\n")
    finally:
        LOG_FIELDS.reset(token)
    assert len([line for line in lines if not line.startswith("  ")]) == 1
    assert lines[1] == "  b [runId='r\\r\\n12:00:00 ERROR app: forged\\x1b[2J\\u2028\\x85']"
    assert all(len(line.splitlines()) == 1 for line in lines)


def test_an_id_of_a_caller_cannot_imitate_another_id() -> None:
    token = LOG_FIELDS.set({"runId": "r1] [requestId=forged"})
    line = logs.ConsoleFormatter().format(record())
    LOG_FIELDS.reset(token)
    assert line.endswith(": hello you [runId='r1] [requestId=forged']")
