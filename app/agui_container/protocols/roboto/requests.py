"""Roboto's requests as structs, and the facts of a session and of a message that AG-UI has no place for.

Rules:

- Unknown members are ignored, because newer clients send them. An invalid member is refused by its name.
- Every list and vocabulary has a limit, because its items are validated and stored.
- Each fact of a session is a note of its thread, so that concurrent requests can change different facts. Facts of a
  message are in its ``metadata``.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from pydantic_core import from_json, to_json

from agui_container.ports.records import ThreadNote
from agui_container.protocol.client_input import object_schema, schema_problem
from agui_container.protocol.errors import validation_error

MAX_MESSAGES, MAX_BLOCKS = 1_000, 5_000
"""Messages at the begin of a session, and blocks of a message."""
MAX_TOOLS = 200
"""Client tools of a session."""
MAX_TIME = 253_402_300_799
"""Largest time that has a date, in Unix seconds: the end of the year 9999."""

FACTS, FAILURE, GOAL = "roboto", "roboto.failure", "roboto.goal"
"""Kinds of the notes of a thread. A note of the last two belongs to a message."""

CANCELLED, APPROVAL_REQUIRED = "CANCELLED", "APPROVAL_REQUIRED"
"""Codes of a turn that was cancelled, or that waits for an approval. They are not in the error table."""

PLACE = re.compile(r"^`(?:key` in `)?\$\.?|`$")
"""What surrounds the path of a field in an error message of msgspec."""

JSON = dict[str, object]
T = TypeVar("T")


# --- goals ------------------------------------------------------------------------------------------------------------


Words = Annotated[str, Meta(min_length=1, max_length=500)]
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Label = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_\-]+$", max_length=100)]
Prompt = Annotated[str, Meta(min_length=1, max_length=4_000)]
Labels = Annotated[dict[Label, Words], Meta(min_length=1, max_length=50)]
Names = Annotated[dict[Name, Words], Meta(min_length=1, max_length=50)]
Tags = Annotated[dict[Name, Words], Meta(max_length=50)]


class DatasetSummary(Struct, frozen=True, tag_field="goal_type", tag="dataset_summary"):
    dataset_id: str
    summary_format_spec_prompt: Prompt | None = None


class DatasetTriage(Struct, frozen=True, tag_field="goal_type", tag="dataset_triage"):
    dataset_id: str
    label_vocabulary: Labels


class CreateEvents(Struct, frozen=True, tag_field="goal_type", tag="create_events"):
    dataset_id: str
    event_vocabulary: Names
    tag_vocabulary: Tags = field(default_factory=dict)
    collection_id: str | None = None
    event_focus_prompt: Prompt | None = None


Goal = DatasetSummary | DatasetTriage | CreateEvents
Goals = Annotated[list[Goal], Meta(max_length=5)]


# --- messages and tools -----------------------------------------------------------------------------------------------


class TextBlock(Struct, frozen=True):
    text: str


class SentMessage(Struct, frozen=True):
    """A message of the user, or of the assistant if a session begins with an earlier conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[list[TextBlock], Meta(min_length=1, max_length=MAX_BLOCKS)]

    def __post_init__(self) -> None:
        if self.role == "user" and not self.text.strip():
            raise ValueError("a message of the user must have text")

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.content)


class ToolSpec(Struct):
    name: Annotated[str, Meta(pattern=r"^client_[a-z][a-z0-9_]*$", max_length=128)]
    description: str = ""
    input_schema: Any = None

    def __post_init__(self) -> None:
        schema = object_schema(self.input_schema)
        if schema is None:
            raise ValueError(f"input_schema: {schema_problem(self.name).rstrip('.')}")
        self.input_schema = schema


Tools = Annotated[list[ToolSpec], Meta(max_length=MAX_TOOLS)]


class SentToolResult(Struct, frozen=True):
    tool_use_id: str
    tool_name: str
    status: Literal["success", "error", "declined"]
    runtime_ms: Annotated[int, Meta(ge=0)] = 0
    output: JSON | None = None


class AnalysisScope(Struct, frozen=True, omit_defaults=True):
    """A range of time in nanoseconds since the epoch, both ends included."""

    start_time: int | None = None
    end_time: int | None = None

    def __post_init__(self) -> None:
        if self.start_time is not None and self.end_time is not None and self.start_time > self.end_time:
            raise ValueError("start_time must not be after end_time")


class SkillCall(Struct, frozen=True):
    """A skill by its id. A version is ignored, because this server has one version of each skill."""

    skill_id: Annotated[str, Meta(min_length=1)]


# --- requests ---------------------------------------------------------------------------------------------------------


Visibility = Literal["private", "org"]


