"""Requests of Roboto's clients, field by field.

Rule: unknown members are ignored, because newer clients send them. An invalid member is refused by its name. Lists and
vocabularies that are too long are refused before their items are validated, and a list ends with its first error.
Otherwise a million wrong items would build a million errors and stop the process for many seconds.
"""

from typing import Annotated, Literal, Self, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic import model_validator as validator
from pydantic_core import ErrorDetails, PydanticCustomError

from agui_container.protocol.client_tools import object_schema, schema_problem
from agui_container.protocol.commands import CATEGORIES, MAX_CATEGORIES, Category, Sentiment
from agui_container.protocol.errors import AppError, ErrorCode, clip_message

MAX_GOALS = 5
"""Goals of one turn."""
MAX_LABELS = 50
"""Entries of a vocabulary."""
MAX_SKILLS = 100
"""Skills of a session."""
MAX_MESSAGES = 1_000
"""Messages at the begin of a session."""
MAX_BLOCKS = 5_000
"""Blocks of all messages of a request together."""
MAX_TOOLS = 200
"""Client tools of a session."""
MAX_ERRORS = 5
"""Field errors that one error message lists."""

Words = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Label = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_\-]+$", max_length=100)]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]

V = TypeVar("V")
T = TypeVar("T", bound=BaseModel)


def _check_entries(vocabulary: V) -> V:
    if isinstance(vocabulary, dict) and len(vocabulary) > MAX_LABELS:
        raise PydanticCustomError("too_long", "may have {most} entries at most", {"most": MAX_LABELS})
    return vocabulary


def _check_blocks(messages: V) -> V:
    contents = [it.get("content") for it in messages if isinstance(it, dict)] if isinstance(messages, list) else []
    if sum(len(content) for content in contents if isinstance(content, list)) > MAX_BLOCKS:
        raise PydanticCustomError("too_long", "may have {most} blocks at most", {"most": MAX_BLOCKS})
    return messages


Vocabulary = BeforeValidator(_check_entries)
Conversation = BeforeValidator(_check_blocks)


class RobotoModel(BaseModel):
    """Base of all requests. The empty ``protected_namespaces`` allow the name ``model_profile``."""

    model_config = ConfigDict(frozen=True, protected_namespaces=(), defer_build=True)


# --- messages ---------------------------------------------------------------------------------------------------------


class TextBlock(RobotoModel):
    """A block of text. Clients send no ``content_type`` with it."""

    text: str
    content_type: Literal["text"] = "text"


class SentMessage(RobotoModel):
    """A message of the user, or of the assistant if a session begins with an earlier conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[list[TextBlock], Field(min_length=1, max_length=MAX_BLOCKS), FailFast()]

    @property
    def text(self) -> str:
        """The text of all blocks."""
        return "\n".join(block.text for block in self.content)

    @validator(mode="after")
    def _check_text(self) -> Self:
        if self.role == "user" and not self.text.strip():
            raise PydanticCustomError("blank", "a message of the user must have text")
        return self


class ToolSpec(RobotoModel):
    """A tool that the client runs."""

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


class AnalysisScope(RobotoModel):
    """A range of time in nanoseconds since the epoch, both ends included."""

    start_time: int | None = None
    end_time: int | None = None

    @validator(mode="after")
    def _check_order(self) -> Self:
        if self.start_time is not None and self.end_time is not None and self.start_time > self.end_time:
            raise PydanticCustomError("order", "start_time must not be after end_time")
        return self


class SkillCall(RobotoModel):
    """A skill by its id. The version is ignored, because this server has one version of each skill."""

    skill_id: Annotated[str, StringConstraints(min_length=1)]
    version: int | None = None


# --- goals ------------------------------------------------------------------------------------------------------------


class DatasetSummary(RobotoModel):
    """A summary of a dataset."""

    goal_type: Literal["dataset_summary"]
    dataset_id: str
    summary_format_spec_prompt: Prompt | None = None


class DatasetTriage(RobotoModel):
    """A decision on each label of a vocabulary."""

    goal_type: Literal["dataset_triage"]
    dataset_id: str
    label_vocabulary: Annotated[dict[Label, Words], Field(min_length=1), Vocabulary]


class CreateEvents(RobotoModel):
    """Events in a dataset."""

    goal_type: Literal["create_events"]
    dataset_id: str
    event_vocabulary: Annotated[dict[Name, Words], Field(min_length=1), Vocabulary]
    tag_vocabulary: Annotated[dict[Name, Words], Vocabulary] = Field(default_factory=dict)
    collection_id: str | None = None
    event_focus_prompt: Prompt | None = None


class GenericGoal(RobotoModel):
    """A goal of any other type, with the JSON Schema of its data as in AG-UI's ``forwardedProps.goals``."""

    goal_type: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,44}$")]
    json_schema: Annotated[dict[str, object], Field(alias="schema")]
    description: Annotated[str, StringConstraints(max_length=2_000)] = ""


