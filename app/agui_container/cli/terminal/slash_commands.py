"""Commands that begin with a slash: about threads, models and the conversation itself.

Rule: a command is a function of the chat and of the text after its name. ``EOFError`` ends the chat.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agui_client import Session
from agui_container.cli.export import as_json, export
from agui_container.cli.failure import CommandFailed
from agui_container.cli.terminal.chat_state import ChatState

NAME = re.compile(r"/[\w-]*(\s|$)")
"""The begin of a command. A path, which a terminal pastes for a dropped file, has a second slash."""

KEYS = "Alt-Enter begins a new line, Ctrl-C cancels the run, Ctrl-D ends the chat. A path sends the file."


async def show_help(chat: ChatState, _: str) -> None:
    rows = {f"{name} {command.argument}".rstrip(): command.summary for name, command in SLASH_COMMANDS.items()}
    width = max(map(len, rows))
    chat.screen.note("\n".join(f"{shown:{width}}  {summary}" for shown, summary in rows.items()))
    chat.screen.note(KEYS)


async def begin_thread(chat: ChatState, _: str) -> None:
    await chat.change_session(Session(chat.target.url, **chat.target.options))
    chat.screen.note("A new conversation begins.")


async def list_threads(chat: ChatState, _: str) -> None:
    listed = await chat.session.command("threads.list")
    found = listed.get("threads")
    threads = [thread for thread in found if isinstance(thread, Mapping)] if isinstance(found, list) else []
    chat.listed = [str(thread["threadId"]) for thread in threads]
    rows = [f"{at:3}. {thread.get('title') or thread['threadId']}" for at, thread in enumerate(threads, 1)]
    if listed.get("next") is not None:
        rows.append("There are older ones: agui threads list SERVER")
    chat.screen.note("\n".join(rows) or "There are no threads.")


async def open_thread(chat: ChatState, argument: str) -> None:
    is_number = argument.isdigit() and 1 <= int(argument) <= len(chat.listed)
    await chat.open_thread(chat.listed[int(argument) - 1] if is_number else argument)


async def fork_thread(chat: ChatState, argument: str) -> None:
    try:
        forked = await chat.session.fork(int(argument or -1))
    except (ValueError, IndexError):
        last = len(chat.session.messages) - 1
        chat.screen.error(f"There is no message {argument}: messages are numbered from 0 to {last}.")
        return
    await chat.change_session(forked)
    chat.screen.note(f"The conversation continues in the copy {forked.thread_id}.")


async def rename_thread(chat: ChatState, argument: str) -> None:
    await chat.session.rename(argument or None)


async def choose_model(chat: ChatState, argument: str) -> None:
    if argument and argument in chat.models:
        chat.forwarded_props["model"] = argument
    elif argument:
        chat.screen.error(f"The server offers no model {argument}.")
    current = chat.forwarded_props.get("model")
    rows = [f"{'*' if name == current else ' '} {name}" for name in chat.models]
    chat.screen.note("\n".join(rows) or "The server lets nobody choose a model.")


async def toggle_reasoning(chat: ChatState, _: str) -> None:
    chat.screen.shows_reasoning = not chat.screen.shows_reasoning
    chat.screen.note(f"Reasoning is shown {'in full' if chat.screen.shows_reasoning else 'as one line'}.")


async def show_usage(chat: ChatState, _: str) -> None:
    used = chat.session.usage
    rows = [f"{it.model or 'model'}: {it.input_tokens or 0} in, {it.output_tokens or 0} out" for it in used]
    chat.screen.note("\n".join(rows) or "No tokens were reported.")


async def show_state(chat: ChatState, _: str) -> None:
    chat.screen.markdown(f"```json\n{as_json(chat.session.state)}\n```")


async def export_thread(chat: ChatState, argument: str) -> None:
    name = re.sub(r"[^\w-]+", "-", chat.session.thread_id)  # a server or another client may have chosen the id
    path = Path(argument or f"{name}.md").expanduser()  # noqa: ASYNC240 - it looks nothing up
    try:
        export(chat.session, path)
    except CommandFailed as error:
        chat.screen.error(error.message)
    else:
        chat.screen.note(f"Written to {path}.")


async def end_chat(_: ChatState, __: str) -> None:
    raise EOFError


class SlashCommand(NamedTuple):
    """A command. ``argument`` is shown in the list of commands. One without brackets must be given."""

    run: Callable[[ChatState, str], Awaitable[None]]
    summary: str
    argument: str = ""


SLASH_COMMANDS = {
    "/help": SlashCommand(show_help, "list the commands"),
    "/new": SlashCommand(begin_thread, "begin a new conversation"),
    "/threads": SlashCommand(list_threads, "list the threads of the server"),
    "/open": SlashCommand(open_thread, "continue a thread", "NUMBER|ID"),
    "/fork": SlashCommand(fork_thread, "continue with a copy up to a message", "[NUMBER]"),
    "/rename": SlashCommand(rename_thread, "give the thread a title", "[TITLE]"),
    "/model": SlashCommand(choose_model, "choose a model, or list them", "[NAME]"),
    "/reasoning": SlashCommand(toggle_reasoning, "show reasoning in full, or as one line"),
    "/usage": SlashCommand(show_usage, "show the tokens of this conversation"),
    "/state": SlashCommand(show_state, "show the shared state"),
    "/export": SlashCommand(export_thread, "write the conversation as Markdown, or as .json", "[FILE]"),
    "/quit": SlashCommand(end_chat, "end the chat"),
}
"""The commands by their names, in the order of ``/help``."""


def is_slash_command(line: str) -> bool:
    """Return True for a line that is a command, and False for a message."""
    return NAME.match(line) is not None


async def run_slash_command(chat: ChatState, line: str) -> None:
    """Run a command. Raises ``EOFError`` for the end of the chat, and ``AgentClientError``."""
    name, _, argument = line.strip().partition(" ")
    command = SLASH_COMMANDS.get(name)
    if command is None:
        chat.screen.error(f"There is no command {name}: /help lists them.")
    elif command.argument and not command.argument.startswith("[") and not argument:
        chat.screen.error(f"This command needs an argument: {name} {command.argument}")
    else:
        await command.run(chat, argument.strip())


class SlashCompleter(Completer):
    """Completes the names of commands, models and threads."""

    def __init__(self, chat: ChatState) -> None:
        self._chat = chat

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterator[Completion]:
        """Return what fits the text before the cursor."""
        text = document.text_before_cursor
        name, space, argument = text.partition(" ")
        if not space:
            fitting = (it for it in SLASH_COMMANDS if text.startswith("/") and it.startswith(text))
            yield from (Completion(it, -len(text), display_meta=SLASH_COMMANDS[it].summary) for it in fitting)
            return
        arguments = {"/model": self._chat.models, "/open": self._chat.listed}.get(name, ())
        yield from (Completion(it, -len(argument)) for it in arguments if it.startswith(argument))
