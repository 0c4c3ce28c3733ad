"""Roboto's wire as models: what clients send, and what they get; and the facts of a session that its thread has not.

Rules:

- Each fact of a session is a note of its thread, so that concurrent requests can change different facts. Facts of a
  message are in its ``metadata``.
- Unknown members are ignored, because newer clients send them. An invalid member is refused by its name.
- Lists and vocabularies that are too long are refused before their items are validated. Otherwise a million wrong
  items would build a million errors and stop the process for many seconds.
- ``thread_id``, ``session_id`` and ``chat_id`` are the same, because each generation of clients reads another of them.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, Self, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, from_json, to_json

from agui_container.ports.records import ThreadNote
from agui_container.protocol.client_input import object_schema, schema_problem
from agui_container.protocol.errors import AppError, ErrorCode, clip_message

MAX_GOALS, MAX_LABELS = 5, 50
"""Goals of one turn, and entries of a vocabulary."""
MAX_MESSAGES, MAX_BLOCKS = 1_000, 5_000
"""Messages at the begin of a session, and blocks of a message."""
MAX_TOOLS, MAX_RESULTS = 200, 1_000
"""Client tools of a session, and results of a request."""
MAX_ERRORS = 5
"""Field errors that one error message lists."""

MAX_ENDED_TURNS = 100
"""Turns whose failure or end of goals a session keeps."""
MAX_TIME = 253_402_300_799
"""Largest time that has a date, in Unix seconds: the end of the year 9999."""

FACTS, MESSAGE = "roboto", "roboto"
"""Kind of the notes of a thread, and key of the facts in the ``metadata`` of a message."""

CANCELLED, APPROVAL_REQUIRED = "CANCELLED", "APPROVAL_REQUIRED"
"""Codes of a turn that was cancelled, or that waits for an approval. They are not in the error table."""

JSON = dict[str, object]
T = TypeVar("T")


def at_most(most: int) -> BeforeValidator:
    """Return a validator that refuses a longer list or vocabulary, by one error."""

    def check(items: object) -> object:
        if isinstance(items, list | dict) and len(items) > most:
            raise PydanticCustomError("too_long", "may have {most} entries at most", {"most": most})
        return items

    return BeforeValidator(check)


class RobotoModel(BaseModel):
    """Base of the models. The empty ``protected_namespaces`` allow the name ``model_profile``."""

    model_config = ConfigDict(frozen=True, protected_namespaces=(), defer_build=True)


# --- messages and tools -----------------------------------------------------------------------------------------------


class TextBlock(RobotoModel):
    """A block of text. Clients send no ``content_type`` with it."""

    text: str
    content_type: Literal["text"] = "text"


class SentMessage(RobotoModel):
    """A message of the user, or of the assistant if a session begins with an earlier conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[list[TextBlock], FailFast(), Field(min_length=1), at_most(MAX_BLOCKS)]

    @property
    def text(self) -> str:
        """The text of all blocks."""
        return "\n".join(block.text for block in self.content)

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        if self.role == "user" and not self.text.strip():
            raise PydanticCustomError("blank", "a message of the user must have text")
        return self


class ToolSpec(RobotoModel):
    name: Annotated[str, StringConstraints(pattern=r"^client_[a-z][a-z0-9_]*$", max_length=128)]
    description: str = ""
    input_schema: dict[str, object] = Field(default_factory=dict, validate_default=True)

    @field_validator("input_schema", mode="before")
    @classmethod
    def _check_schema(cls, value: object, info: ValidationInfo) -> dict[str, object]:
        schema = object_schema(value)
        if schema is None:
            raise PydanticCustomError("schema", "{problem}", {"problem": schema_problem(info.data.get("name"))})
        return schema


class SentToolResult(RobotoModel):
    tool_use_id: str
    tool_name: str
    runtime_ms: Annotated[int, Field(ge=0)] = 0
    status: Literal["success", "error", "declined"]
    output: dict[str, object] | None = None


class AnalysisScope(RobotoModel):
    """A range of time in nanoseconds since the epoch, both ends included."""

    start_time: int | None = None
    end_time: int | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.start_time is not None and self.end_time is not None and self.start_time > self.end_time:
            raise PydanticCustomError("order", "start_time must not be after end_time")
        return self


class SkillCall(RobotoModel):
    """A skill by its id. The version is ignored, because this server has one version of each skill."""

    skill_id: Annotated[str, StringConstraints(min_length=1)]
    version: int | None = None


# --- goals ------------------------------------------------------------------------------------------------------------


