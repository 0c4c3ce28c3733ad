"""The chat in a real terminal: keys in, screen out."""

import stat
import sys
from io import StringIO
from pathlib import Path

import pytest
from ag_ui.core import TextMessageContentEvent, TextMessageStartEvent
from rich.console import Console

from agui_container.cli.command_line import main
from agui_container.cli.terminal.screen import Screen
from tests.cli.terminal import open_terminal
from tests.cli.terminal_agent import PARAGRAPHS
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

CTRL_C, CTRL_D, UP, TAB = "\x03", "\x04", "\x1b[A", "\t"
PNG = b"\x89PNG\r\n\x1a\n"
DELTAS = 20_000


@requirement("terminal.stream")
@pytest.mark.parametrize("columns", [80, 200])
def test_an_answer_is_printed_block_by_block_and_nothing_is_lost_or_doubled(
    scripted: ServerProcess, tmp_path: Path, columns: int
) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path, columns=columns) as terminal:
        terminal.wait_for("\n>")
        terminal.send("paragraphs\r")
        terminal.wait_for(f"Paragraph {PARAGRAPHS - 1} of the answer.", "\n>\n")
        shown = [line for line in terminal.text.splitlines() if line.startswith("Paragraph")]
        assert shown == [f"Paragraph {number} of the answer." for number in range(PARAGRAPHS)]


@requirement("terminal.stream")
def test_a_change_of_the_width_in_mid_stream_loses_no_text(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path, columns=200) as terminal:
        terminal.wait_for("\n>")
        terminal.send("wait\r")
        terminal.wait_for("I wait.")
        terminal.resize(80)
        terminal.send(CTRL_C)
        terminal.wait_for("\n>\n")
        terminal.send("hello\r")
        terminal.wait_for("I wait.", "messages, state")


