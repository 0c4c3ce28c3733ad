"""Standard error of MCP servers that are processes, in the log."""

import io
import json
from itertools import chain, repeat

import pytest

from agui_container.logging import ConsoleFormatter, JsonFormatter
from agui_container.tools.mcp.transport import LINE_SECONDS, MAX_LINE, MAX_LINES, log_lines


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


def test_a_process_that_writes_too_much_is_cut_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    seconds = chain(repeat(0.0, MAX_LINES + 6), repeat(LINE_SECONDS + 1))
    log_lines(io.StringIO("a\n" * (MAX_LINES + 5) + "b\n"), "demo", lambda: next(seconds))
    assert len(caplog.messages) == MAX_LINES + 2
    assert caplog.messages[-2:] == [
        "MCP server writes too much, lines left out server=demo",
        "MCP server wrote server=demo line=b",
    ]
