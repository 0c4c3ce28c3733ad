"""Start requests and messages of a roz client, as a session keeps them until they are answered.

Rule: a request is translated once, when it arrives.
"""

from collections.abc import Sequence

from ag_ui.core import PROTOCOL_VERSION, Context, Message, RunAgentInput, UserMessage
from msgspec import Struct

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import MAX_ITEMS
from agui_container.transports.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.messages import check_id
from agui_container.transports.roz.client_messages import history_of, user_message
from agui_container.transports.roz.client_tools import ClientTools, ToolsByName, tools_by_name

MAX_CONTEXTS = MAX_ITEMS["context"]
"""Number of texts about the user's project."""


class SessionStart(Struct, frozen=True):
    """A start request.

    Attributes:
        request: the request without its history and its tools.
        history: messages of an earlier conversation, until a run has stored them.
        size: bytes of both.
    """

    request: pb.StartSession
    history: Sequence[Message]
    tools: ToolsByName
    size: int

    def without_history(self) -> "SessionStart":
        """Return what is kept once the history is stored."""
        return SessionStart(self.request, (), {}, self.request.ByteSize())

    @property
    def props(self) -> dict[str, object]:
        """``forwardedProps`` of every run of the session."""
        start = self.request
        named = {"model": start.model, "environmentId": start.environment_id, "hostId": start.host_id}
        budget = {"budget": {"contextTokens": start.max_context_tokens}} if start.max_context_tokens else {}
        return {**{name: value for name, value in named.items() if value}, **budget}


class QueuedMessage(Struct, frozen=True):
    """A message that waits for its turn.

    Attributes:
        message_id: id of the message for the client.
        tools: tools of this turn, instead of those that are registered; empty for none.
        system_context: text for the model in this turn.
        size: bytes of its request.
    """

    message_id: str
    content: UserMessage
    tools: ToolsByName
    system_context: str
    mode: str
    size: int


class TurnRequest(Struct, frozen=True):
    """A message that a turn answers.

    Attributes:
        tools: the client's tools in this turn.
        size: bytes of the input, with history and tools.
        has_history: True if the input has the session's history, which a thread with messages must not get.
    """

    run_input: RunAgentInput
    tools: ToolsByName
    size: int
    has_history: bool


def turn_request(
    start: SessionStart, message: QueuedMessage, registered: ClientTools, thread_id: str, run_id: str
) -> TurnRequest:
    """Return the turn of a message, with the tools of the message or else those that are registered."""
    tools = message.tools or registered.current
    texts = [("The user's project", text) for text in start.request.project_context]
    sources = registered.system_contexts.items()
    texts += [(f"Tools of {source}" if source else "Tools", text) for source, text in sources]
    texts.append(("This turn", message.system_context))
    run_input = RunAgentInput(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        messages=[*start.history, message.content],
        tools=[tool.tool for tool in tools.values()],
        context=[Context(description=description, value=text) for description, text in texts if text],
        forwarded_props={**start.props, **({"aiMode": message.mode} if message.mode else {})},
    )
    size = start.size + registered.size + message.size
    return TurnRequest(run_input, tools, size, has_history=bool(start.history))


def read_start(start: pb.StartSession) -> SessionStart:
    """Translate a start request.

    Raises:
        AppError: VALIDATION_ERROR for an unknown role, a tool without a name, or too many messages, tools or texts.
    """
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
    """Translate a message.

    Args:
        message: the message of the client.
        size: bytes of its request.
        message_id: id of the message for the client.
        new_id: id of the message in the thread.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    check_id("message_id", message_id)
    content, tools = user_message(message, new_id), tools_by_name(message.tools)
    return QueuedMessage(message_id, content, tools, message.system_context, message.ai_mode, size)
