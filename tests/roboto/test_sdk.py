"""Roboto's own package, as it is published, works with the server."""

import os
import pty
import re
import select
import subprocess
import time

import pytest

from tests.requirements import requirement
from tests.roboto.conftest import SKILL_WORDS, Release

HELLO = "hello world, "
NEWEST = pytest.mark.parametrize("release", ["roboto"], indirect=True)
"""For what the older release of the package does not have."""


@requirement("roboto.package")
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


@requirement("roboto.package")
def test_a_session_begins_with_a_conversation_and_all_that_a_start_carries(release: Release) -> None:
    found = release.play("seeded")
    assert found["messages"] == [
        ["user", "completed", ["My name is Eve."]],
        ["assistant", "completed", ["Hello Eve."]],
        ["user", "completed", ["stream 1", *([["client_context", ["ds_1"]]] if release.name == "roboto" else [])]],
        ["assistant", "completed", [HELLO]],
    ]
    assert found["facts"] == ["advanced", "og_1", "private", "My name is Eve.", "everybody"]
    assert found["ids"]


@requirement("roboto.package", "roboto.tools")
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


@requirement("roboto.package")
def test_a_turn_can_have_calls_of_the_server_and_of_the_client(release: Release) -> None:
    found = release.play("mixed")
    assert found["events"] == ["ToolUse", "ToolUse", "ToolResult", "ToolResult", "StartText", "TextDelta", "TextEnd"]
    assert found["messages"][1:3] == [
        ["assistant", "completed", [["tool_use", {"expression": "1+1"}], ["tool_use", {"query": "sky"}]]],
        ["roboto", "completed", [["tool_result", "success"], ["tool_result", "success"]]],
    ]
    assert found["status"] == "user_turn"


@requirement("roboto.package", "roboto.goals")
def test_goals_are_achieved_by_the_calls_of_their_tools(release: Release) -> None:
    found = release.play("goals_achieved")
    assert found["status"] == "user_turn"
    assert found["goals"] == [["dataset_summary", "achieved", 0], ["dataset_triage", "achieved", 0]]
    assert found["declared"] == ["ds_1", "ds_1"]
    typed = release.name == "roboto"  # the older release has no typed results
    assert (found["summary"], found["labels"]) == ((["A short drive."], ["good", "bad"]) if typed else ([], []))


@NEWEST
@requirement("roboto.package", "roboto.goals")
def test_events_that_an_agent_creates_are_the_typed_result_of_their_goal(release: Release) -> None:
    found = release.play("events_created")
    assert found["type"] == "CreateEventsGoalResult"
    assert found["events"] == [["stop", 10, 20, ["wet"], "ds_1"]]
    assert found["status"] == ["user_turn", "achieved"]


@NEWEST
@requirement("roboto.package")
def test_a_skill_that_is_invoked_reaches_the_model(release: Release) -> None:
    found = release.play("skill_invoked")
    assert found["questions"] == 2 * [["Use the skill greet."]]
    assert found["more"] >= SKILL_WORDS
    assert found["same"]
    (unknown,) = found["unknown"]
    assert "'sing'; known are greet" in unknown


@requirement("roboto.package")
def test_goals_that_fail_raise_the_exception_of_the_package(release: Release) -> None:
    assert release.play("goals_failed") == {
        "raised": "RobotoAgentGoalsFailedException",
        "status": "goals_failed",
        "question": ["Achieve the goals of this turn."],
        "afterwards": "user_turn",
        "goals": ["failed"],
    }


@requirement("roboto.package")
def test_feedback_is_replaced_and_a_fork_is_a_session_of_its_own(release: Release) -> None:
    assert release.play("feedback_and_fork") == {
        "feedback": ["negative", ["other"], "Too short."],
        "replaced": [True, True],
        "fork": True,
        "origin": True,
        "upto": 1,
        "grown": [4, 6],
    }


