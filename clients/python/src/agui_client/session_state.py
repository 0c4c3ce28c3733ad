"""The part of a session that needs no network: what its runs have said, and the draft of the next one.

Rule: an event that does not fit changes nothing, and the log says so. The server checks the order of events; a client
shows what it gets.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self, TypedDict, Unpack

from ag_ui.core import (
    PROTOCOL_VERSION,
    ActivityMessage,
    BaseEvent,
    Context,
    Interrupt,
    Message,
    ReasoningMessage,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageStartEvent,
    TokenUsage,
    Tool,
    ToolCall,
    aggregate_token_usage,
)
from pydantic import BaseModel, ConfigDict, TypeAdapter

from agui_client.client_tools import ClientTool, ClientToolResult
from agui_client.content import File, user_message
from agui_client.interrupts import Decision
from agui_client.run_reader import RunReader
from agui_client.session_options import SessionOptions
from agui_core.json_patch import apply_patch, copy_json
from agui_core.rendering import as_html, markdown, render_plaintext
from agui_core.transcript import Transcript
from agui_core.turns import calls_of, unanswered_in_last_turn

LATER = ConfigDict(defer_build=True)  # building takes longer than most sessions need
MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message], config=LATER)
INTERRUPTS: TypeAdapter[list[Interrupt]] = TypeAdapter(list[Interrupt], config=LATER)

logger = logging.getLogger(__name__)


class SessionStatus(StrEnum):
    """Whose turn it is."""

    NOT_STARTED = "not_started"
    AGENT_TURN = "agent_turn"
    CLIENT_TOOL_TURN = "client_tool_turn"
    USER_TURN = "user_turn"


class Outcome(StrEnum):
    """End of the last run."""

    SUCCESS = "success"
    INTERRUPT = "interrupt"
    CANCELLED = "cancelled"
    ERROR = "error"


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


@dataclass
class Draft:
    """The next run. Its messages are at the end of the conversation, too."""

    is_due: bool = False
    messages: list[Message] = field(default_factory=list)
    answers: list[ResumeEntry] = field(default_factory=list)


class SessionState:
    """Facts of a session, and the draft of its next run, which ``run()`` or ``events()`` sends.

    Attributes:
        thread_id: id of the conversation.
        state: the state that agent and client share, any JSON value. The next run sends the value that you set.
        title: of the thread, as the last ``refresh()`` found it. None where the server gives none.
        outcome: end of the last run. None before it.
        interrupts: questions of the agent that wait for an answer.
        pending_calls: calls of client tools that wait for their results.
    """

    def __init__(self, thread_id: str, options: SessionOptions) -> None:
        self.thread_id = thread_id
        self.state: object = options.get("state", {})
        self.title: str | None = None
        self.outcome: Outcome | None = None
        self.interrupts: list[Interrupt] = []
        self.pending_calls: list[ToolCall] = []
        self._tools: dict[str, ClientTool | Tool] = {tool.name: tool for tool in options.get("client_tools", ())}
        self._tool_timeout = options.get("tool_timeout")
        self._context = list(options.get("context", ()))
        self._forwarded_props = dict(options.get("forwarded_props", {}))
        self._transcript = Transcript()
        self._usage: list[TokenUsage] = []
        self._draft = Draft()
        self._failure: RunErrorEvent | None = None
        self._reader: RunReader | None = None

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """All messages, in order."""
        return self._transcript.messages

    @property
    def latest_message(self) -> Message | None:
        """The last message, or None if there is none."""
        return self.messages[-1] if self.messages else None

    @property
    def transcript(self) -> str:
        """The conversation as plain text."""
        return render_plaintext(self.messages).rstrip("\n")

    @property
    def status(self) -> SessionStatus:
        """Whose turn it is."""
        if self._draft.is_due or self._is_reading:
            return SessionStatus.AGENT_TURN
        if self.pending_calls and not self.interrupts:
            return SessionStatus.CLIENT_TOOL_TURN
        return SessionStatus.USER_TURN if self.messages else SessionStatus.NOT_STARTED

    @property
    def usage(self) -> list[TokenUsage]:
        """Tokens of the runs that this session has read, one entry for each model."""
        return aggregate_token_usage(self._usage) or []

    @property
    def client_tool_names(self) -> list[str]:
        """Names of the client tools that have a function here."""
        return [name for name, tool in self._tools.items() if isinstance(tool, ClientTool)]

    # --- the next run -------------------------------------------------------------------------------------------------

    def send(self, message: str | Message | Sequence[Message] | None = None, **options: Unpack[TurnOptions]) -> Self:
        """Give the turn to the agent, with a text, a message or several. The next ``run()`` or ``events()`` sends it.

        Raises ``RuntimeError`` if the turn of the agent has not ended.
        """
        if self.status is SessionStatus.AGENT_TURN:
            raise RuntimeError("It is the agent's turn: call run(), which also reads the end of a cancelled run.")
        given = user_message(message) if isinstance(message, str) else message
        messages = [given] if given is not None and not isinstance(given, Sequence) else given or ()
        self._add(*messages)
        self._draft.messages.extend(messages)
        self._tools |= {tool.name: tool for tool in options.get("client_tools", ())}
        if "context" in options:
            self._context = list(options["context"])
        self._forwarded_props.update(options.get("forwarded_props", {}))
        self._draft.is_due = True
        return self

    def send_text(self, text: str, *, files: Iterable[File] = (), **options: Unpack[TurnOptions]) -> Self:
        """Send a text, with files by path or as bytes, as ``send`` does. Raises as ``attachment``, too."""
        return self.send(user_message(text, files), **options)

    def answer(self, interrupt_id: str, payload: object) -> Self:
        """Answer an interrupt: an approval by a ``Decision`` or a bool, any other by a value that its schema allows.

        Raises ``ValueError`` if no such interrupt waits.
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
        self._tools |= {tool.name: tool for tool in client_tools}
        self._add(*(result.message for result in results))
        self._draft.is_due = True
        return self

    def register_client_tool(self, tool: ClientTool | Tool) -> Self:
        """Offer a tool from the next run on, in place of one with the same name."""
        self._tools[tool.name] = tool
        return self

    def unregister_client_tool(self, name: str) -> bool:
        """Withdraw a tool from the next run on. Return False if no function was registered under the name."""
        return isinstance(self._tools.pop(name, None), ClientTool)

    def withdraw(self) -> Self:
        """Take back messages and answers that no run has accepted, for example because the server refused it."""
        if not self._is_reading:
            ids = {message.id for message in self._draft.messages}
            self._replace(message for message in self.messages if message.id not in ids)
            self._draft = Draft()
        return self

    def _resume(self, entry: ResumeEntry) -> Self:
        if all(interrupt.id != entry.interrupt_id for interrupt in self.interrupts):
            raise ValueError(f"No interrupt {entry.interrupt_id!r} waits for an answer.")
        answers = [each for each in self._draft.answers if each.interrupt_id != entry.interrupt_id]
        self._draft.answers = [*answers, entry]
        self._draft.is_due = True
        return self

    def _run_input(self, run_id: str) -> RunAgentInput:
        """Make the input of the next run. Activities are no part of an input."""
        return RunAgentInput(
            thread_id=self.thread_id,
            run_id=run_id,
            protocol_version=PROTOCOL_VERSION,
            messages=[each for each in self.messages if not isinstance(each, ActivityMessage)],
            state=self.state,
            tools=[tool.spec if isinstance(tool, ClientTool) else tool for tool in self._tools.values()],
            context=self._context,
            forwarded_props=dict(self._forwarded_props),
            resume=self._draft.answers or None,
        )

    # --- what runs and the server say ---------------------------------------------------------------------------------

    def apply(self, event: BaseEvent) -> None:
        """Take in an event. ``run()`` and ``events()`` do it by themselves."""
        if isinstance(event, TextMessageStartEvent):
            self._separate_reasoning(event.message_id)
        self._transcript.feed(event)
        match event:
            case StateSnapshotEvent():
                self.state = event.snapshot
            case StateDeltaEvent():
                try:
                    self.state = apply_patch({} if self.state is None else copy_json(self.state), event)
                except ValueError as error:
                    logger.warning("JSON patch does not apply error=%s", error)
            case RunStartedEvent():  # it takes over the draft
                self._draft = Draft()
                self.outcome = self._failure = None
                self.interrupts, self.pending_calls = [], []
            case RunFinishedEvent():
                self._usage += event.usage or ()
                self._finish(event)
            case RunErrorEvent():
                self._usage += event.usage or ()
                self._failure = event
                self._end(Outcome.ERROR)

    def _finish(self, event: RunFinishedEvent) -> None:
        match event.outcome:
            case RunFinishedInterruptOutcome(interrupts=interrupts):
                self.interrupts = interrupts
                self._end(Outcome.INTERRUPT)
            case RunFinishedCancelledOutcome():
                self._end(Outcome.CANCELLED)
            case outcome:
                named = outcome.pending_tool_call_ids or () if isinstance(outcome, RunFinishedSuccessOutcome) else ()
                self.pending_calls = [
                    call for call in self._open_calls if call.id in named or call.function.name in self._tools
                ]
                self._end(Outcome.SUCCESS)

    def _end(self, outcome: Outcome) -> None:
        self._draft = Draft()
        self.outcome = outcome

    @property
    def _is_reading(self) -> bool:
        """True while a run is open that has not been read to its end."""
        return self._reader is not None and not self._reader.has_ended

    def _read(self, reader: RunReader) -> RunReader:
        """Follow a run, which has no end yet."""
        self._reader, self.outcome = reader, None
        return reader

    def _separate_reasoning(self, message_id: str) -> None:
        """Give reasoning another id if its answer has the same one, as some servers do."""
        messages = self.messages
        for at, message in enumerate(messages):
            if isinstance(message, ReasoningMessage) and message.id == message_id:
                messages[at] = message.model_copy(update={"id": f"{message_id}-reasoning"})
                self._replace(messages)

    def _take_thread(self, thread: Mapping[str, object]) -> None:
        """Take over the fields that a thread, or the changes of one, have (``docs/threads.md`` of AGUI Container)."""
        title = thread.get("title")
        self.title = title if isinstance(title, str) else None
        if "messages" in thread:
            messages = {it.id: it for it in (*self.messages, *MESSAGES.validate_python(thread["messages"]))}
            order = thread.get("order")
            self._replace(messages[it] for it in (order if isinstance(order, list) else messages) if it in messages)
        if "state" in thread:
            self.state = thread["state"]
        if "waiting" in thread and "activeRunId" not in thread:  # an active run says itself what waits
            self.interrupts = INTERRUPTS.validate_python(thread["waiting"])
        if "status" in thread:
            is_ours = thread["status"] == SessionStatus.CLIENT_TOOL_TURN
            self.pending_calls = self._open_calls if is_ours else []

    @property
    def _open_calls(self) -> list[ToolCall]:
        return list(unanswered_in_last_turn(self.messages))

    def _call(self, call_id: str) -> ToolCall | None:
        calls = (call for message in reversed(self.messages) for call in calls_of(message))
        return next((call for call in calls if call.id == call_id), None)

    def _message_id(self, message: str | int) -> str:
        """Return the id of a message that is named by its id or its index. Raises ``LookupError``."""
        if isinstance(message, int):
            return self.messages[message].id
        if all(each.id != message for each in self.messages):
            raise LookupError(f"There is no message {message!r} in this session.")
        return message

    def _add(self, *messages: Message) -> None:
        """Add messages at the end, and results behind their calls."""
        for message in messages:
            self._transcript.add(message)

    def _replace(self, messages: Iterable[Message]) -> None:
        self._transcript = Transcript(messages)

    # --- how it looks -------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.thread_id} {self.status}, {len(self.messages)} messages>"

    def _repr_markdown_(self) -> str:
        return markdown(self.messages)

    def _repr_html_(self) -> str:
        return as_html(self.messages, self.title, self.status)
