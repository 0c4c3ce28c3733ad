"""Translation in both ways: AG-UI messages as messages of a session, and requests as run inputs.

Rule: pure functions; ids and times are parameters. A message that a client has received never changes, except that more
is appended to it, because clients store messages by index. While a run is active, a message is therefore withheld until
its index is final: until the previous message has ended and all of its calls have results.

A call that a message of the user has denied stays without its result, because the result would come before the message.
Calls without a result between them are in one message, because a client looks for unanswered calls only
in the last message of the assistant. Subagents, reasoning, instructions and prompts for goals are not shown.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile

import msgspec
from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    Context,
    Interrupt,
    Message,
    ResumeEntry,
    RunAgentInput,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from msgspec import Struct, field

from agui_container.protocol.strict_json import parse_finite_json, parse_object
from agui_container.protocols.roboto.goals import DeclaredGoal, request_for
from agui_container.protocols.roboto.requests import (
    CANCELLED,
    JSON,
    Facts,
    MessageFacts,
    SendRequest,
    SentMessage,
    SentToolResult,
    StartRequest,
    TurnFailure,
)
from agui_core.content import part_text, text_of
from agui_core.transcript import DURATION, has_failed
from agui_core.turns import answered_ids

USER, ASSISTANT, ROBOTO = "user", "assistant", "roboto"
COMPLETED, GENERATING = "completed", "generating"
TEXT = "text"

FIELD_NAMES = {
    "messages": "message",
    "tools": "client_tools",
    "context": "client_context",
    "forwardedProps.model": "model_profile",
    "forwardedProps.skill": "invoke_skills",
    "forwardedProps.skill.name": "invoke_skills.skill_id",
}
"""Names of a request's fields by the paths of AG-UI."""

VIEWING = "What the user is looking at in the client"
SCOPE = "The range of time to analyse, in nanoseconds since the epoch, both ends included"


# --- a thread as a session --------------------------------------------------------------------------------------------