class TurnRequest(Struct, frozen=True):
    """Members of a request that begins a turn."""

    client_context: JSON | None = None
    client_tools: Tools | None = None
    analysis_scope: AnalysisScope | None = None
    goals: Goals | None = None
    invoke_skills: Annotated[list[SkillCall], Meta(max_length=1)] | None = None


class StartRequest(TurnRequest, frozen=True):
    messages: Annotated[list[SentMessage], Meta(max_length=MAX_MESSAGES)] = field(default_factory=list)
    system_prompt: str | None = None
    model_profile: str | None = None
    visibility: Visibility = "private"

    def __post_init__(self) -> None:
        if self.goals or self.invoke_skills:
            return
        if not self.messages:
            raise ValueError("messages, goals or invoke_skills must be there")
        if self.messages[-1].role != "user":
            raise ValueError("the last of messages must be of role user")


class SendRequest(TurnRequest, frozen=True):
    message: SentMessage | None = None

    def __post_init__(self) -> None:
        if self.message is None and not self.goals and not self.invoke_skills:
            raise ValueError("message, goals or invoke_skills must be there")
        if self.message is not None and self.message.role != "user":
            raise ValueError("message must be of role user")


class ToolResultsRequest(Struct, frozen=True):
    """Results of client tools. Old clients send an empty list if they know none of the tools."""

    tool_results: Annotated[list[SentToolResult], Meta(max_length=1_000)]
    client_tools: Tools | None = None


class ForkRequest(Struct, frozen=True):
    """Request to copy a session up to a message, including that message."""

    message_sequence_num: int


class VisibilityRequest(Struct, frozen=True):
    visibility: Visibility


class PinRequest(Struct, frozen=True):
    pinned: bool


def read(shape: type[T], document: object) -> T:
    """Validate a part of a request. Raises ``AppError`` VALIDATION_ERROR, naming the field."""
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at ")
        path = PLACE.sub("", place).replace("[", ".").replace("]", "")
        raise validation_error(f"{path}: {text}." if path else f"{text}.") from None


# --- facts ------------------------------------------------------------------------------------------------------------


class TurnFailure(Struct, frozen=True):
    """A turn without its answer. ``code`` is one of the error table, CANCELLED or APPROVAL_REQUIRED."""

    code: str
    message: str

    def note(self, message_id: str) -> ThreadNote:
        return ThreadNote(FAILURE, message_id, msgspec.json.encode(self), message_id=message_id)


class Facts(Struct, frozen=True):
    """Facts of a session that its thread does not have. Another protocol's thread has none.

    Attributes:
        tools: client tools; of several with one name, the last one.
        org_id: the organisation, which only the client knows.
    """

    tools: list[ToolSpec] = field(default_factory=list)
    scope: AnalysisScope | None = None
    model_profile: str | None = None
    org_id: str = "local"
    visibility: Visibility = "private"
    pinned_at: float | None = None

    @classmethod
    def of(cls, notes: Iterable[ThreadNote]) -> "Facts":
        return msgspec.convert({note.id: from_json(note.data) for note in notes if note.kind == FACTS}, cls)

    def with_tools(self, tools: list[ToolSpec] | None) -> list[ToolSpec]:
        """Return the session's tools, with these added. Raises ``AppError`` VALIDATION_ERROR for too many."""
        by_name = {tool.name: tool for tool in (*self.tools, *(tools or ()))}
        if len(by_name) > MAX_TOOLS:
            raise validation_error(f"client_tools: a session may have {MAX_TOOLS} tools at most.")
        return list(by_name.values())


def fact_notes(facts: Mapping[str, object]) -> list[ThreadNote]:
    return [ThreadNote(FACTS, name, to_json(msgspec.to_builtins(value))) for name, value in facts.items()]


class MessageFacts(Struct, frozen=True, omit_defaults=True):
    """Facts of one message, in its ``metadata``.

    Attributes:
        created: Unix seconds.
        is_sent: True if the client has the message already, because the client sent it to an existing session.
        denied: ids of the calls that waited for an approval, and that the message denied.
        is_prompt: True if this package asks for goals with the message. Clients do not see it.
        status, runtime_ms: status and duration of a client's tool, for its result.
    """

    created: Annotated[float, Meta(ge=0, le=MAX_TIME)] | None = None
    is_sent: bool = field(default=False, name="sent")
    denied: list[str] = field(default_factory=list)
    is_prompt: bool = field(default=False, name="prompt")
    status: str | None = None
    runtime_ms: int = 0

    @classmethod
    def of(cls, metadata: Mapping[str, object] | None) -> "MessageFacts":
        """Read the facts of a message. A message of another client has none."""
        try:
            return msgspec.convert((metadata or {}).get(FACTS) or {}, cls)
        except msgspec.ValidationError:  # metadata of another client under the same key
            return cls()

    def metadata(self) -> JSON:
        return {FACTS: msgspec.to_builtins(self)}
