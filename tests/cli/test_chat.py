"""The chat in a real terminal: keys in, screen out."""

import os
import signal
import stat
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from agui_container.cli.command_line import main
from tests.cli.terminal import EmulatedTerminal, open_chat, open_terminal
from tests.cli.terminal_agent import PARAGRAPHS, WIDE
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
PNG = b"\x89PNG\r\n\x1a\n"


@requirement("terminal.stream")
@pytest.mark.parametrize("columns", [80, 200])
def test_an_answer_is_printed_block_by_block_and_nothing_is_lost_or_doubled(
    scripted: ServerProcess, tmp_path: Path, columns: int
) -> None:
    with open_chat(scripted.invocations, home=tmp_path, columns=columns) as terminal:
        terminal.send("paragraphs\r")
        terminal.wait_for(f"Paragraph {PARAGRAPHS - 1} of the answer.", "\n>\n")
        shown = [line for line in terminal.text.splitlines() if line.startswith("Paragraph")]
        assert shown == [f"Paragraph {number} of the answer." for number in range(PARAGRAPHS)]


@requirement("terminal.stream")
def test_text_that_streams_takes_a_wider_terminal_and_doubles_nothing(chat: EmulatedTerminal) -> None:
    chat.send("stream\r")
    chat.wait_for("Paragraph 9 ")
    chat.resize(200)
    chat.wait_for(f"{WIDE}\n")
    chat.send(CTRL_C)
    chat.wait_for("\n>\n")
    wide = [line for line in chat.text.splitlines() if line.endswith(WIDE)]
    numbers = [int(line.split()[1]) for line in wide]
    assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]


@requirement("terminal.keys")
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


@requirement("terminal.approval")
def test_a_key_that_was_typed_before_a_question_does_not_answer_it(assistant: ServerProcess, tmp_path: Path) -> None:
    with open_chat(assistant.invocations, home=tmp_path) as terminal:
        terminal.send("calculate 6*7\ry")
        terminal.wait_for("[y] allow")
        terminal.send("n")
        terminal.wait_for("Reason for the model")
        terminal.send("\r")
        terminal.wait_for("denied", "\n>\n")


@requirement("terminal.items")
def test_reasoning_is_one_line_until_it_is_asked_for(chat: EmulatedTerminal) -> None:
    chat.send("reason\r")
    chat.wait_for("Thought for 0.", "42", "\n>\n")
    assert "known number" not in chat.text
    chat.send("/reasoning\r")
    chat.wait_for("Reasoning is shown in full.")
    chat.send("reason\r")
    chat.wait_for("Six times seven is a known number.")


@requirement("terminal.items")
def test_a_call_shows_its_arguments_its_result_and_how_long_it_took(tmp_path: Path) -> None:
    with ServerProcess(AGUI_AGENT="assistant") as server, open_chat(server.invocations, home=tmp_path) as terminal:
        terminal.send("calculate 6*7\r")
        terminal.wait_for('✓ calculate {"expression": "6*7"}  0.', "\n  42\n", "The result of calculate is 42.")


@requirement("terminal.items")
def test_the_text_of_a_subagent_is_indented(chat: EmulatedTerminal) -> None:
    chat.send("subagent\r")
    chat.wait_for("• painter: paints", "\n   I paint.", "\nIt is painted.")


@requirement("terminal.controls")
def test_control_characters_of_an_agent_are_shown_and_not_obeyed(chat: EmulatedTerminal) -> None:
    chat.send("escape\r")
    chat.wait_for("before \ufffd[2J\ufffd]0;title\ufffd after", "/help lists the commands.")
    assert chat.screen.title == ""


@requirement("terminal.approval")
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


@requirement("terminal.approval")
def test_the_arguments_of_a_call_are_changed_in_an_editor(assistant: ServerProcess, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    fails_once = f"test -e {tmp_path}/tried || {{ touch {tmp_path}/tried; exit 1; }}"
    editor.write_text(f'#!/bin/sh\n{fails_once}\nkill -INT $PPID\nsed -i "s/6\\*7/6*8/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    with open_chat(assistant.invocations, home=tmp_path, columns=200, EDITOR=str(editor)) as terminal:
        terminal.send("calculate 6*7\r")
        terminal.wait_for("[y] allow")
        terminal.send("e")
        terminal.wait_for("Editing failed")
        terminal.send("e")
        terminal.wait_for("The result of calculate is 48.")


@requirement("terminal.form")
def test_a_question_with_a_schema_is_a_form(chat: EmulatedTerminal) -> None:
    chat.send("form\r")
    chat.wait_for("Which paint?", "1. red", "2. blue", "1 to 2:")
    chat.send("7\r")
    chat.wait_for("This does not fit.")
    chat.send("2\r")
    chat.wait_for("coats (a number):")
    chat.send("9\r")
    chat.wait_for("glossy (Enter for none) [y/n]:")
    chat.send("\r")
    chat.wait_for("coats: 9 is greater than the maximum of 3")
    for answer in ("2\r", "3\r", "y\r"):
        chat.send(answer)
    chat.wait_for("The answer is {'colour': 'blue', 'coats': 3, 'glossy': True}.")


@requirement("terminal.cancel")
def test_ctrl_c_cancels_the_run_and_not_the_program(chat: EmulatedTerminal) -> None:
    chat.send("wait\r")
    chat.wait_for("I wait.")
    chat.send(CTRL_C)
    chat.wait_for("\n>\n")
    chat.send("hello\r")
    chat.wait_for("3 messages, state")
    chat.send(CTRL_D)
    assert chat.wait_for_end() == 0


@requirement("terminal.errors")
def test_an_error_ends_the_turn_and_not_the_chat(chat: EmulatedTerminal) -> None:
    chat.send("fail now\r")
    chat.wait_for("AGENT_ERROR: ", "\n>\n")
    chat.send("/open nothing\r")
    chat.wait_for("THREAD_NOT_FOUND: ")
    chat.send("/nothing\r")
    chat.wait_for("There is no command /nothing: /help lists them.")
    chat.send("hello\r")
    chat.wait_for("messages, state")


@requirement("terminal.errors")
@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("ftp://localhost", "is no URL of http, https, ws or wss"),
        ("localhost:1", "No connection: The request to localhost:1 failed"),
    ],
)
def test_a_server_that_cannot_be_reached_is_one_line(tmp_path: Path, server: str, said: str) -> None:
    with open_terminal("chat", server, home=tmp_path) as terminal:
        assert terminal.wait_for_end() == 2
        assert said in terminal.text.replace("\n", "")


