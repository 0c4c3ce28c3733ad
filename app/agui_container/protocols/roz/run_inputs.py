"""Start requests and messages of a roz client, as a session keeps them until they are answered.

Rule: a request is translated once, when it arrives.
"""

from collections.abc import Sequence

from ag_ui.core import PROTOCOL_VERSION, Context, Message, RunAgentInput, UserMessage
from msgspec import Struct

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import MAX_ITEMS
from agui_container.protocols.conversation.pending import Answer, OpenCall
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.grpc.messages import check_id
from agui_container.protocols.roz.client_messages import history_of, user_message
from agui_container.protocols.roz.client_tools import ClientTools, ToolsByName, tools_by_name

MAX_CONTEXTS = MAX_ITEMS["context"]
"""Number of texts about the user's project."""


class SessionStart(Struct, frozen=True):
    """A start request without its history and its tools, and the history until a run has stored it."""

    request: pb.StartSession
    history: Sequence[Message]
    tools: ToolsByName
    size: int

    def without_history(self) -> "SessionStart":
        return SessionStart(self.request, (), {}, self.request.ByteSize())

    @property
    def props(self) -> dict[str, object]:
        """``forwardedProps`` of every run of the session."""
        start = self.request
        named = {"model": start.model, "environmentId": start.environment_id, "hostId": start.host_id}
        budget = {"budget": {"contextTokens": start.max_context_tokens}} if start.max_context_tokens else {}
        return {**{name: value for name, value in named.items() if value}, **budget}


class QueuedMessage(Struct, frozen=True):
    """A message that waits for its turn. ``tools`` replace those that are registered, unless they are empty."""

    message_id: str
    content: UserMessage
    tools: ToolsByName
    system_context: str
    mode: str
    size: int


class OpenCallAnswer(Struct, frozen=True):
    """The answer to a call that no turn of the session waits for."""

    message_id: str
    call: OpenCall
    answer: Answer
    size: int


class RozTurn(Struct, frozen=True):
    """The beginning of a turn. A thread with messages must not get an input that ``has_history``."""

    run_input: RunAgentInput
    tools: ToolsByName
    size: int
    has_history: bool


def turn_request(
    start: SessionStart, cause: QueuedMessage | OpenCallAnswer, registered: ClientTools, thread_id: str, run_id: str
) -> RozTurn:
    """Return the turn of a message, with its tools or else those that are registered, or the one of an answer."""
    message = cause if isinstance(cause, QueuedMessage) else None
    tools = registered.for_turn({} if message is None else message.tools)
    texts = [("The user's project", text) for text in start.request.project_context]
    sources = registered.system_contexts.items()
    texts += [(f"Tools of {source}" if source else "Tools", text) for source, text in sources]
    if message is not None:
        texts.append(("This turn", message.system_context))
    history = start.history if message is not None else ()
    run_input = RunAgentInput(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        messages=[*history, message.content] if message is not None else [],
        tools=[tool.tool for tool in tools.values()],
        context=[Context(description=description, value=text) for description, text in texts if text],
        forwarded_props={**start.props, **({"aiMode": message.mode} if message is not None and message.mode else {})},
    )
    size = start.size + registered.size + cause.size
    return RozTurn(run_input, tools, size, has_history=bool(history))


def read_start(start: pb.StartSession) -> SessionStart:
    """Raise ``AppError`` VALIDATION_ERROR, naming the field."""
    if len(start.project_context) > MAX_CONTEXTS:
        raise AppError(ErrorCode.VALIDATION_ERROR, f"project_context: may have {MAX_CONTEXTS} texts at most.")
    history, tools = history_of(start.history), tools_by_name(start.tools)
    start.ClearField("tools")
    size = start.ByteSize()
    start.ClearField("history")
    request = pb.StartSession()  # the original shares its memory with the whole request
    request.CopyFrom(start)
    return SessionStart(request, history, tools, size)


def read_message(message: pb.UserMessage, size: int, message_id: str, new_id: str) -> QueuedMessage:
    """Raise ``AppError`` VALIDATION_ERROR, naming the field."""
    check_id("message_id", message_id)
    content, tools = user_message(message, new_id), tools_by_name(message.tools)
    return QueuedMessage(message_id, content, tools, message.system_context, message.ai_mode, size)
