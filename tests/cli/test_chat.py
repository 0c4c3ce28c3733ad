"""The chat in a real terminal: keys in, screen out."""

import json
import os
import re
import signal
from pathlib import Path
from uuid import uuid4

import pytest

from agui_client import SyncSession
from agui_container.cli.command_line import main
from agui_container.cli.terminal.chat import SLASH_COMMANDS
from tests.cli.terminal import EmulatedTerminal, open_chat, open_terminal
from tests.server.sockets.process import ServerProcess
from tests.web.console.apps_process import APPS_SERVER

pytestmark = [pytest.mark.wire, pytest.mark.processes]

CTRL_C, CTRL_D, UP, TAB = "\x03", "\x04", "\x1b[A", "\t"
PNG = b"\x89PNG\r\n\x1a\n"


def test_keys_that_are_typed_while_text_streams_are_the_next_message(chat: EmulatedTerminal) -> None:
    chat.send("stream\r")
    chat.wait_for("Paragraph 9 ")
    chat.send("lines a")
    chat.wait_for("Paragraph 19 ")
    assert "lines a" not in chat.text
    chat.send(CTRL_C)
    chat.wait_for("> lines a")
    chat.send("\x1b[200~ b\nc\nd\x1b[201~\r")  # how a terminal pastes
    chat.wait_for("I have 3 lines.")
    numbers = [int(line.split()[1]) for line in chat.text.splitlines() if line.startswith("Paragraph")]
    assert numbers == [*range(len(numbers))]


def test_a_key_that_was_typed_before_a_question_does_not_answer_it(assistant: ServerProcess, tmp_path: Path) -> None:
    with open_chat(assistant.invocations, home=tmp_path) as terminal:
        terminal.send("calculate 6*7\ry")
        terminal.wait_for("[y] allow")
        terminal.send("n")
        terminal.wait_for("Reason for the model")
        terminal.send("\r")
        terminal.wait_for("denied", "\n>\n")


def test_reasoning_is_one_line(chat: EmulatedTerminal) -> None:
    chat.send("reason\r")
    chat.wait_for("Thought for 0.", "42", "\n>\n")
    assert "known number" not in chat.text


def test_a_call_shows_its_arguments_its_result_and_how_long_it_took(tmp_path: Path) -> None:
    servers = json.dumps([APPS_SERVER])
    with (
        ServerProcess(AGUI_AGENT="assistant", AGUI_MCP_SERVERS=servers) as server,
        open_chat(server.invocations, home=tmp_path) as terminal,
    ):
        terminal.send("calculate 6*7\r")
        terminal.wait_for('✓ calculate {"expression": "6*7"}  0.', "\n  42\n", "The result of calculate is 42.")
        terminal.send("call apps_show {}\r")
        terminal.wait_for("\n  tea is shown\n", "There is an app of apps. The chat page shows it.")


def test_control_characters_of_an_agent_are_shown_and_not_obeyed(chat: EmulatedTerminal) -> None:
    chat.send("escape\r")
    chat.wait_for("before \ufffd[2J\ufffd]0;title\ufffd after", "/help lists the commands.")
    assert chat.screen.title == ""


@pytest.mark.parametrize(
    ("keys", "shown"),
    [("y", "The result of calculate is 42."), ("n|too large\r", "too large"), ("l", "calculate {")],
    ids=["allow", "deny", "later"],
)
def test_one_key_decides_about_a_call(assistant: ServerProcess, tmp_path: Path, keys: str, shown: str) -> None:
    with open_chat(assistant.invocations, home=tmp_path) as terminal:
        terminal.send("calculate 6*7\r")
        terminal.wait_for("[y] allow", "numbers matter", '"expression": "6*7"')
        key, _, reason = keys.partition("|")
        terminal.send(key)
        if reason:
            terminal.wait_for("Reason for the model")
            terminal.send(reason)
        terminal.wait_for(shown, "\n>\n")