Visibility = Literal["private", "org"]
Words = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Label = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_\-]+$", max_length=100)]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]
Vocabulary = at_most(MAX_LABELS)


class DatasetSummary(RobotoModel):
    goal_type: Literal["dataset_summary"]
    dataset_id: str
    summary_format_spec_prompt: Prompt | None = None


class DatasetTriage(RobotoModel):
    goal_type: Literal["dataset_triage"]
    dataset_id: str
    label_vocabulary: Annotated[dict[Label, Words], Field(min_length=1), Vocabulary]


class CreateEvents(RobotoModel):
    goal_type: Literal["create_events"]
    dataset_id: str
    event_vocabulary: Annotated[dict[Name, Words], Field(min_length=1), Vocabulary]
    tag_vocabulary: Annotated[dict[Name, Words], Vocabulary] = Field(default_factory=dict)
    collection_id: str | None = None
    event_focus_prompt: Prompt | None = None


Goal = Annotated[DatasetSummary | DatasetTriage | CreateEvents, Discriminator("goal_type")]
Goals = Annotated[list[Goal], at_most(MAX_GOALS)]
GOAL_TYPES = ("dataset_summary", "dataset_triage", "create_events")
"""Tags of the union, which are no parts of a field's path."""


# --- requests ---------------------------------------------------------------------------------------------------------


class TurnRequest(RobotoModel):
    """Members of a request that begins a turn."""

    client_context: dict[str, object] | None = Field(
        default=None, validation_alias=AliasChoices("client_context", "context")
    )
    client_tools: Annotated[list[ToolSpec], at_most(MAX_TOOLS)] | None = None
    analysis_scope: AnalysisScope | None = None
    goals: Goals | None = None
    invoke_skills: Annotated[list[SkillCall], at_most(1)] | None = None


class StartRequest(TurnRequest):
    messages: Annotated[list[SentMessage], FailFast(), at_most(MAX_MESSAGES)] = Field(default_factory=list)
    system_prompt: str | None = None
    model_profile: str | None = None
    visibility: Visibility = "private"
    available_skills: Annotated[list[SkillCall], at_most(100)] | None = None

    @model_validator(mode="after")
    def _check_trigger(self) -> Self:
        if not self.messages and not self.goals and not self.invoke_skills:
            raise PydanticCustomError("trigger", "messages, goals or invoke_skills must be there")
        if self.messages and self.messages[-1].role != "user" and not self.goals and not self.invoke_skills:
            raise PydanticCustomError("trigger", "the last of messages must be of role user")
        skills = [skill.skill_id for skill in self.available_skills or ()]
        if len(set(skills)) < len(skills):
            raise PydanticCustomError("skills", "available_skills must not name a skill twice")
        return self


class SendRequest(TurnRequest):
    message: SentMessage | None = None

    @model_validator(mode="after")
    def _check_trigger(self) -> Self:
        if self.message is None and not self.goals and not self.invoke_skills:
            raise PydanticCustomError("trigger", "message, goals or invoke_skills must be there")
        if self.message is not None and self.message.role != "user":
            raise PydanticCustomError("role", "message must be of role user")
        return self


class ToolResultsRequest(RobotoModel):
    """Results of client tools. Old clients send an empty list if they know none of the tools."""

    tool_results: Annotated[list[SentToolResult], at_most(MAX_RESULTS)]
    client_tools: Annotated[list[ToolSpec], at_most(MAX_TOOLS)] | None = None


class ForkRequest(RobotoModel):
    """Request to copy a session up to a message, including that message."""

    message_sequence_num: int


class VisibilityRequest(RobotoModel):
    visibility: Visibility


class PinRequest(RobotoModel):
    pinned: bool


def read(shape: type[T], document: object) -> T:
    """Validate a part of a request. Raises ``AppError`` VALIDATION_ERROR, naming the fields."""
    try:
        return TypeAdapter(shape).validate_python(document)
    except ValidationError as error:
        lines = []
        for row in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_ERRORS]:
            path = ".".join(str(part) for part in row["loc"] if part not in GOAL_TYPES)
            lines.append(clip_message(f"{path}: {row['msg']}." if path else f"{row['msg']}."))
        raise AppError(ErrorCode.VALIDATION_ERROR, "; ".join(lines)) from None


# --- answers ----------------------------------------------------------------------------------------------------------


