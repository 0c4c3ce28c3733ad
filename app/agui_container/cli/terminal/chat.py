"""The chat: read a message or a slash command, show the agent's turn, ask what it asks, until the input ends.

Rule: an error of a turn is shown and ends only that turn. Ctrl-C cancels the run and never the program; the next one
leaves a run that the server does not end.
"""

import asyncio
import mimetypes
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os.path import isfile
from pathlib import Path
from typing import NamedTuple

from ag_ui.core import AgentCapabilities, Interrupt
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory

from agui_client import AgentClientError, Approval, Decision, Session, SessionStatus
from agui_container.cli.failure import error_text
from agui_container.cli.signals import ctrl_c_calls
from agui_container.cli.target import AT_ONCE, Target
from agui_container.cli.terminal import questions
from agui_container.cli.terminal.asker import Asker
from agui_container.cli.terminal.files import LastConversation, ServerFiles
from agui_container.cli.terminal.screen import Screen
from agui_core.rendering import markdown

NAME = re.compile(r"/[\w-]*(\s|$)")
"""The begin of a slash command. A path, which a terminal pastes for a dropped file, has a second slash."""

SENT_TYPES = ("image/", "audio/", "video/", "application/pdf")
"""Beginnings of the media types that are sent with a message."""

KEYS = "Alt-Enter begins a new line, Ctrl-C cancels the run, Ctrl-D ends the chat. A path sends the file."