@requirement("roboto.package")
def test_refusals_raise_the_exceptions_of_the_package(release: Release) -> None:
    found = release.play("refusals")
    invalid, missing = "RobotoInvalidRequestException", "RobotoNotFoundException"
    assert {name: error[0] for name, error in found.items()} == {
        "unknown session": missing,
        "unknown message": missing,
        "message of the user": invalid,
        "fork out of range": invalid,
        "fork of what is generated": invalid,
        "feedback on what is generated": invalid,
        "send to a busy session": invalid,
        "empty text": invalid,
        "blank text": invalid,
        "unknown model": invalid,
        "results nobody waits for": invalid,
    }
    assert found["unknown model"][1] == "model_profile: 'standard' cannot be chosen; allowed are advanced."
    assert found["send to a busy session"][1] == "The session is not waiting for a message: the agent is at work."


@requirement("roboto.package")
def test_a_turn_that_fails_gives_an_error_event_and_the_session_goes_on(release: Release) -> None:
    found = release.play("failure")
    assert found["events"] == ["StartText", "TextDelta", "TextEnd", "Error"]
    assert found["error"] == [["MODEL_ERROR", "The model failed."]]
    assert found["failed"][1] == ["assistant", "failed", ["About to fail. ", ["error", "MODEL_ERROR"]]]
    assert found["roles"] == ["user", "assistant", "user", "assistant"]
    assert found["same"]


@requirement("roboto.package", "protocol.crossed")
def test_a_session_is_read_continued_and_cancelled_through_other_protocols(release: Release) -> None:
    found = release.play("other_protocols")
    assert found["read"] == ["user", "assistant"]
    assert found["continued"] == [
        ["user", "completed", ["calculate 2+3"]],
        ["assistant", "completed", [["tool_use", {"expression": "2+3"}]]],
        ["roboto", "completed", [["tool_result", "success"]]],
        ["assistant", "completed", ["The result of calculate is 5."]],
    ]
    assert found["cancelled"] == ["CANCELLED"]
    assert found["status"] == ["user_turn", "cancelled"]


@NEWEST
@requirement("roboto.package")
def test_visibility_and_pin_are_kept_and_a_fork_has_neither(release: Release) -> None:
    assert release.play("pinned") == {
        "pinned": ["org", True],
        "fork": ["private", None],
        "unpinned": ["org", None],
    }


@requirement("roboto.package", "roboto.approvals")
def test_a_turn_that_meets_an_approval_says_so_and_the_next_message_is_answered(release: Release) -> None:
    found = release.play("approval")
    ((code, message),) = found["error"]
    assert (found["asked"], code) == (["ToolUse", "Error"], "APPROVAL_REQUIRED")
    assert "current_time" in message
    assert found["activity"] == "Waiting for an answer through another protocol: current_time"
    assert found["answered"] == ["StartText", "TextDelta", "TextEnd"]
    assert (found["latest"], found["after"]) == ([2 * HELLO], ["user_turn", None])
    assert found["same"]


@requirement("roboto.package", "roboto.delta")
def test_the_time_limit_of_a_run_holds_while_the_agent_is_silent(release: Release) -> None:
    found = release.play("short_run")
    assert found == {"raised": "TimeoutError", "is_running": True}


@requirement("roboto.package")
def test_a_fork_at_a_call_of_the_server_is_the_users_turn(release: Release) -> None:
    found = release.play("forked_at_call")
    assert (found["status"], found["latest"]) == ("user_turn", [2 * HELLO])
    assert found["last"] == ["assistant", "completed", [["tool_use", {"expression": "6*7"}]]]


@NEWEST
@requirement("roboto.package")
def test_a_message_of_another_client_is_readable_after_a_refresh(release: Release) -> None:
    found = release.play("two_clients")
    assert found == {"users": [["stream 1"], ["calculate 6*7"], ["stream 2"]], "same": True}


# --- the command ------------------------------------------------------------------------------------------------------


PATIENCE = 300.0
STYLE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours and movements of the cursor."""


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._here, there = pty.openpty()
        settings = {**environment, "TERM": "xterm", "COLUMNS": "120"}
        self._process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=settings)
        os.close(there)

    def type(self, line: str) -> None:
        os.write(self._here, f"{line}\n".encode())

    def read_until(self, text: str, seconds: float = PATIENCE) -> str:
        """Return the output of the terminal up to this text."""
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


@requirement("roboto.package")
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