def test_the_arguments_of_a_call_are_changed(assistant: ServerProcess, tmp_path: Path) -> None:
    with open_chat(assistant.invocations, home=tmp_path, columns=200) as terminal:
        terminal.send("calculate 6*7\r")
        for typed, reason in (("x\r", "This is no JSON"), ("\x15[]\r", "must be a JSON object")):
            terminal.wait_for("[y] allow")
            terminal.send("e")
            terminal.wait_for('Arguments: {"expression": "6*7"}')
            terminal.send(typed)
            terminal.wait_for(reason)
        terminal.send("e")
        terminal.wait_for('Arguments: {"expression": "6*7"}', count=2)
        terminal.send("\x7f\x7f\x7f8" + '"}\r')
        terminal.wait_for("The result of calculate is 48.")


def test_ctrl_c_cancels_the_run_and_not_the_program(chat: EmulatedTerminal) -> None:
    chat.send("wait\r")
    chat.wait_for("I wait.")
    chat.send(CTRL_C)
    chat.wait_for("\n>\n")
    chat.send("hello\r")
    chat.wait_for("3 messages, state")
    chat.send(CTRL_D)
    assert chat.wait_for_end() == 0


def test_an_error_ends_the_turn_and_not_the_chat(chat: EmulatedTerminal) -> None:
    chat.send("fail now\r")
    chat.wait_for("AGENT_ERROR: ", "\n>\n")
    chat.send("/open nothing\r")
    chat.wait_for("THREAD_NOT_FOUND: ")
    chat.send("/nothing\r")
    chat.wait_for("There is no command /nothing: /help lists them.")
    chat.send("hello\r")
    chat.wait_for("messages, state")


def test_a_server_that_hangs_and_dies_is_left_by_ctrl_c(tmp_path: Path) -> None:
    agent = {"AGUI_AGENT": "tests.cli.terminal_agent:agent"}
    ending = tmp_path / "ending"
    with ServerProcess(**agent) as server, open_chat(server.invocations, home=tmp_path, columns=200) as terminal:
        terminal.send(f"until {ending}\r")
        terminal.wait_for("I go on.")
        os.kill(server.pid, signal.SIGSTOP)
        terminal.send(CTRL_C)
        terminal.wait_for("The run is cancelled.")
        terminal.send(CTRL_C)
        terminal.wait_for("The run was left. It may continue at the server.", "\n>\n")
        terminal.send("/threads\r")
        terminal.wait_for("\n> /threads\n")
        terminal.send(CTRL_C)
        terminal.wait_for("\n> /threads\n^C>")
        ending.touch()  # the server may or may not have got the cancel before it was left
        os.kill(server.pid, signal.SIGCONT)
        terminal.send("hello\r")
        terminal.wait_for("3 messages, state", "\n>\n")
        terminal.send("wait\r")
        terminal.wait_for("I wait.")
        server.kill()
        terminal.wait_for("Trying again for 60 s.")
        terminal.send(CTRL_C)
        terminal.wait_for("The run is cancelled.", count=2)
        terminal.send(CTRL_C)
        terminal.wait_for("The run was left.", count=2)
        terminal.send(CTRL_D)
        assert terminal.wait_for_end() == 0


def test_a_path_in_a_message_sends_the_file(scripted: ServerProcess, tmp_path: Path) -> None:
    image = tmp_path / "a photo.png"
    image.write_bytes(PNG)
    with open_chat(scripted.invocations, home=tmp_path, columns=200) as terminal:
        terminal.send(f"parts '{image}'\r")
        terminal.wait_for("Sent with a photo.png, 8 bytes.", "I have ['text', 'image'].", "\n>\n")
        image.chmod(0)
        terminal.send(f"'{image}'\r")
        terminal.wait_for("Sent with a photo.png", count=2)


def test_a_chat_continues_the_last_thread_of_its_server(
    scripted: ServerProcess, chat: EmulatedTerminal, tmp_path: Path
) -> None:
    chat.send("hello there\r")
    chat.wait_for("1 messages, state", "\n>\n")
    chat.send(CTRL_D)
    assert chat.wait_for_end() == 0
    with open_terminal("chat", scripted.invocations, "--continue", "--ws", home=tmp_path) as terminal:
        terminal.wait_for("hello there", "1 messages, state")
        terminal.send(UP)
        terminal.wait_for("> hello there")
        terminal.send("\r")
        terminal.wait_for("3 messages, state")