class Chat:
    """A chat with one server. Raises ``ValueError`` if its URL or session cannot be right."""

    def __init__(self, target: Target, files: ServerFiles, screen: Screen) -> None:
        self._target, self._files, self._screen = target, files, screen
        self._session = Session(target.url, **target.options)
        self._capabilities: AgentCapabilities | None = None
        self._model: str | None = None
        self._listed: list[str] = []
        """Ids of the threads that were listed last, which the user opens by their numbers."""

        summaries = {name: command.summary for name, command in SLASH_COMMANDS.items()}
        completer = WordCompleter([*SLASH_COMMANDS], meta_dict=summaries, sentence=True)
        self._asker = Asker(FileHistory(str(files.history)), completer)

    async def run(self, thread_id: str | None) -> None:
        """Chat until the input ends. Raises ``AgentClientError`` if the server cannot be reached at once."""
        try:
            await self._greet(thread_id)
            if self._session.status is SessionStatus.AGENT_TURN or self._session.interrupts:
                await self._answer()  # the run of a thread that is continued
            with suppress(EOFError):
                while True:
                    await self._read()
        finally:
            await self._session.aclose()

    async def _greet(self, thread_id: str | None) -> None:
        options = self._target.options.copy()
        options["retry"] = AT_ONCE
        async with Session(self._target.url, **options) as session:
            self._capabilities = await session.capabilities()
        identity = self._capabilities.identity if self._capabilities else None
        self._screen.note(f"{(identity and identity.name) or self._target.name}. /help lists the commands.")
        if thread_id is not None:
            try:
                await self.open_thread(thread_id)
            except AgentClientError as error:
                self._screen.error(f"The thread {thread_id} cannot be continued: {error_text(error)}")

    async def _read(self) -> None:
        """Read a line and do what it says. Raises ``EOFError`` at the end of the input."""
        try:
            line = await self._asker.message()
            if NAME.match(line):
                command = asyncio.create_task(self._run_command(line), name="slash command")
                with ctrl_c_calls(command.cancel):
                    await asyncio.wait({command})
                if not command.cancelled():
                    command.result()
            elif line.strip():
                await self._send(line)
        except KeyboardInterrupt:
            pass
        except (AgentClientError, OSError) as error:
            self._screen.error(error_text(error))

    # --- turns --------------------------------------------------------------------------------------------------------

    async def _send(self, text: str) -> None:
        if self._session.status is SessionStatus.AGENT_TURN:  # a run that was left, or whose connection was lost
            await self._load_thread(self._session.thread_id)
            await self._answer()
        if self._session.status is SessionStatus.AGENT_TURN:
            self._screen.error("The message was not sent, because a run of this conversation has not ended.")
            return
        files = files_in(text)
        for file in files:
            self._screen.note(f"Sent with {file.name}, {file.stat().st_size:,} bytes.")
        forwarded_props = {"model": self._model} if self._model else {}
        self._session.send_text(text, files=files, forwarded_props=forwarded_props)
        self._files.last = LastConversation(self._session.thread_id, self._target.options.get("session_id"))
        await self._answer()

    async def _answer(self) -> None:
        """Show the agent's turn. A message that the server has refused is taken back."""
        turn = asyncio.create_task(self._run_turn(), name="turn of the agent")
        cancels: list[asyncio.Task[None]] = []

        def cancel() -> None:
            if cancels:
                turn.cancel()
                return
            self._screen.note("The run is cancelled. Ctrl-C leaves it if it does not end.")
            cancels.append(asyncio.create_task(self._cancel(), name="cancel of a run"))

        with self._asker.typing_ahead(), ctrl_c_calls(cancel):
            await asyncio.wait({turn})
            for task in cancels:
                task.cancel()
            await asyncio.gather(*cancels, return_exceptions=True)
        self._session.withdraw()
        if turn.cancelled():
            self._screen.error("The run was left. It may continue at the server.")
        else:
            turn.result()

    async def _run_turn(self) -> None:
        async def decide(approval: Approval) -> Decision | None:
            with self._asking(), suppress(KeyboardInterrupt, EOFError):
                return await questions.decide(approval, self._asker, self._screen)
            return None

        async def fill(interrupt: Interrupt) -> object:
            with self._asking():
                return await questions.fill(interrupt, self._asker, self._screen)

        async with self._screen.turn() as show:
            await self._session.run(on_event=show, on_approval=decide, on_interrupt=fill)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._screen.paused():
            self._asker.discard_typed_keys()
            yield

    async def _cancel(self) -> None:
        try:
            await self._session.cancel()
        except AgentClientError as error:
            self._screen.error(error_text(error))

    # --- slash commands -----------------------------------------------------------------------------------------------

    async def _run_command(self, line: str) -> None:
        name, _, argument = line.strip().partition(" ")
        if command := SLASH_COMMANDS.get(name):
            await command.run(self, argument.strip())
        else:
            self._screen.error(f"There is no command {name}: /help lists them.")

    async def _continue_in(self, session: Session) -> None:
        await self._session.aclose()
        self._session = session

    async def _load_thread(self, thread_id: str) -> None:
        """Continue a thread as the server has it."""
        await self._continue_in(await Session.from_id(thread_id, url=self._target.url, **self._target.options))

    async def show_help(self, _: str) -> None:
        rows = [f"{name:8}  {command.summary}" for name, command in SLASH_COMMANDS.items()]
        self._screen.note("\n".join([*rows, KEYS]))

    async def begin_thread(self, _: str) -> None:
        await self._continue_in(Session(self._target.url, **self._target.options))
        self._screen.note("A new conversation begins.")

    async def list_threads(self, _: str) -> None:
        listed = await self._session.command("threads.list")
        found = listed.get("threads")
        threads = [thread for thread in found if isinstance(thread, Mapping)] if isinstance(found, list) else []
        self._listed = [str(thread["threadId"]) for thread in threads]
        rows = [f"{at:3}. {thread.get('title') or thread['threadId']}" for at, thread in enumerate(threads, 1)]
        if listed.get("next") is not None:
            rows.append("There are older ones: agui threads list SERVER")
        self._screen.note("\n".join(rows) or "There are no threads.")

    async def open_thread(self, argument: str) -> None:
        is_number = argument.isdigit() and 1 <= int(argument) <= len(self._listed)
        await self._load_thread(self._listed[int(argument) - 1] if is_number else argument)
        self._screen.markdown(markdown(self._session.messages))

    async def choose_model(self, argument: str) -> None:
        offered = ((self._capabilities.custom if self._capabilities else None) or {}).get("models")
        models = [str(name) for name in offered] if isinstance(offered, list) else []
        if argument in models:
            self._model = argument
        elif argument:
            self._screen.error(f"The server offers no model {argument}.")
        rows = [f"{'*' if name == self._model else ' '} {name}" for name in models]
        self._screen.note("\n".join(rows) or "The server lets nobody choose a model.")

    async def end(self, _: str) -> None:
        raise EOFError


class SlashCommand(NamedTuple):
    run: Callable[[Chat, str], Awaitable[None]]
    summary: str


SLASH_COMMANDS = {
    "/help": SlashCommand(Chat.show_help, "list the commands"),
    "/new": SlashCommand(Chat.begin_thread, "begin a new conversation"),
    "/threads": SlashCommand(Chat.list_threads, "list the threads of the server"),
    "/open": SlashCommand(Chat.open_thread, "continue a thread, by its number in that list or by its id"),
    "/model": SlashCommand(Chat.choose_model, "choose a model by its name, or list them"),
    "/quit": SlashCommand(Chat.end, "end the chat"),
}
"""The commands by their names, in the order of ``/help``."""


def files_in(text: str) -> list[Path]:
    """Return the files of a message that are sent: paths that were typed, pasted, or dropped on the terminal."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        words = text.split()
    sent = (word for word in words if (mimetypes.guess_type(word)[0] or "").startswith(SENT_TYPES))
    return [Path(word) for word in sent if isfile(word)]  # noqa: PTH113 - pathlib raises for a name that is too long