@requirement("terminal.items")
def test_reasoning_is_one_line_until_it_is_asked_for(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("reason\r")
        terminal.wait_for("Thought for 0.", "42", "\n>\n")
        assert "known number" not in terminal.text
        terminal.send("/reasoning\r")
        terminal.wait_for("Reasoning is shown in full.")
        terminal.send("reason\r")
        terminal.wait_for("Six times seven is a known number.")


@requirement("terminal.items")
def test_a_call_shows_its_arguments_its_result_and_how_long_it_took(tmp_path: Path) -> None:
    with (
        ServerProcess(AGUI_AGENT="assistant") as server,
        open_terminal("chat", server.invocations, home=tmp_path) as terminal,
    ):
        terminal.wait_for("\n>")
        terminal.send("calculate 6*7\r")
        terminal.wait_for('✓ calculate {"expression": "6*7"}  0.', "\n  42\n", "The result of calculate is 42.")


@requirement("terminal.items")
def test_the_text_of_a_subagent_is_indented(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("subagent\r")
        terminal.wait_for("• painter: paints", "\n   I paint.", "\nIt is painted.")


@requirement("terminal.controls")
def test_control_characters_of_an_agent_are_shown_and_not_obeyed(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("escape\r")
        terminal.wait_for("before \ufffd[2J\ufffd]0;title\ufffd after", "/help lists the commands.")
        assert terminal.screen.title == ""


@requirement("terminal.approval")
@pytest.mark.parametrize(
    ("keys", "shown"),
    [("y", "The result of calculate is 42."), ("n|too large\r", "too large"), ("l", "calculate {")],
    ids=["allow", "deny", "later"],
)
def test_one_key_decides_about_a_call(assistant: ServerProcess, tmp_path: Path, keys: str, shown: str) -> None:
    with open_terminal("chat", assistant.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
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
    editor.write_text('#!/bin/sh\nsed -i "s/6\\*7/6*8/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    with open_terminal("chat", assistant.invocations, home=tmp_path, EDITOR=str(editor)) as terminal:
        terminal.wait_for("\n>")
        terminal.send("calculate 6*7\r")
        terminal.wait_for("[y] allow")
        terminal.send("e")
        terminal.wait_for("The result of calculate is 48.")


@requirement("terminal.form")
def test_a_question_with_a_schema_is_a_form(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("form\r")
        terminal.wait_for("Which paint?", "1. red", "2. blue", "1 to 2:")
        terminal.send("7\r")
        terminal.wait_for("This does not fit.")
        terminal.send("2\r")
        terminal.wait_for("coats (a number):")
        terminal.send("9\r")
        terminal.wait_for("glossy (Enter for none) [y/n]:")
        terminal.send("\r")
        terminal.wait_for("coats: 9 is greater than the maximum of 3")
        for answer in ("2\r", "3\r", "y\r"):
            terminal.send(answer)
        terminal.wait_for("The answer is {'colour': 'blue', 'coats': 3, 'glossy': True}.")


@requirement("terminal.cancel")
def test_ctrl_c_cancels_the_run_and_not_the_program(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("wait\r")
        terminal.wait_for("I wait.")
        terminal.send(CTRL_C)
        terminal.wait_for("\n>\n")
        terminal.send("hello\r")
        terminal.wait_for("3 messages, state")
        terminal.send(CTRL_D)
        assert terminal.wait_for_end() == 0


@requirement("terminal.errors")
def test_an_error_ends_the_turn_and_not_the_chat(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("fail now\r")
        terminal.wait_for("AGENT_ERROR: ", "\n>\n")
        terminal.send("/open nothing\r")
        terminal.wait_for("THREAD_NOT_FOUND: ")
        terminal.send("/nothing\r")
        terminal.wait_for("There is no command /nothing: /help lists them.")
        terminal.send("hello\r")
        terminal.wait_for("messages, state")


@requirement("terminal.errors")
def test_a_server_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    with open_terminal("chat", "ftp://localhost", home=tmp_path) as terminal:
        assert terminal.wait_for_end() == 2
        assert "is no URL of http, https, ws or wss" in terminal.text.replace("\n", "")


@requirement("terminal.files")
def test_a_path_in_a_message_sends_the_file(scripted: ServerProcess, tmp_path: Path) -> None:
    image = tmp_path / "a photo.png"
    image.write_bytes(PNG)
    with open_terminal("chat", scripted.invocations, home=tmp_path, columns=200) as terminal:
        terminal.wait_for("\n>")
        terminal.send(f"parts '{image}'\r")
        terminal.wait_for("Sent with a photo.png, 8 bytes.", "I have ['text', 'image'].")


@requirement("terminal.slash")
def test_slash_commands_complete_and_move_between_threads(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("first thread\r")
        terminal.wait_for("1 messages, state", "\n>\n")
        terminal.send("/ren")
        terminal.wait_for("give the thread a title")
        terminal.send(TAB + " The first\r")
        terminal.send("/new\r")
        terminal.wait_for("A new conversation begins.")
        terminal.send("/threads\r")
        terminal.wait_for("  1. The first")
        terminal.send("/open 1\r")
        terminal.wait_for("User", count=1)
        terminal.send("again\r")
        terminal.wait_for("3 messages, state")
        terminal.send("/fork 0\r")
        terminal.wait_for("continues in the copy")
        terminal.send("once more\r")
        terminal.wait_for("2 messages, state")


@requirement("terminal.slash")
def test_a_conversation_is_exported_as_markdown_and_as_json(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path, columns=200) as terminal:
        terminal.wait_for("\n>")
        terminal.send("reason\r")
        terminal.wait_for("42", "\n>\n")
        terminal.send(f"/export {tmp_path}/chat.md\r")
        terminal.send(f"/export {tmp_path}/chat.json\r")
        terminal.wait_for("Written to", count=2)
    assert (tmp_path / "chat.md").read_text() == "**User**\n\nreason\n\n**Assistant**\n\n42\n"
    assert '"content": "42"' in (tmp_path / "chat.json").read_text()


@requirement("terminal.continue")
def test_a_chat_continues_the_last_thread_of_its_server(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("hello there\r")
        terminal.wait_for("1 messages, state", "\n>\n")
        terminal.send(CTRL_D)
        assert terminal.wait_for_end() == 0
    with open_terminal("chat", scripted.invocations, "--continue", "--ws", home=tmp_path) as terminal:
        terminal.wait_for("hello there", "1 messages, state")
        terminal.send(UP)
        terminal.wait_for("> hello there")
        terminal.send("\r")
        terminal.wait_for("3 messages, state")


@requirement("terminal.serves")
def test_an_agent_of_a_module_is_served_meanwhile(tmp_path: Path) -> None:
    with open_terminal("chat", "tests.cli.terminal_agent:agent", home=tmp_path) as terminal:
        terminal.wait_for("\n>")
        terminal.send("reason\r")
        terminal.wait_for("42", "\n>\n")
        terminal.send(CTRL_D)
        assert terminal.wait_for_end() == 0


@requirement("terminal.serves")
def test_an_agent_that_cannot_be_served_is_explained(tmp_path: Path) -> None:
    with open_terminal("chat", "tests.cli.terminal_agent:nothing", home=tmp_path, columns=200) as terminal:
        assert terminal.wait_for_end() == 2
        assert "The agent could not be served." in terminal.text
        assert "nothing" in terminal.text


@requirement("terminal.plain")
@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_a_terminal_that_wants_plain_text_gets_it(scripted: ServerProcess, tmp_path: Path, env: dict[str, str]) -> None:
    with open_terminal("chat", scripted.invocations, home=tmp_path, columns=200, **env) as terminal:
        terminal.wait_for("\n>")
        terminal.send("subagent\n")
        terminal.wait_for("- painter: paints", "\n  I paint.", "\nIt is painted.")
        terminal.send("form\n1\n2\n\n")
        terminal.wait_for("The answer is {'colour': 'red', 'coats': 2}.")
        assert "\x1b" not in terminal.written


@requirement("terminal.plain")
def test_each_line_of_a_pipe_is_a_message(
    scripted: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", StringIO("reason\n/reasoning\nsubagent\n"))
    assert main(["chat", scripted.invocations]) == 0
    shown = capsys.readouterr().out.splitlines()[1:]
    assert shown == [
        "(thought for 0.0 s)",
        *("42", "Reasoning is shown in full.", "- painter: paints", "  I paint.", "It is painted."),
    ]


@requirement("terminal.light")
async def test_a_delta_draws_nothing_by_itself() -> None:
    output = StringIO()
    screen = Screen(Console(file=output, force_terminal=True, width=80, height=40))
    async with screen.turn() as show:
        show(TextMessageStartEvent(message_id="m", role="assistant"))
        before = output.tell()
        for number in range(DELTAS):
            show(TextMessageContentEvent(message_id="m", delta=f"{number} "))
        assert output.tell() == before
    assert f" {DELTAS - 1}" in output.getvalue()
