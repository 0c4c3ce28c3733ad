"""The part of a session that needs no network: reading what is known, and writing the draft of the next run.

``Session`` and ``SyncSession`` both have it. A message, an answer or a result is sent by the next ``run()`` or
``events()``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self, TypedDict, Unpack

from ag_ui.core import Context, Interrupt, Message, ResumeEntry, TokenUsage, Tool, ToolCall
from pydantic import BaseModel

from agui_client import rendering
from agui_client.client_tools import ClientTool, ClientToolResult
from agui_client.content import File, user_message
from agui_client.interrupts import Decision
from agui_client.session_record import Draft, Outcome, SessionRecord, SessionStatus
from agui_core.plaintext import render_plaintext


class TurnOptions(TypedDict, total=False):
    """Options of a turn. All may be left out, and all hold for later turns, too.

    Attributes:
        context: replaces the session's context.
        client_tools: added to the session's.
        forwarded_props: added to the session's.
    """

    context: Iterable[Context]
    client_tools: Iterable[ClientTool | Tool]
    forwarded_props: Mapping[str, object]


class SessionView:
    """Facts of a session, and the draft of its next run."""

    _record: SessionRecord

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def thread_id(self) -> str:
        """Id of the conversation."""
        return self._record.thread_id

    @property
    def messages(self) -> list[Message]:
        """All messages, in order."""
        return self._record.conversation.messages

    @property
    def latest_message(self) -> Message | None:
        """The last message, or None if there is none."""
        messages = self.messages
        return messages[-1] if messages else None

    @property
    def transcript(self) -> str:
        """The conversation as plain text."""
        return render_plaintext(self.messages).rstrip("\n")

    @property
    def status(self) -> SessionStatus:
        """Whose turn it is."""
        return self._record.status

    @property
    def outcome(self) -> Outcome | None:
        """End of the last run. None before it."""
        return self._record.outcome

    @property
    def title(self) -> str | None:
        """Title of the thread, as the last ``refresh()`` found it. None where the server gives none."""
        return self._record.conversation.title

    @property
    def state(self) -> object:
        """The state that agent and client share, any JSON value. The next run sends the value that you set."""
        return self._record.conversation.state

    @state.setter
    def state(self, value: object) -> None:
        self._record.conversation.state = value

    @property
    def usage(self) -> list[TokenUsage]:
        """Tokens of the runs that this session has read, one entry for each model."""
        return self._record.conversation.usage

    @property
    def interrupts(self) -> list[Interrupt]:
        """Questions of the agent that wait for an answer."""
        return list(self._record.interrupts)

    @property
    def pending_calls(self) -> list[ToolCall]:
        """Calls of client tools that wait for their results."""
        return list(self._record.pending_calls)

    @property
    def client_tool_names(self) -> list[str]:
        """Names of the client tools that have a function here."""
        return self._record.tools.names

    # --- the next run -------------------------------------------------------------------------------------------------

    def send(self, message: str | Message | Sequence[Message] | None = None, **options: Unpack[TurnOptions]) -> Self:
        """Give the turn to the agent. The next ``run()`` or ``events()`` sends it.

        Args:
            message: a text, a message or several.
            options: see ``TurnOptions``.

        Raises:
            RuntimeError: the turn of the agent has not ended.
        """
        record = self._record
        if record.status is SessionStatus.AGENT_TURN:
            raise RuntimeError("It is the agent's turn: call run(), which also reads the end of a cancelled run.")
        given = user_message(message) if isinstance(message, str) else message
        messages = [given] if given is not None and not isinstance(given, Sequence) else given or ()
        record.conversation.add(*messages)
        record.draft.messages.extend(messages)
        for tool in options.get("client_tools", ()):
            record.tools.register(tool)
        if "context" in options:
            record.context = list(options["context"])
        record.forwarded_props.update(options.get("forwarded_props", {}))
        record.draft.is_due = True
        return self

    def send_text(self, text: str, *, files: Iterable[File] = (), **options: Unpack[TurnOptions]) -> Self:
        """Send a text, with files by path or as bytes. Everything else is as in ``send``.

        Raises:
            OSError: a file cannot be read.
            ValueError: the type of a file is not known.
        """
        return self.send(user_message(text, files), **options)

    def answer(self, interrupt_id: str, payload: object) -> Self:
        """Answer an interrupt: an approval by a ``Decision`` or a bool, any other by a value that its schema allows.

        Raises:
            ValueError: no such interrupt waits.
        """
        if isinstance(payload, bool):
            payload = Decision(payload)
        if isinstance(payload, Decision):
            payload = payload.payload
        if isinstance(payload, BaseModel):
            payload = payload.model_dump(mode="json", by_alias=True)
        return self._resume(ResumeEntry(interrupt_id=interrupt_id, status="resolved", payload=payload))

    def abandon(self, interrupt_id: str) -> Self:
        """Abandon an interrupt, so that the agent continues without an answer. Raises as ``answer``."""
        return self._resume(ResumeEntry(interrupt_id=interrupt_id, status="cancelled"))

    def submit_client_tool_results(
        self, results: Iterable[ClientToolResult], client_tools: Iterable[ClientTool | Tool] = ()
    ) -> Self:
        """Give the results of client tools. ``run()`` does it by itself, and ``events()`` leaves it to you."""
        for tool in client_tools:
            self._record.tools.register(tool)
        for result in results:
            self._record.conversation.add(result.message)
        self._record.draft.is_due = True
        return self

    def register_client_tool(self, tool: ClientTool | Tool) -> Self:
        """Offer a tool from the next run on, in place of one with the same name."""
        self._record.tools.register(tool)
        return self

    def unregister_client_tool(self, name: str) -> bool:
        """Withdraw a tool from the next run on. Return False if no function was registered under the name."""
        return self._record.tools.unregister(name)

    def withdraw(self) -> Self:
        """Take back messages and answers that no run has accepted, for example because the server refused it."""
        record = self._record
        if not record.is_reading:
            record.conversation.remove(record.draft.messages)
            record.draft = Draft()
        return self

    def _resume(self, entry: ResumeEntry) -> Self:
        if all(interrupt.id != entry.interrupt_id for interrupt in self._record.interrupts):
            raise ValueError(f"No interrupt {entry.interrupt_id!r} waits for an answer.")
        draft = self._record.draft
        draft.answers = [*(each for each in draft.answers if each.interrupt_id != entry.interrupt_id), entry]
        draft.is_due = True
        return self

    # --- how it looks -------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.thread_id} {self.status}, {len(self.messages)} messages>"

    def _repr_markdown_(self) -> str:
        return rendering.markdown(self.messages)

    def _repr_html_(self) -> str:
        return rendering.as_html(self.messages, self.title, self.status)