@requirement("terminal.cancel")
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


@requirement("terminal.files")
def test_a_path_in_a_message_sends_the_file(scripted: ServerProcess, tmp_path: Path) -> None:
    image = tmp_path / "a photo.png"
    image.write_bytes(PNG)
    with open_chat(scripted.invocations, home=tmp_path, columns=200) as terminal:
        terminal.send(f"parts '{image}'\r")
        terminal.wait_for("Sent with a photo.png, 8 bytes.", "I have ['text', 'image'].", "\n>\n")
        image.chmod(0)
        terminal.send(f"'{image}'\r")
        terminal.wait_for("Sent with a photo.png", count=2)


@requirement("terminal.continue")
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


@requirement("terminal.continue")
def test_messages_to_one_server_are_not_offered_for_another(
    chat: EmulatedTerminal, assistant: ServerProcess, tmp_path: Path
) -> None:
    chat.send("reason only here\r")
    chat.wait_for("42", "\n>\n")
    with open_chat(assistant.invocations, home=tmp_path) as terminal:
        terminal.send("think about rain\r")
        terminal.wait_for("I have thought about rain.", "\n>\n")
        terminal.send(UP + UP + " and snow\r")
        terminal.wait_for("> think about rain and snow", "I have thought about rain and snow.")


@requirement("terminal.continue")
def test_a_chat_continues_in_the_session_of_agentcore(scripted: ServerProcess, tmp_path: Path) -> None:
    session = str(uuid4())
    with open_chat(scripted.invocations, "--session", session, home=tmp_path) as terminal:
        terminal.send("hello there\r")
        terminal.wait_for("1 messages, state")
    with open_chat(scripted.invocations, "--continue", home=tmp_path) as terminal:
        terminal.wait_for("hello there", "1 messages, state")
        assert "cannot be continued" not in terminal.text
    other = ("--continue", "--session", str(uuid4()))
    with open_chat(scripted.invocations, *other, home=tmp_path, columns=200) as terminal:
        terminal.wait_for("cannot be continued: THREAD_NOT_FOUND")


@requirement("terminal.serves")
def test_an_agent_of_a_module_is_served_meanwhile_and_its_threads_are_kept(tmp_path: Path) -> None:
    agent = "tests.cli.terminal_agent:agent"
    with open_chat(agent, home=tmp_path, folder=tmp_path) as terminal:
        terminal.send("hello there\r")
        terminal.wait_for("1 messages, state", "\n>\n")
        terminal.hang_up()
    with open_chat(agent, "--continue", home=tmp_path, folder=tmp_path) as terminal:
        terminal.wait_for("hello there", "1 messages, state")
        terminal.send("/threads\r")
        terminal.wait_for("  1. ")
    with open_terminal("threads", "list", home=tmp_path, folder=tmp_path, columns=200) as terminal:
        assert terminal.wait_for_end() == 0
        assert terminal.text.count('{"threadId"') == 1


@requirement("terminal.serves")
def test_an_agent_that_cannot_be_served_is_explained(tmp_path: Path) -> None:
    with open_terminal(
        "chat", "tests.cli.terminal_agent:nothing", home=tmp_path, folder=tmp_path, columns=200
    ) as terminal:
        assert terminal.wait_for_end() == 2
        assert "The agent could not be served." in terminal.text
        assert "nothing" in terminal.text


@requirement("terminal.plain")
@pytest.mark.parametrize(("no_color", "term"), [("1", "xterm-256color"), ("", "dumb")], ids=["NO_COLOR", "dumb"])
def test_a_terminal_that_wants_plain_text_gets_it(
    scripted: ServerProcess, tmp_path: Path, no_color: str, term: str
) -> None:
    with open_chat(scripted.invocations, home=tmp_path, columns=200, NO_COLOR=no_color, TERM=term) as terminal:
        terminal.send("subagent\n")
        terminal.wait_for("- painter: paints", "\n  I paint.", "\nIt is painted.")
        terminal.send("form\n")
        terminal.wait_for("1 to 2:")
        terminal.send("1\n2\n\n")
        terminal.wait_for("The answer is {'colour': 'red', 'coats': 2}.", "\n>\n")
        terminal.send(CTRL_C)
        terminal.wait_for("\n> ^C>")
        terminal.send("reason\n")
        terminal.wait_for("\n42\n")
        terminal.send(CTRL_D)
        assert terminal.wait_for_end() == 0
        assert "\x1b" not in terminal.written


@requirement("terminal.plain")
def test_each_line_of_a_pipe_is_a_message(
    scripted: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    messages = tmp_path / "messages"
    messages.write_text("reason\n/reasoning\nsubagent")
    with messages.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["chat", scripted.invocations]) == 0
    shown = capsys.readouterr().out.splitlines()[1:]
    assert shown == [
        "(thought for 0.0 s)",
        *("42", "Reasoning is shown in full.", "- painter: paints", "  I paint.", "It is painted."),
    ]
