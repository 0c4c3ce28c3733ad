"""The chat: read a message, show the agent's turn, ask what it asks, until the input ends.

Rule: an error of a turn is shown and ends only that turn. Ctrl-C cancels the run and never the program; the next one
leaves a run that the server does not end.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ag_ui.core import Interrupt

from agui_client import AgentClientError, Approval, Decision, SessionStatus
from agui_container.cli.failure import error_text
from agui_container.cli.terminal import approvals, forms
from agui_container.cli.terminal.asker import Asker
from agui_container.cli.terminal.attachments import files_in
from agui_container.cli.terminal.chat_state import ChatState
from agui_container.cli.terminal.slash_commands import run_slash_command


class Chat:
    """A chat at a terminal."""

    def __init__(self, state: ChatState, asker: Asker) -> None:
        self._state = state
        self._asker = asker
        self._turn: asyncio.Task[None] | None = None
        self._cancelling: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Chat until the input ends."""
        if self._state.session.status is SessionStatus.AGENT_TURN or self._state.session.interrupts:
            await self._answer()  # the run of a thread that is continued
        while True:
            try:
                line = await self._asker.message()
                if line.startswith("/"):
                    await run_slash_command(self._state, line)
                elif line.strip():
                    await self._send(line)
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            except AgentClientError as error:
                self._state.view.error(error_text(error))

    async def _send(self, text: str) -> None:
        state, files = self._state, files_in(text)
        for file in files:
            state.view.note(f"Sent with {file.name}, {file.stat().st_size:,} bytes.")
        state.session.send_text(text, files=files, forwarded_props=state.forwarded_props)
        state.files.last_thread = state.session.thread_id
        await self._answer()

    async def _answer(self) -> None:
        """Show the agent's turn."""
        with self._ctrl_c():
            self._turn = asyncio.create_task(self._run(), name="turn of the agent")
            try:
                await self._turn
            except asyncio.CancelledError:
                self._state.view.error("The run was left. It may continue at the server.")
            except AgentClientError as error:
                self._state.view.error(error_text(error))
            finally:
                self._turn = None
                await self._state.session.cancel()  # what was refused is not sent again with the next message

    async def _run(self) -> None:
        async with self._state.view.turn() as show:
            await self._state.session.run(on_event=show, on_approval=self._decide, on_interrupt=self._fill)

    async def _decide(self, approval: Approval) -> Decision | None:
        with self._asking():
            try:
                return await approvals.decide(approval, self._asker, self._state.view)
            except (KeyboardInterrupt, EOFError):
                return None

    async def _fill(self, interrupt: Interrupt) -> object:
        with self._asking():
            return await forms.fill(interrupt, self._asker, self._state.view)

    # --- Ctrl-C -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _ctrl_c(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._cancel)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            self._cancelling = None

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Leave the terminal and Ctrl-C to a question."""
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGINT)
        try:
            with self._state.view.paused():
                yield
        finally:
            loop.add_signal_handler(signal.SIGINT, self._cancel)

    def _cancel(self) -> None:
        """Cancel the run at the server. A second Ctrl-C leaves it."""
        if self._turn is None:
            return
        if self._cancelling is not None:
            self._turn.cancel()
            return
        self._cancelling = asyncio.create_task(self._cancel_run(), name="cancel of a run")

    async def _cancel_run(self) -> None:
        try:
            await self._state.session.cancel()
        except AgentClientError as error:
            self._state.view.error(error_text(error))