Goal = DatasetSummary | DatasetTriage | CreateEvents | GenericGoal
KINDS: dict[str, type[Goal]] = {
    "dataset_summary": DatasetSummary,
    "dataset_triage": DatasetTriage,
    "create_events": CreateEvents,
}


# --- requests ---------------------------------------------------------------------------------------------------------


class _TurnRequest(RobotoModel):
    """Members of a request that begins a turn. ``goals_of`` validates the goals, which have several types."""

    client_context: dict[str, object] | None = Field(
        default=None, validation_alias=AliasChoices("client_context", "context")
    )
    client_tools: Annotated[list[ToolSpec] | None, Field(max_length=MAX_TOOLS)] = None
    analysis_scope: AnalysisScope | None = None
    goals: Annotated[list[dict[str, object]] | None, Field(max_length=MAX_GOALS)] = None
    invoke_skills: Annotated[list[SkillCall] | None, Field(max_length=1)] = None


class StartRequest(_TurnRequest):
    """Request to begin a session."""

    messages: Annotated[list[SentMessage], Field(max_length=MAX_MESSAGES), FailFast(), Conversation] = Field(
        default_factory=list
    )
    system_prompt: str | None = None
    model_profile: str | None = None
    visibility: Literal["private", "org"] = "private"
    available_skills: Annotated[list[SkillCall] | None, Field(max_length=MAX_SKILLS)] = None

    @validator(mode="after")
    def _check_trigger(self) -> Self:
        if not self.messages and not self.goals and not self.invoke_skills:
            raise PydanticCustomError("trigger", "messages, goals or invoke_skills must be there")
        if self.messages and self.messages[-1].role != "user" and not self.goals and not self.invoke_skills:
            raise PydanticCustomError("trigger", "the last of messages must be of role user")
        ids = [skill.skill_id for skill in self.available_skills or ()]
        if len(set(ids)) < len(ids):
            raise PydanticCustomError("skills", "available_skills must not name a skill twice")
        return self


class SendRequest(_TurnRequest):
    """Request to send a message to a session."""

    message: SentMessage | None = None

    @validator(mode="after")
    def _check_trigger(self) -> Self:
        if self.message is None and not self.goals and not self.invoke_skills:
            raise PydanticCustomError("trigger", "message, goals or invoke_skills must be there")
        if self.message is not None and self.message.role != "user":
            raise PydanticCustomError("role", "message must be of role user")
        return self


class SentToolResult(RobotoModel):
    """The result of a call that the client ran."""

    tool_use_id: str
    tool_name: str
    runtime_ms: Annotated[int, Field(ge=0)] = 0
    status: Literal["success", "error", "declined"]
    output: dict[str, object] | None = None


class ToolResultsRequest(RobotoModel):
    """Results of client tools. Old clients send an empty list if they know none of the tools."""

    tool_results: Annotated[list[SentToolResult], Field(max_length=1_000)]
    client_tools: Annotated[list[ToolSpec] | None, Field(max_length=MAX_TOOLS)] = None


class FeedbackRequest(RobotoModel):
    """Feedback on a message. Roboto's clients use ``formatting`` for negative feedback only."""

    sentiment: Sentiment
    categories: Annotated[list[Category], Field(max_length=MAX_CATEGORIES), FailFast()] = Field(default_factory=list)
    notes: str | None = None

    @field_validator("categories")
    @classmethod
    def _check_categories(cls, categories: list[Category], info: ValidationInfo) -> list[Category]:
        if info.data.get("sentiment") is Sentiment.POSITIVE and Category.FORMATTING in categories:
            fitting = ", ".join(it for it in CATEGORIES[Sentiment.POSITIVE] if it is not Category.FORMATTING)
            raise PydanticCustomError(
                "unfit", "'formatting' does not fit the sentiment; {fitting} do", {"fitting": fitting}
            )
        return categories


class ForkRequest(RobotoModel):
    """Request to copy a session up to a message, including that message."""

    message_sequence_num: int


class VisibilityRequest(RobotoModel):
    """Request to set the visibility of a session."""

    visibility: Literal["private", "org"]


class PinRequest(RobotoModel):
    """Request to pin or unpin a session."""

    pinned: bool


def read(kind: type[T], document: object, path: str = "") -> T:
    """Validate a JSON object as a request.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [clip_message(_line(row, path)) for row in errors[:MAX_ERRORS]]
        raise AppError(ErrorCode.VALIDATION_ERROR, "; ".join(lines)) from None


def goals_of(request: StartRequest | SendRequest) -> list[Goal]:
    """Return the validated goals of a turn. Raises ``AppError`` like ``read``."""
    return [_goal(document, f"goals.{at}") for at, document in enumerate(request.goals or ())]


def _goal(document: dict[str, object], path: str) -> Goal:
    kind: type[Goal] = KINDS.get(str(document.get("goal_type")), GenericGoal)
    return read(kind, document, path)


def _line(row: ErrorDetails, path: str) -> str:
    field = ".".join(map(str, ([path] if path else []) + list(row["loc"])))
    return f"{field}: {row['msg']}." if field else f"{row['msg']}."