def date_of(seconds: float | None) -> str | None:
    """Return Unix seconds as ISO 8601 text, in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


class MessageRecord(Struct):
    """A message of a session.

    Attributes:
        created: Unix seconds.
        ids: ids of the AG-UI messages in this message, in order.
        is_sent: True if the client has the message already, because the client sent it.
    """

    role: str
    created: float
    content: list[JSON] = field(default_factory=list)
    status: str = COMPLETED
    ids: list[str] = field(default_factory=list)
    is_sent: bool = False

    @property
    def extent(self) -> tuple[int, int]:
        """Number of characters of text, and number of other blocks."""
        texts = [str(block["text"]) for block in self.content if block["content_type"] == TEXT]
        return sum(map(len, texts)), len(self.content) - len(texts)

    def content_after(self, chars: int, blocks: int) -> list[JSON]:
        """Return the content without the first characters of text and the first other blocks."""
        rest: list[JSON] = []
        for block in self.content:
            if block["content_type"] != TEXT:
                if blocks <= 0:
                    rest.append(block)
                blocks -= 1
                continue
            text = str(block["text"])
            if len(text) > chars:
                rest.append(text_block(text[chars:]))
            chars = max(chars - len(text), 0)
        return rest

    def json(self) -> JSON:
        return {"role": self.role, "content": self.content, "status": self.status, "created": date_of(self.created)}


def session_messages(
    messages: Sequence[Message],
    facts: Facts,
    created: float,
    open_ids: Collection[str] | None = None,
    failures: Mapping[str, TurnFailure] = {},
) -> list[MessageRecord]:
    """Return a thread as a session.

    Args:
        messages: those of the thread, with those of an active run so far.
        facts: the facts of the session.
        created: the time at which the thread was created.
        open_ids: ids of the messages and calls of the active run that have not ended, or None without an active run.
        failures: turns that have failed, by the id of their last message.
    """
    denied = {each for it in messages if isinstance(it, UserMessage) for each in MessageFacts.of(it.metadata).denied}
    session = _Session({tool.name for tool in facts.tools}, created, open_ids or (), denied)
    final, is_waiting = (messages, False) if open_ids is None else _final_messages(messages, open_ids)
    for message in final:
        session.add(message)
        if (failure := failures.get(message.id)) is not None:
            session.add_failure(failure)
    if open_ids is not None and session.messages:
        last = session.messages[-1]
        can_grow = last.role == ASSISTANT or (last.role == ROBOTO and is_waiting)
        last.status = GENERATING if can_grow and last.status == COMPLETED else last.status
    return session.messages


def _final_messages(messages: Sequence[Message], open_ids: Collection[str]) -> tuple[Sequence[Message], bool]:
    """Return the messages whose index cannot change any more, and True if calls of the last answer have no result."""
    answered, is_waiting = answered_ids(messages), False
    for at, message in enumerate(messages):
        match message:
            case UserMessage():
                is_waiting = False
            case AssistantMessage(subagent_run_id=None):
                if is_waiting:
                    return messages[:at], True
                calls = {call.id for call in message.tool_calls or ()}
                is_waiting = not calls <= answered
                if not {message.id, *calls}.isdisjoint(open_ids):
                    return messages[: at + 1], is_waiting
    return messages, is_waiting


class _Session:
    """Builder of a session's messages. Results of the calls in ``denied`` are not shown."""

    def __init__(
        self, client_tools: Collection[str], created: float, open_ids: Collection[str], denied: Collection[str]
    ) -> None:
        self.messages: list[MessageRecord] = []
        self._client_tools = client_tools
        self._created = created
        self._open_ids = open_ids
        self._denied = denied
        self._names: dict[str, str] = {}

    def add(self, message: Message) -> None:
        match message:
            case UserMessage():
                self._add_user(message)
            case AssistantMessage(subagent_run_id=None):
                self._add_assistant(message)
            case ToolMessage(subagent_run_id=None) if message.tool_call_id not in self._denied:
                row = self._row(ROBOTO, message.id)
                row.content.append(_result_block(message, self._names.get(message.tool_call_id, "unknown")))

    def add_failure(self, failure: TurnFailure) -> None:
        """Add the error of a turn, and its text if the turn has none, because some clients show nothing but text."""
        row = self._row(ASSISTANT)
        turn = takewhile(lambda message: message.role != USER, reversed(self.messages))
        if not any(block["content_type"] == TEXT for message in turn for block in message.content):
            row.content.append(text_block(failure.message))
        error: JSON = {"content_type": "error", "error_message": failure.message, "error_code": failure.code}
        row.content.append(error)
        row.status = "cancelled" if failure.code == CANCELLED else "failed"

    def _row(self, role: str, *ids: str, continues: bool = True) -> MessageRecord:
        """Return the last row if it is of this role, or else a new one."""
        if not (continues and self.messages and self.messages[-1].role == role):
            self.messages.append(MessageRecord(role, self._created))
        self.messages[-1].ids += ids
        return self.messages[-1]

    def _add_user(self, message: UserMessage) -> None:
        facts = MessageFacts.of(message.metadata)
        if facts.is_prompt:
            return
        self._created = facts.created or self._created
        row = self._row(USER, message.id, continues=False)
        row.is_sent = facts.is_sent
        parts = [message.content] if isinstance(message.content, str) else map(part_text, message.content)
        row.content += map(text_block, parts)  # Roboto has no blocks for media

    def _add_assistant(self, message: AssistantMessage) -> None:
        has_calls = any("input" in it for row in self.messages[-1:] for it in row.content if row.status == COMPLETED)
        row = self._row(ASSISTANT, message.id, continues=has_calls)
        if message.content:
            row.content.append(text_block(message.content))
        for call in message.tool_calls or ():
            if call.id not in self._open_ids:
                self._names[call.id] = call.function.name
                row.content.append(_tool_use_block(call, of_client=call.function.name in self._client_tools))


def text_block(text: str) -> JSON:
    return {"content_type": TEXT, "text": text}


def _tool_use_block(call: ToolCall, *, of_client: bool) -> JSON:
    return {
        "content_type": "tool_use",
        "tool_name": call.function.name,
        "tool_use_id": call.id,
        "input": parse_object(call.function.arguments),
        "raw_request": None,
        "answered_by_server": not of_client,
    }


def _result_block(message: ToolMessage, name: str) -> JSON:
    """Return the result of a call as a block. Clients read the object ``raw_response``."""
    facts, duration = MessageFacts.of(message.metadata), (message.metadata or {}).get(DURATION)
    text, failed = text_of(message.content), has_failed(message)
    try:
        value = parse_finite_json(text)
    except ValueError:
        value = text
    output = value if isinstance(value, dict) else {"error" if failed else "result": value}
    return {
        "content_type": "tool_result",
        "tool_name": name,
        "tool_use_id": message.tool_call_id,
        "runtime_ms": duration if isinstance(duration, int) else facts.runtime_ms,
        "status": facts.status or ("error" if failed else "success"),
        "raw_response": output,
        "payload": output,
    }


# --- requests as run inputs -------------------------------------------------------------------------------------------


