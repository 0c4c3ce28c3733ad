"""Roboto's own package, as it is published, works with the server."""

import os
import pty
import re
import select
import subprocess
import time

import pytest

from tests.protocols.roboto.conftest import SKILL_WORDS, Release

HELLO = "hello world, "

pytestmark = [pytest.mark.wire, pytest.mark.packages]
NEWEST = pytest.mark.parametrize("release", ["."], ids=["newest"], indirect=True)
"""For what the older release of the package does not have."""


def test_a_conversation_streams_and_is_the_same_when_it_is_read_again(release: Release) -> None:
    found = release.play("conversation")
    assert found["first"] == ["StartText", "TextDelta", "TextEnd"]
    assert found["second"] == ["ToolUse", "ToolResult", "StartText", "TextDelta", "TextEnd"]
    assert found["output"] == {"result": 42}
    assert found["messages"] == [
        ["user", "completed", ["stream 3"]],
        ["assistant", "completed", [3 * HELLO]],
        ["user", "completed", ["calculate 6*7"]],
        ["assistant", "completed", [["tool_use", {"expression": "6*7"}]]],
        ["roboto", "completed", [["tool_result", "success"]]],
        ["assistant", "completed", ["The result of calculate is 42."]],
    ]
    assert (found["same"], found["empty"], found["status"]) == (True, 0, "user_turn")
    assert found["latest"] == ["The result of calculate is 42."]
    assert found["transcript"][:4] == ["== USER ==", "stream 3", "== ASSISTANT ==", 3 * HELLO]


def test_client_tools_are_dispatched_by_the_package(release: Release) -> None:
    found = release.play("tools")
    assert found["success"] == [
        ["ToolUse", "ToolResult", "StartText", "TextDelta", "TextEnd"],
        ['The result of client_recall is {"result": "blue sky"}.'],
    ]
    success, failure, unknown = found["outputs"]
    assert success == {"result": "blue sky"}
    assert failure == {"error": "ValueError: out of order"}
    assert unknown["error"].startswith("No callback registered for client tool 'client_recall'.")
    assert found["successes"] == [True, False, False]
    assert found["roles"] == 4 * ["user", "assistant", "roboto", "assistant"]
    assert found["same"]


def test_goals_are_achieved_by_the_calls_of_their_tools(release: Release) -> None:
    found = release.play("goals_achieved")
    assert found["status"] == "user_turn"
    assert found["goals"] == [["dataset_summary", "achieved", 0], ["dataset_triage", "achieved", 0]]
    assert found["declared"] == ["ds_1", "ds_1"]
    typed = release.name != "roboto-oldest"  # the older release has no typed results
    assert (found["summary"], found["labels"]) == ((["A short drive."], ["good", "bad"]) if typed else ([], []))


def test_goals_that_the_agent_leaves_out_are_pending_and_then_fail(release: Release) -> None:
    assert release.play("goals_failed") == {
        "begun": ["pending"],
        "raised": "RobotoAgentGoalsFailedException",
        "again": ["goals_failed", ["failed"]],
        "next": "user_turn",
    }


@NEWEST
def test_events_that_an_agent_creates_are_the_typed_result_of_their_goal(release: Release) -> None:
    found = release.play("events_created")
    assert found["type"] == "CreateEventsGoalResult"
    assert found["events"] == [["stop", 10, 20, ["wet"], "ds_1"]]
    assert found["status"] == ["user_turn", "achieved"]


@NEWEST
def test_a_skill_that_is_invoked_reaches_the_model(release: Release) -> None:
    found = release.play("skill_invoked")
    assert found["questions"] == 2 * [["Use the skill greet."]]
    assert found["more"] >= SKILL_WORDS
    assert found["same"]
    (unknown,) = found["unknown"]
    assert "'sing'; known are greet" in unknown


def test_feedback_is_replaced_and_a_fork_is_a_session_of_its_own(release: Release) -> None:
    assert release.play("feedback_and_fork") == {
        "feedback": ["negative", ["other"], "Too short."],
        "replaced": [True, True],
        "fork": True,
        "origin": True,
        "upto": 1,
        "grown": [4, 6],
    }


PATIENCE = 300.0
STYLE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours and movements of the cursor."""


class Terminal:
    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._here, there = pty.openpty()
        settings = {**environment, "TERM": "xterm", "COLUMNS": "120"}
        self._process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=settings)
        os.close(there)

    def type(self, line: str) -> None:
        os.write(self._here, f"{line}\n".encode())

    def read_until(self, text: str, seconds: float = PATIENCE) -> str:
        seen, deadline = b"", time.monotonic() + seconds
        while text.encode() not in seen:
            ready, _, _ = select.select([self._here], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"{text!r} is not in {seen.decode()[-2000:]!r}"
            seen = STYLE.sub(b"", seen + os.read(self._here, 65536))
        return seen.decode()

    def close(self) -> int:
        status = self._process.wait(PATIENCE)
        os.close(self._here)
        return status


def test_the_command_chats_in_a_terminal(release: Release) -> None:
    # Without this it asks for a newer release of itself at the end, which takes long where there is no network.
    command = [str(release.bin / "roboto"), "--suppress-upgrade-check", "chat", "start"]
    terminal = Terminal(command, release.environment)
    terminal.read_until("to exit)")
    terminal.type("calculate 6*7")
    assert "calculate" in terminal.read_until("The result of calculate is 42.")
    terminal.type("stream 2")
    terminal.read_until("hello world, hello world")
    terminal.type("what time is it")
    terminal.read_until("through another protocol only: current_time.")
    terminal.type("stream 3")
    terminal.read_until("hello world, hello world, hello world")
    terminal.type("quit")
    terminal.read_until("Goodbye!")
    assert terminal.close() == 0
