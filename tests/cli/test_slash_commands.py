"""Commands that begin with a slash, in a real terminal."""

from pathlib import Path
from uuid import uuid4

import pytest

from agui_client import SyncSession
from agui_container.cli.terminal.chat import SLASH_COMMANDS
from tests.cli.terminal import EmulatedTerminal, open_chat
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]

TAB = "\t"


def test_slash_commands_complete_and_move_between_threads(chat: EmulatedTerminal) -> None:
    chat.send("first thread\r")
    chat.wait_for("1 messages, state", "\n>\n")
    chat.send("/ren")
    chat.wait_for("give the thread a title")
    chat.send(TAB + " The first\r")
    chat.send("/new\r")
    chat.wait_for("A new conversation begins.")
    chat.send("/threads\r")
    chat.wait_for("  1. The first")
    chat.send("/open 1\r")
    chat.wait_for("User", count=1)
    chat.send("again\r")
    chat.wait_for("3 messages, state")
    chat.send("/fork 0\r")
    chat.wait_for("continues in the copy")
    chat.send("once more\r")
    chat.wait_for("2 messages, state")


def test_a_thread_is_opened_by_the_begin_of_its_id_and_shows_its_state(scripted: ServerProcess, tmp_path: Path) -> None:
    with SyncSession(scripted.invocations, thread_id=f"begin-{uuid4()}", state={"paint": "red"}) as session:
        session.send_text("reason").run().rename("The one with paint")
    with open_chat(scripted.invocations, home=tmp_path, columns=200) as terminal:
        terminal.send("/threads\r")
        terminal.wait_for(". The one with paint")
        terminal.send("/open begin-")
        terminal.wait_for(session.thread_id)
        terminal.send(TAB)
        terminal.wait_for(f"> /open {session.thread_id}")
        terminal.send("\r")
        terminal.wait_for("reason", "42")
        terminal.send("/state\r")
        terminal.wait_for('"paint": "red"')


def test_slash_commands_list_themselves_choose_a_model_show_usage_and_end_the_chat(tmp_path: Path) -> None:
    with (
        ServerProcess(AGUI_AGENT="assistant", AGUI_MODELS="quick=offline,thorough=offline") as server,
        open_chat(server.invocations, home=tmp_path, columns=200) as terminal,
    ):
        terminal.send("/help\r")
        terminal.wait_for(*(f"{name} " for name in SLASH_COMMANDS), "A path sends the file.")
        terminal.send("/model th")
        terminal.wait_for("thorough")
        terminal.send(TAB + "\r")
        terminal.wait_for("  quick", "* thorough")
        terminal.send("hello\r")
        terminal.wait_for("\n>\n")
        terminal.send("/usage\r")
        terminal.wait_for(" in, ", " out\n")
        terminal.send("/quit\r")
        assert terminal.wait_for_end() == 0
