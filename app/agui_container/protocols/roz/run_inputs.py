"""Tools, start requests and messages of a roz client, as a session keeps them until they are answered.

Rule: a request is translated once, when it arrives. A tool set belongs to its source. A second registration of a source
replaces its tools, and an empty list removes them. A registration without a source adds to the tools of the start, and
removes none. A run begins with the tools that are registered then, or with the tools of its message, and is offered
those that are registered while it lasts.
"""

from collections.abc import Collection, Mapping, Sequence

from ag_ui.core import PROTOCOL_VERSION, Context, Message, RunAgentInput, Tool, UserMessage
from msgspec import Struct
from msgspec.structs import replace

from agui_container.protocol.errors import validation_error
from agui_container.protocol.parser import MAX_ITEMS
from agui_container.protocols.conversation.pending import Answer, OpenCall
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.grpc.call import check_id
from agui_container.protocols.roz.client_messages import history_of, tool_of, user_message
from agui_container.protocols.roz.options import PermissionRule, rule_for

MAX_CONTEXTS = MAX_ITEMS["context"]
"""Number of texts about the user's project."""

MAX_TOOLS = 1_000
TIMEOUT_MS = 60_000
"""Milliseconds for a tool that has no timeout of its own."""

MAX_TIMEOUT_MS = 3_600_000

CATEGORIES = {
    pb.TOOL_CATEGORY_PHYSICAL: "physical",
    pb.TOOL_CATEGORY_PURE: "pure",
    pb.TOOL_CATEGORY_CODE_SANDBOX: "code_sandbox",
}
"""Names of the categories of tools, by the values of clients."""


# --- tools ------------------------------------------------------------------------------------------------------------


class ClientTool(Struct, frozen=True):
    """One tool of the client. ``category`` is one of ``CATEGORIES``, or empty."""

    tool: Tool
    timeout_ms: int
    category: str
    source: str


ToolsByName = Mapping[str, ClientTool]


def tools_by_name(schemas: Collection[pb.ToolSchema], source: str = "") -> dict[str, ClientTool]:
    """Of several tools with one name, the last one is used. Raises ``AppError`` VALIDATION_ERROR."""
    if len(schemas) > MAX_TOOLS:
        raise validation_error(f"tools: a client may offer {MAX_TOOLS} tools at most.")
    tools = {}
    for schema in schemas:
        timeout = min(schema.timeout_ms or TIMEOUT_MS, MAX_TIMEOUT_MS)
        category = CATEGORIES.get(schema.category, "")
        tools[schema.name] = ClientTool(tool_of(schema), timeout, category, source)
    return tools


class ClientTools:
    """Tools of a session. The rules of the server's tool policy, as the client is told them, hold for these, too."""

    def __init__(self, rules: Sequence[PermissionRule] = ()) -> None:
        self._rules = rules
        self.current: ToolsByName = {}
        self.system_contexts: dict[str, str] = {}

    def for_turn(self, own: ToolsByName) -> ToolsByName:
        """Return the tools of a message, or else those of the session, without those that a rule denies."""
        return {name: it for name, it in (own or self.current).items() if rule_for(self._rules, name).policy != "deny"}

    def register(self, source: str, new: ToolsByName, system_context: str) -> None:
        """Replace the tools of a source, or add tools without one. Too many raise ``AppError`` and change nothing."""
        prefix = f"{source}__"
        remaining = {
            name: tool
            for name, tool in self.current.items()
            if not source or (tool.source != source and not name.startswith(prefix))
        }
        if len(remaining.keys() | new.keys()) > MAX_TOOLS:
            raise validation_error(f"tools: a client may offer {MAX_TOOLS} tools at most.")
        self.current = {**remaining, **new}
        earlier = self.system_contexts.pop(source, "")
        if not source:
            is_known = f"\n\n{system_context}\n\n" in f"\n\n{earlier}\n\n"
            system_context = earlier if is_known else "\n\n".join(filter(None, (earlier, system_context)))
        if system_context and (new or not source):
            self.system_contexts[source] = system_context


# --- requests ---------------------------------------------------------------------------------------------------------


class SessionStart(Struct, frozen=True):
    """What a start request gives to the runs of its session: ``forwardedProps``, texts, and an earlier conversation."""

    props: Mapping[str, object]
    project: Sequence[str]
    context_tokens: int
    history: Sequence[Message]
    size: int

    def without_history(self) -> "SessionStart":
        return replace(self, history=(), size=sum(map(len, self.project)))


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
    texts = [("The user's project", text) for text in start.project]
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
    return RozTurn(run_input, tools, start.size + cause.size, has_history=bool(history))


def read_start(start: pb.StartSession, model: str, size: int) -> tuple[SessionStart, ToolsByName]:
    """Return the start with its tools. Raises ``AppError`` VALIDATION_ERROR, naming the field."""
    if len(start.project_context) > MAX_CONTEXTS:
        raise validation_error(f"project_context: may have {MAX_CONTEXTS} texts at most.")
    tokens = start.max_context_tokens
    named = {"model": model, "environmentId": start.environment_id, "hostId": start.host_id}
    props = {**named, "budget": {"contextTokens": tokens} if tokens else None}
    used = {name: value for name, value in props.items() if value}
    history, tools = history_of(start.history), tools_by_name(start.tools)
    return SessionStart(used, list(start.project_context), tokens, history, size), tools


def read_message(message: pb.UserMessage, size: int, message_id: str, new_id: str) -> QueuedMessage:
    """Raise ``AppError`` VALIDATION_ERROR, naming the field."""
    check_id("message_id", message_id)
    content, tools = user_message(message, new_id), tools_by_name(message.tools)
    return QueuedMessage(message_id, content, tools, message.system_context, message.ai_mode, size)
