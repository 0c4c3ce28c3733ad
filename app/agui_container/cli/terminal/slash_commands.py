"""Commands that begin with a slash: about threads, models and the conversation itself.

Rule: a command is a function of the chat and of the text after its name. ``EOFError`` ends the chat.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agui_client import Session
from agui_client.rendering import markdown
from agui_container.cli.terminal.chat_state import ChatState

NAME = re.compile(r"/[\w-]*(\s|$)")
"""The begin of a command. A path, which a terminal pastes for a dropped file, has a second slash."""


class SlashCommand(Struct, frozen=True):
    """A command. ``argument`` is shown in the list of commands. One without brackets must be given."""

    summary: str
    run: Callable[[ChatState, str], Awaitable[None]]
    argument: str = ""


async def show_help(chat: ChatState, _: str) -> None:
    """List the commands."""
    names = {name: f"{name} {command.argument}".rstrip() for name, command in SLASH_COMMANDS.items()}
    width = max(map(len, names.values()))
    chat.view.note("\n".join(f"{names[name]:{width}}  {it.summary}" for name, it in SLASH_COMMANDS.items()))
    chat.view.note("Alt-Enter begins a new line, Ctrl-C cancels the run, Ctrl-D ends the chat. A path sends the file.")


async def begin_thread(chat: ChatState, _: str) -> None:
    """Begin a new conversation."""
    await chat.change_session(Session(chat.target.url, **chat.target.options))
    chat.view.note("A new conversation begins.")


async def list_threads(chat: ChatState, _: str) -> None:
    """List the threads of the server, numbered for ``/open``."""
    listed = await chat.session.command("threads.list")
    found = listed.get("threads")
    threads = [thread for thread in found if isinstance(thread, Mapping)] if isinstance(found, list) else []
    chat.listed = [str(thread["threadId"]) for thread in threads]
    rows = [f"{at:3}. {thread.get('title') or thread['threadId']}" for at, thread in enumerate(threads, 1)]
    if listed.get("next") is not None:
        rows.append("There are older ones: agui threads list")
    chat.view.note("\n".join(rows) or "There are no threads.")


async def open_thread(chat: ChatState, argument: str) -> None:
    """Continue a thread, by its id or its number in the list."""
    is_number = argument.isdigit() and 1 <= int(argument) <= len(chat.listed)
    await chat.open_thread(chat.listed[int(argument) - 1] if is_number else argument)


async def fork_thread(chat: ChatState, argument: str) -> None:
    """Continue with a copy that ends after a message: its number, or -1 for the last one."""
    try:
        forked = await chat.session.fork(int(argument or -1))
    except (ValueError, IndexError):
        chat.view.error(
            f"There is no message {argument}: messages are numbered from 0 to {len(chat.session.messages) - 1}."
        )
        return
    await chat.change_session(forked)
    chat.view.note(f"The conversation continues in the copy {forked.thread_id}.")


async def choose_model(chat: ChatState, argument: str) -> None:
    """Choose the model of the next messages, or list the models."""
    if argument and argument in chat.models:
        chat.forwarded_props["model"] = argument
    elif argument:
        chat.view.error(f"The server offers no model {argument}.")
    current = chat.forwarded_props.get("model")
    rows = [f"{'*' if name == current else ' '} {name}" for name in chat.models]
    chat.view.note("\n".join(rows) or "The server lets nobody choose a model.")


async def show_usage(chat: ChatState, _: str) -> None:
    """Show the tokens of this conversation."""
    rows = [
        f"{usage.model or 'model'}: {usage.input_tokens or 0} in, {usage.output_tokens or 0} out"
        for usage in chat.session.usage
    ]
    chat.view.note("\n".join(rows) or "No tokens were reported.")


async def show_state(chat: ChatState, _: str) -> None:
    """Show the state that agent and client share."""
    chat.view.markdown(f"```json\n{json.dumps(chat.session.state, indent=2, ensure_ascii=False)}\n```")


async def export(chat: ChatState, argument: str) -> None:
    """Write the conversation to a file: Markdown, or JSON if its name ends so."""
    path = Path(argument or f"{file_name(chat.session.thread_id)}.md").expanduser()  # noqa: ASYNC240 - it looks nothing up
    try:
        path.write_text(exported(chat.session, as_json=path.suffix == ".json"), encoding="utf-8")
    except OSError as error:
        chat.view.error(f"{path} cannot be written: {error.strerror}.")
    else:
        chat.view.note(f"Written to {path}.")


def file_name(thread_id: str) -> str:
    """Return the id of a thread as the name of a file. A server or another client may have chosen it."""
    return re.sub(r"[^\w-]+", "-", thread_id)


def exported(session: Session, *, as_json: bool) -> str:
    """Return a conversation as Markdown or as JSON."""
    if not as_json:
        return f"{markdown(session.messages)}\n"
    messages = [it.model_dump(mode="json", by_alias=True, exclude_none=True) for it in session.messages]
    fields = {"threadId": session.thread_id, "title": session.title, "messages": messages, "state": session.state}
    return f"{json.dumps(fields, indent=2, ensure_ascii=False)}\n"


async def toggle_reasoning(chat: ChatState, _: str) -> None:
    """Show reasoning in full, or only how long it took."""
    chat.view.shows_reasoning = not chat.view.shows_reasoning
    chat.view.note(f"Reasoning is shown {'in full' if chat.view.shows_reasoning else 'as one line'}.")


async def rename(chat: ChatState, argument: str) -> None:
    """Give the thread a title. Without one it has none."""
    await chat.session.rename(argument or None)


async def end_chat(_: ChatState, __: str) -> None:
    """End the chat."""
    raise EOFError


SLASH_COMMANDS: Mapping[str, SlashCommand] = {
    "/help": SlashCommand("list the commands", show_help),
    "/new": SlashCommand("begin a new conversation", begin_thread),
    "/threads": SlashCommand("list the threads of the server", list_threads),
    "/open": SlashCommand("continue a thread", open_thread, "NUMBER|ID"),
    "/fork": SlashCommand("continue with a copy up to a message", fork_thread, "[NUMBER]"),
    "/rename": SlashCommand("give the thread a title", rename, "[TITLE]"),
    "/model": SlashCommand("choose a model, or list them", choose_model, "[NAME]"),
    "/reasoning": SlashCommand("show reasoning in full, or as one line", toggle_reasoning),
    "/usage": SlashCommand("show the tokens of this conversation", show_usage),
    "/state": SlashCommand("show the shared state", show_state),
    "/export": SlashCommand("write the conversation as Markdown, or as .json", export, "[FILE]"),
    "/quit": SlashCommand("end the chat", end_chat),
}


async def run_slash_command(chat: ChatState, line: str) -> None:
    """Run a command. Raises ``EOFError`` for the end of the chat, and ``AgentClientError``."""
    name, _, argument = line.strip().partition(" ")
    command = SLASH_COMMANDS.get(name)
    if command is None:
        chat.view.error(f"There is no command {name}: /help lists them.")
    elif command.argument and not command.argument.startswith("[") and not argument:
        chat.view.error(f"This command needs an argument: {name} {command.argument}")
    else:
        await command.run(chat, argument.strip())


def is_slash_command(line: str) -> bool:
    """Return True for a line that is a command, and False for a message."""
    return NAME.match(line) is not None


class SlashCompleter(Completer):
    """Completes the names of commands, models and threads."""

    def __init__(self) -> None:
        self.chat: ChatState | None = None
        """Set once the chat has begun."""

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterator[Completion]:
        """Return what fits the text before the cursor."""
        text = document.text_before_cursor
        name, space, argument = text.partition(" ")
        if not space:
            fitting = (it for it in SLASH_COMMANDS if text.startswith("/") and it.startswith(text))
            yield from (Completion(it, -len(text), display_meta=SLASH_COMMANDS[it].summary) for it in fitting)
        else:
            yield from (Completion(it, -len(argument)) for it in self._arguments(name) if it.startswith(argument))

    def _arguments(self, name: str) -> Iterable[str]:
        if self.chat is None:
            return ()
        return {"/model": self.chat.models, "/open": self.chat.listed}.get(name, ())