def test_an_agent_of_a_module_is_served_meanwhile_and_its_threads_are_kept(tmp_path: Path) -> None:
    agent = "tests.cli.terminal_agent:agent"
    with open_chat(agent, home=tmp_path, folder=tmp_path) as terminal:
        terminal.send("hello there\r")
        terminal.wait_for("1 messages, state", "\n>\n")
        terminal.send("fail now\r")
        terminal.wait_for("AGENT_ERROR: ", "RuntimeError: now", "\n>\n")
        terminal.hang_up()
    with open_chat(agent, "--continue", home=tmp_path, folder=tmp_path) as terminal:
        terminal.wait_for("hello there", "1 messages, state")
        terminal.send("/threads\r")
        terminal.wait_for("  1. ")


@pytest.mark.parametrize(("no_color", "term"), [("1", "xterm-256color"), ("", "dumb")], ids=["NO_COLOR", "dumb"])
def test_a_terminal_without_colours_gets_none(
    scripted: ServerProcess, tmp_path: Path, no_color: str, term: str
) -> None:
    with open_chat(scripted.invocations, home=tmp_path, columns=200, NO_COLOR=no_color, TERM=term) as terminal:
        terminal.send("subagent\r")
        terminal.wait_for("• painter: paints", "\nIt is painted.")
        assert "I paint." not in terminal.text
        terminal.send("form\r")
        terminal.wait_for('"red"', "colour:")
        terminal.send("red\r")
        terminal.wait_for("coats:")
        terminal.send("2\r")
        terminal.wait_for("glossy")
        terminal.send("\r")
        terminal.wait_for("The answer is {'colour': 'red', 'coats': 2}.", "\n>")
        terminal.send(CTRL_D)
        assert terminal.wait_for_end() == 0
        assert not re.search(r"\x1b\[[\d;]*[349]\d[\d;]*m", terminal.written)


def test_a_pipe_is_led_to_the_command_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "localhost:1"]) == 2
    assert "agui chat needs a terminal. For scripts: agui invoke localhost:1 TEXT" in capsys.readouterr().err


def test_slash_commands_complete_and_move_between_threads(scripted: ServerProcess, tmp_path: Path) -> None:
    with SyncSession(scripted.invocations, thread_id=f"begin-{uuid4()}") as session:
        session.send_text("hello there").run().rename("The first")
    with open_chat(scripted.invocations, home=tmp_path, columns=200) as terminal:
        terminal.send("/thr")
        terminal.wait_for("list the threads of the server")
        terminal.send(TAB + "\r")
        terminal.wait_for("  1. The first")
        terminal.send("/open 1\r")
        terminal.wait_for("hello there")
        terminal.send("again\r")
        terminal.wait_for("3 messages, state")
        terminal.send("/new\r")
        terminal.wait_for("A new conversation begins.")
        terminal.send("again\r")
        terminal.wait_for("1 messages, state", count=2)
        terminal.send(f"/open {session.thread_id}\r")
        terminal.wait_for("3 messages, state", count=2)


def test_slash_commands_list_themselves_choose_a_model_and_end_the_chat(tmp_path: Path) -> None:
    with (
        ServerProcess(AGUI_AGENT="assistant", AGUI_MODELS="quick=offline,thorough=offline") as server,
        open_chat(server.invocations, home=tmp_path, columns=200) as terminal,
    ):
        terminal.send("/help\r")
        terminal.wait_for(*(f"{name} " for name in SLASH_COMMANDS), "A path sends the file.")
        terminal.send("/model thorough\r")
        terminal.wait_for("  quick", "* thorough")
        terminal.send("hello\r")
        terminal.wait_for("\n>\n")
        terminal.send("/model slow\r")
        terminal.wait_for("The server offers no model slow.")
        terminal.send("/quit\r")
        assert terminal.wait_for_end() == 0