def date_of(seconds: float | None) -> str | None:
    """Return Unix seconds as ISO 8601 text, in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def ids(thread_id: str) -> JSON:
    """Return a session's id under each of its names."""
    return {"thread_id": thread_id, "session_id": thread_id, "chat_id": thread_id}


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
    status: str = "completed"
    ids: list[str] = field(default_factory=list)
    is_sent: bool = False

    def json(self) -> JSON:
        """Return the message as clients get it."""
        return {"role": self.role, "content": self.content, "status": self.status, "created": date_of(self.created)}


# --- facts ------------------------------------------------------------------------------------------------------------


class TurnFailure(RobotoModel):
    """A turn without its answer. ``code`` is one of the error table, CANCELLED or APPROVAL_REQUIRED."""

    code: str
    message: str


class Notes(RobotoModel):
    """Facts of a session that its thread does not have. Another protocol's thread has none.

    Attributes:
        tools: client tools; of several with one name, the last one.
        org_id: the organisation, which only the client knows.
        failures: failed turns, by the id of the message after which the turn failed.
        forked_from: index of the last copied message, if the session is a copy.
        open_goals: id of the run that began the last turn with goals, until that turn ends.
        concluded: times at which turns with goals ended, by the id of the run that began the turn, in Unix seconds.
    """

    tools: list[ToolSpec] = Field(default_factory=list)
    scope: AnalysisScope | None = None
    model_profile: str | None = None
    org_id: str = "local"
    visibility: Visibility = "private"
    pinned_at: float | None = None
    failures: dict[str, TurnFailure] = Field(default_factory=dict)
    forked_from: int | None = None
    open_goals: str | None = None
    concluded: dict[str, float] = Field(default_factory=dict)

    @classmethod
    def of(cls, notes: Iterable[ThreadNote]) -> Self:
        return cls.model_validate({note.id: from_json(note.data) for note in notes if note.kind == FACTS})

    def with_tools(self, tools: list[ToolSpec] | None) -> list[ToolSpec]:
        """Return the session's tools, with these added. Raises ``AppError`` VALIDATION_ERROR for too many."""
        by_name = {tool.name: tool for tool in (*self.tools, *(tools or ()))}
        if len(by_name) > MAX_TOOLS:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"client_tools: a session may have {MAX_TOOLS} tools at most.")
        return list(by_name.values())

    def with_failure(self, message_id: str, failure: TurnFailure) -> JSON:
        """Return the facts that change when a turn fails after a message."""
        return {"failures": dict([*self.failures.items(), (message_id, failure)][-MAX_ENDED_TURNS:])}

    def with_goals(self, run_id: str | None, now: float) -> JSON:
        """Return the facts that change when a turn begins with goals, in the run ``run_id``, or ends or has none."""
        if run_id is None and self.open_goals is None:
            return {}
        ended = [] if self.open_goals is None else [(self.open_goals, now)]
        return {"open_goals": run_id, "concluded": dict([*self.concluded.items(), *ended][-MAX_ENDED_TURNS:])}


def as_notes(facts: Mapping[str, object]) -> list[ThreadNote]:
    return [ThreadNote(FACTS, name, to_json(value)) for name, value in facts.items()]


class MessageNotes(Struct, frozen=True, omit_defaults=True):
    """Facts of one message, in its ``metadata``.

    Attributes:
        run_id: id of the run that the message began.
        created: Unix seconds.
        is_sent: True if the client has the message already, because the client sent it to an existing session.
        goals: goals that the client declared with the message.
        context: context that the client sent with the message.
        denied: ids of the calls that waited for an approval, and that the message denied.
        is_prompt: True if this package asks for goals with the message. Clients do not see it.
        has_achieved: True for the result of a call that has achieved a goal.
        status, runtime_ms: status and duration of a client's tool, for its result.
    """

    run_id: str | None = None
    created: Annotated[float, Meta(ge=0, le=MAX_TIME)] | None = None
    is_sent: bool = field(default=False, name="sent")
    goals: list[JSON] = field(default_factory=list)
    context: JSON | None = None
    denied: list[str] = field(default_factory=list)
    is_prompt: bool = field(default=False, name="prompt")
    has_achieved: bool = field(default=False, name="achieved")
    status: str | None = None
    runtime_ms: int = 0

    @classmethod
    def of(cls, metadata: Mapping[str, object] | None) -> "MessageNotes":
        """Read the facts of a message. A message of another client has none."""
        try:
            return msgspec.convert((metadata or {}).get(MESSAGE) or {}, cls)
        except msgspec.ValidationError:  # metadata of another client under the same key
            return cls()

    def metadata(self) -> JSON:
        return {MESSAGE: msgspec.to_builtins(self)}
