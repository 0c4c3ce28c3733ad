"""Standard error of MCP servers that are processes, in the log."""

import io
import json

import pytest

from agui_container.logging import ConsoleFormatter, JsonFormatter
from agui_container.tools.mcp.transport import MAX_LINE, log_lines


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("one\r\n\n", ["one"]),
        ("last", ["last"]),
        ("x" * (MAX_LINE + 1) + "\nnext\n", ["x" * MAX_LINE, "x", "next"]),
    ],
)
def test_lines_are_logged_with_the_name_of_the_server(
    written: str, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    log_lines(io.StringIO(written), "demo")
    assert caplog.messages == [f"MCP server wrote server=demo line={line}" for line in lines]


def test_a_line_is_one_line_in_both_log_formats(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    log_lines(io.StringIO("two \x1b[1mwords\n"), "demo")
    (record,) = caplog.records
    words = "MCP server wrote server=demo line="
    assert json.loads(JsonFormatter().format(record))["message"].startswith(words)
    console = ConsoleFormatter().format(record)
    assert words in console
    assert "\x1b" not in console
