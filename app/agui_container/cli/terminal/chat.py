"""The chat: read a message, show the agent's turn, ask what it asks, until the input ends.

Rule: an error of a turn is shown and ends only that turn. Ctrl-C cancels the run and never the program; the next one
leaves a run that the server does not end.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ag_ui.core import Interrupt

from agui_client import AgentClientError, Approval, Decision, SessionStatus
from agui_container.cli.failure import error_text
from agui_container.cli.signals import ctrl_c_calls, ended_by_ctrl_c, is_cancelled
from agui_container.cli.terminal import approvals, forms
from agui_container.cli.terminal.asker import Asker
from agui_container.cli.terminal.attachments import files_in
from agui_container.cli.terminal.chat_state import ChatState
from agui_container.cli.terminal.slash_commands import is_slash_command, run_slash_command


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
                if is_slash_command(line):
                    await ended_by_ctrl_c(run_slash_command(self._state, line))
                elif line.strip():
                    await self._send(line)
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            except AgentClientError as error:
                self._state.view.error(error_text(error))
            except OSError as error:
                self._state.view.error(f"{error.filename} cannot be read: {error.strerror}.")

    async def _send(self, text: str) -> None:
        state, files = self._state, files_in(text)
        if state.session.status is SessionStatus.AGENT_TURN:  # a run that was left, or whose connection was lost
            await state.load_thread(state.session.thread_id)
            await self._answer()
        if state.session.status is SessionStatus.AGENT_TURN:
            state.view.error("The message was not sent, because a run of this conversation has not ended.")
            return
        for file in files:
            state.view.note(f"Sent with {file.name}, {file.stat().st_size:,} bytes.")
        state.session.send_text(text, files=files, forwarded_props=state.forwarded_props)
        state.remember()
        await self._answer()

    async def _answer(self) -> None:
        """Show the agent's turn. A message that the server has refused is taken back."""
        with ctrl_c_calls(self._cancel):
            self._turn = asyncio.create_task(self._run(), name="turn of the agent")
            try:
                await self._turn
            except asyncio.CancelledError:
                if is_cancelled():
                    raise
                self._state.view.error("The run was left. It may continue at the server.")
            except AgentClientError as error:
                self._state.view.error(error_text(error))
            finally:
                await self._end_turn()
        self._state.session.withdraw()

    async def _end_turn(self) -> None:
        cancelling, self._turn, self._cancelling = self._cancelling, None, None
        if cancelling is not None:
            cancelling.cancel()
            await asyncio.gather(cancelling, return_exceptions=True)

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

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Leave the terminal to a question. Keys that were typed before do not answer it."""
        with self._state.view.paused():
            self._asker.discard_typed_keys()
            yield

    # --- Ctrl-C -------------------------------------------------------------------------------------------------------

    def _cancel(self) -> None:
        """Cancel the run at the server. A second Ctrl-C leaves it."""
        if self._turn is None:
            return
        if self._cancelling is not None:
            self._turn.cancel()
            return
        self._state.view.note("The run is cancelled. Ctrl-C leaves it if it does not end.")
        self._cancelling = asyncio.create_task(self._cancel_run(), name="cancel of a run")

    async def _cancel_run(self) -> None:
        try:
            await self._state.session.cancel()
        except AgentClientError as error:
            self._state.view.error(error_text(error))
