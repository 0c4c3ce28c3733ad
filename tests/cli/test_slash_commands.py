"""Commands that begin with a slash, in a real terminal."""

from pathlib import Path
from uuid import uuid4

from agui_client import SyncSession
from agui_container.cli.terminal.slash_commands import SLASH_COMMANDS
from tests.cli.terminal import EmulatedTerminal, open_chat
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

TAB = "\t"


@requirement("terminal.slash")
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


@requirement("terminal.slash")
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


@requirement("terminal.slash")
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


@requirement("terminal.slash")
def test_a_conversation_is_exported_as_markdown_and_as_json(scripted: ServerProcess, tmp_path: Path) -> None:
    with open_chat(scripted.invocations, home=tmp_path, columns=200) as terminal:
        terminal.send("reason\r")
        terminal.wait_for("42", "\n>\n")
        terminal.send(f"/export {tmp_path}/chat.md\r")
        terminal.send(f"/export {tmp_path}/chat.json\r")
        terminal.wait_for("Written to", count=2)
    assert (tmp_path / "chat.md").read_text() == "**User**\n\nreason\n\n**Assistant**\n\n42\n"
    assert '"content": "42"' in (tmp_path / "chat.json").read_text()