class NewRun(Struct, frozen=True):
    """A run besides its request: its ids, the time in Unix seconds, the facts of its session, the goals of its turn."""

    thread_id: str
    run_id: str
    now: float
    facts: Facts
    goals: Sequence[DeclaredGoal] = ()


def question_id(run_id: str) -> str:
    """Return the id of the message that begins a turn with a run."""
    return f"{run_id}-user"


def start_input(run: NewRun, request: StartRequest) -> RunAgentInput:
    """Return the input of the run that begins a session."""
    earlier, last = list(request.messages), None
    if earlier and earlier[-1].role == USER:
        last = earlier.pop()
    prompt = [SystemMessage(id=f"{run.run_id}-system", content=request.system_prompt)] if request.system_prompt else []
    before = [_earlier_message(message, f"{run.run_id}-{at}", run.now) for at, message in enumerate(earlier)]
    return _turn_input(run, request, [*prompt, *before, _question(run, request, last, MessageFacts(run.now))])


def message_input(
    run: NewRun, request: SendRequest, waiting: Sequence[Interrupt] = (), denied: Sequence[ToolCall] = ()
) -> RunAgentInput:
    """Return the input of the run that answers a message.

    The interrupts that wait are cancelled, because this protocol has no answers to them. Their calls are denied.
    """
    facts = MessageFacts(run.now, is_sent=request.message is not None, denied=[call.id for call in denied])
    question = _question(run, request, request.message, facts)
    resume = [ResumeEntry(interrupt_id=interrupt.id, status="cancelled") for interrupt in waiting]
    return _turn_input(run, request, [question]).model_copy(update={"resume": resume or None})


def results_input(run: NewRun, results: Sequence[SentToolResult], answers: Sequence[Message]) -> RunAgentInput:
    """Return the input of the run that continues with results of client tools, and answers to calls for goals."""
    return continued_input(run, [*(_result(f"{run.run_id}-{at}", it) for at, it in enumerate(results)), *answers])


def continued_input(run: NewRun, messages: Sequence[Message], *contexts: Context, **props: object) -> RunAgentInput:
    """Return the input of a run that continues a turn. ``onBusy`` allows no second run, for any ``AGUI_ON_BUSY``."""
    facts = run.facts
    scope = "{}" if facts.scope is None else msgspec.json.encode(facts.scope).decode()
    scopes = [] if scope == "{}" else [Context(description=SCOPE, value=scope)]
    model = {"model": facts.model_profile} if facts.model_profile else {}
    tools = [Tool(name=it.name, description=it.description, parameters=it.input_schema) for it in facts.tools]
    return RunAgentInput(
        thread_id=run.thread_id,
        run_id=run.run_id,
        protocol_version=PROTOCOL_VERSION,
        state=None,
        messages=list(messages),
        tools=[*tools, *(goal.spec for goal in run.goals)],
        context=[*contexts, *scopes, *(goal.context for goal in run.goals)],
        forwarded_props={**props, **model, "onBusy": "reject"},
    )


def _turn_input(run: NewRun, request: StartRequest | SendRequest, messages: Sequence[Message]) -> RunAgentInput:
    view = {name: value for name, value in (request.client_context or {}).items() if value}
    contexts = [Context(description=VIEWING, value=json.dumps(view, ensure_ascii=False))] if view else []
    skill = {"skill": {"name": request.invoke_skills[0].skill_id}} if request.invoke_skills else {}
    return continued_input(run, messages, *contexts, **skill)


def _question(
    run: NewRun, request: StartRequest | SendRequest, message: SentMessage | None, facts: MessageFacts
) -> UserMessage:
    """Return the message that begins a turn. Without a message of the client, the text names the turn's purpose."""
    skills, names = request.invoke_skills or (), [goal.tool for goal in run.goals]
    text = request_for(names) if names or not skills else f"Use the skill {skills[0].skill_id}."
    content = text if message is None else message.text
    return UserMessage(id=question_id(run.run_id), content=content, metadata=facts.metadata())


def _earlier_message(message: SentMessage, message_id: str, now: float) -> Message:
    if message.role == USER:
        return UserMessage(id=message_id, content=message.text, metadata=MessageFacts(now).metadata())
    return AssistantMessage(id=message_id, content=message.text)


def _result(message_id: str, result: SentToolResult) -> ToolMessage:
    output = result.output or {}
    error = output.get("error", "The client's tool failed." if result.status == "error" else "The user declined it.")
    return ToolMessage(
        id=message_id,
        tool_call_id=result.tool_use_id,
        content=json.dumps(output, ensure_ascii=False),
        error=None if result.status == "success" else str(error),
        metadata=MessageFacts(status=result.status, runtime_ms=result.runtime_ms).metadata(),
    )
