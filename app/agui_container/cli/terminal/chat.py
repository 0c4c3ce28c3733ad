"""The chat: read a message, show the agent's turn, ask what it asks, until the input ends.

Rule: an error of a turn is shown and ends only that turn. Ctrl-C cancels the run and never the program; the next one
leaves a run that the server does not end.
"""

import asyncio
import mimetypes
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ag_ui.core import Interrupt
from prompt_toolkit.history import FileHistory

from agui_client import AgentClientError, Approval, Decision, SessionStatus
from agui_container.cli.failure import error_text
from agui_container.cli.signals import ctrl_c_calls, ended_by_ctrl_c, is_cancelled
from agui_container.cli.terminal import questions
from agui_container.cli.terminal.asker import Asker
from agui_container.cli.terminal.chat_state import ChatState, LastConversation
from agui_container.cli.terminal.slash_commands import SlashCompleter, is_slash_command, run_slash_command

SENT_TYPES = ("image/", "audio/", "video/", "application/pdf")
"""Beginnings of the media types that are sent with a message."""


class Chat:
    """A chat at a terminal."""

    def __init__(self, state: ChatState) -> None:
        self._state = state
        self._screen = state.screen
        self._asker = Asker(FileHistory(str(state.files.history)), SlashCompleter(state))

    async def run(self) -> None:
        """Chat until the input ends."""
        if self._state.session.status is SessionStatus.AGENT_TURN or self._state.session.interrupts:
            await self._answer()  # the run of a thread that is continued
        while True:
            try:
                line = await self._asker.message()
                if is_slash_command(line):
                    await ended_by_ctrl_c(run_slash_command(self._state, line))
                elif line.strip():
                    await self._send(line)
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            except AgentClientError as error:
                self._screen.error(error_text(error))
            except OSError as error:
                self._screen.error(f"{error.filename} cannot be read: {error.strerror}.")

    async def _send(self, text: str) -> None:
        state = self._state
        if state.session.status is SessionStatus.AGENT_TURN:  # a run that was left, or whose connection was lost
            await state.load_thread(state.session.thread_id)
            await self._answer()
        if state.session.status is SessionStatus.AGENT_TURN:
            self._screen.error("The message was not sent, because a run of this conversation has not ended.")
            return
        files = files_in(text)
        for file in files:
            self._screen.note(f"Sent with {file.name}, {file.stat().st_size:,} bytes.")
        state.session.send_text(text, files=files, forwarded_props=state.forwarded_props)
        state.files.last = LastConversation(state.session.thread_id, state.target.options.get("session_id"))
        await self._answer()

    async def _answer(self) -> None:
        """Show the agent's turn. A message that the server has refused is taken back."""
        cancels: list[asyncio.Task[None]] = []

        def cancel() -> None:
            if cancels:
                turn.cancel()
                return
            self._screen.note("The run is cancelled. Ctrl-C leaves it if it does not end.")
            cancels.append(asyncio.create_task(self._cancel(), name="cancel of a run"))

        with self._asker.typing_ahead():
            turn = asyncio.create_task(self._run(), name="turn of the agent")
            try:
                with ctrl_c_calls(cancel):
                    await turn
            except asyncio.CancelledError:
                if is_cancelled():
                    raise
                self._screen.error("The run was left. It may continue at the server.")
            except AgentClientError as error:
                self._screen.error("\n".join(filter(None, [error_text(error), self._state.target.read_log()])))
            finally:
                for task in cancels:
                    task.cancel()
                await asyncio.gather(*cancels, return_exceptions=True)
        self._state.session.withdraw()

    async def _run(self) -> None:
        async def decide(approval: Approval) -> Decision | None:
            with self._asking(), suppress(KeyboardInterrupt, EOFError):
                return await questions.decide(approval, self._asker, self._screen)
            return None

        async def fill(interrupt: Interrupt) -> object:
            with self._asking():
                return await questions.fill(interrupt, self._asker, self._screen)

        async with self._screen.turn() as show:
            await self._state.session.run(on_event=show, on_approval=decide, on_interrupt=fill)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._screen.paused():
            self._asker.discard_typed_keys()
            yield

    async def _cancel(self) -> None:
        try:
            await self._state.session.cancel()
        except AgentClientError as error:
            self._screen.error(error_text(error))


def files_in(text: str) -> list[Path]:
    """Return the files of a message that are sent: paths that were typed, pasted, or dropped on the terminal."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        words = text.split()
    return [path for word in words if (path := as_file(word)) is not None]


def as_file(word: str) -> Path | None:
    """Return the file that a word names, if it is of a type that is sent."""
    path = Path(unquote(urlsplit(word).path)) if word.startswith("file://") else Path(word)
    if not (mimetypes.guess_type(path.name)[0] or "").startswith(SENT_TYPES):
        return None
    try:
        path = path.expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # a name that is too long, a home folder that nobody has
        return None
