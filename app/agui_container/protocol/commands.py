"""What a user may say of a message: a direction, and reasons that fit it.

Rule: closed lists, so that what operators count means the same everywhere. The names are part of the API.

What a client may ask besides starting a run, field by field; the same in a body, a frame and a route.

Rule: whatever is wrong with a field is found here, so that every transport refuses it in the same words. Unknown fields
are ignored, as newer clients may send them. The first command builds the validators, because a start waits for them and
most sessions have no command.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class Sentiment(StrEnum):
    """Whether a message was good."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Category(StrEnum):
    """Why. ``OTHER`` goes with both sentiments, and says nothing without words beside it."""

    CORRECT = "correct"
    HELPFUL = "helpful"
    GOOD_TOOL_USE = "good_tool_use"
    FORMATTING = "formatting"
    INCORRECT = "incorrect"
    INCOMPLETE = "incomplete"
    TOOL_FAILURE = "tool_failure"
    REFUSED_VALID_REQUEST = "refused_valid_request"
    SLOW = "slow"
    UNSAFE = "unsafe"
    OTHER = "other"


CATEGORIES: Mapping[Sentiment, tuple[Category, ...]] = {
    Sentiment.POSITIVE: (
        Category.CORRECT,
        Category.HELPFUL,
        Category.GOOD_TOOL_USE,
        Category.FORMATTING,
        Category.OTHER,
    ),
    Sentiment.NEGATIVE: (
        Category.INCORRECT,
        Category.INCOMPLETE,
        Category.TOOL_FAILURE,
        Category.REFUSED_VALID_REQUEST,
        Category.FORMATTING,
        Category.SLOW,
        Category.UNSAFE,
        Category.OTHER,
    ),
}
"""What fits which sentiment."""


MAX_ID = 512
"""Characters of a threadId, runId or messageId, and of a token."""

MAX_TITLE = 200
"""Characters of a thread's title."""

MAX_NOTES = 4_000
"""Characters that explain a feedback."""

MAX_CATEGORIES = 50
"""Categories of a feedback, repeated ones included."""

MAX_PAGE = 100
"""Items of one page of a list."""


def _number(value: object) -> object:
    """``true`` is no number, although it is one to Python."""
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


def _flag(value: object) -> object:
    """A query has words only, and there these two."""
    said = {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise PydanticCustomError("flag", "must be true or false")
    return said


Number = Annotated[int, BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Id = Annotated[str, Field(min_length=1, max_length=MAX_ID)]
Token = Annotated[str, Field(max_length=MAX_ID)]


class _Command(BaseModel):
    """What every command may carry: the thread it concerns."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, defer_build=True)

    thread_id: Annotated[str, Field(max_length=MAX_ID)] | None = None


# --- runs -------------------------------------------------------------------------------------------------------------


class _OnRun(_Command):
    """The fields that address a run. Without ``runId`` it is the thread's active run, or else its latest.

    Without both, a socket takes the ids that its connection implies; everywhere else there is no such run.
    """

    run_id: Annotated[str, Field(max_length=MAX_ID)] | None = None


class Cancel(_OnRun):
    """End a run as cancelled."""

    type: Literal["cancel"] = "cancel"


class Attach(_OnRun):
    """Replay a run's events after ``after`` and follow it."""

    type: Literal["attach"] = "attach"
    after: Annotated[Number, Field(ge=0)] = 0


class RunsList(_Command):
    """The caller's open runs and recent ones, the newest first."""

    type: Literal["runs.list"] = "runs.list"


class RunsGet(_OnRun):
    """How a run stands."""

    type: Literal["runs.get"] = "runs.get"


class Capabilities(_Command):
    """Ask what this server can do."""

    type: Literal["capabilities"] = "capabilities"


class Ping(_Command):
    """Ask for a sign of life."""

    type: Literal["ping"] = "ping"


# --- threads ----------------------------------------------------------------------------------------------------------


class ThreadsList(_Command):
    """The caller's threads, the one that changed last first. ``page`` is a ``next`` of an earlier answer."""

    type: Literal["threads.list"] = "threads.list"
    limit: Annotated[Number, Field(ge=1, le=MAX_PAGE)] = MAX_PAGE
    page: Token | None = None


class _OnThread(_Command):
    """The field that addresses a thread."""

    thread_id: Id


class ThreadsGet(_OnThread):
    """A thread, with its messages or without."""

    type: Literal["threads.get"] = "threads.get"
    messages: Flag = True


class ThreadsRename(_OnThread):
    """Give a thread a title of one line; None takes it away."""

    type: Literal["threads.rename"] = "threads.rename"
    title: Annotated[str, Field(max_length=MAX_TITLE)] | None

    @field_validator("title")
    @classmethod
    def _check_title(cls, title: str | None) -> str | None:
        line = None if title is None else " ".join(title.split())
        if line == "":
            raise PydanticCustomError("blank", "must not be blank; null takes the title away")
        return line


class ThreadsDelete(_OnThread):
    """Remove a thread and everything of it."""

    type: Literal["threads.delete"] = "threads.delete"


class ThreadsTranscript(_OnThread):
    """A thread as text."""

    type: Literal["threads.transcript"] = "threads.transcript"


class ThreadsDelta(_OnThread):
    """What a thread has become since a ``continuationToken``; everything without one."""

    type: Literal["threads.delta"] = "threads.delta"
    since: Token | None = None


class ThreadsFork(_OnThread):
    """A new thread with the history up to and including a message. Who names it may ask again and gets the same."""

    type: Literal["threads.fork"] = "threads.fork"
    message_id: Id
    new_thread_id: Id | None = None


class ThreadsFeedback(_OnThread):
    """What the caller says of a message. Categories are a set: repeated ones count once, in the order of their names.

    The fields are checked in this order: categories against the sentiment, notes against the categories.
    """

    type: Literal["threads.feedback"] = "threads.feedback"
    message_id: Id
    sentiment: Sentiment
    categories: Annotated[tuple[Category, ...], Field(max_length=MAX_CATEGORIES)] = ()
    notes: Annotated[str | None, Field(max_length=MAX_NOTES, validate_default=True)] = None

    @field_validator("categories")
    @classmethod
    def _check_categories(cls, categories: tuple[Category, ...], info: ValidationInfo) -> tuple[Category, ...]:
        sentiment: Sentiment | None = info.data.get("sentiment")
        fitting = CATEGORIES[sentiment] if sentiment else tuple(Category)
        for category in categories:
            if category not in fitting:
                facts = {"category": category.value, "fitting": ", ".join(fitting)}
                raise PydanticCustomError("unfit", "'{category}' does not fit the sentiment; {fitting} do", facts)
        return tuple(sorted(set(categories)))

    @field_validator("notes")
    @classmethod
    def _check_notes(cls, notes: str | None, info: ValidationInfo) -> str | None:
        said = (notes or "").strip() or None
        if said is None and Category.OTHER in info.data.get("categories", ()):
            raise PydanticCustomError("missing_notes", "are required with the category 'other'")
        return said


OfThreads = (
    ThreadsList
    | ThreadsGet
    | ThreadsRename
    | ThreadsDelete
    | ThreadsTranscript
    | ThreadsDelta
    | ThreadsFork
    | ThreadsFeedback
)
Command = Cancel | Attach | Capabilities | Ping | RunsList | RunsGet | OfThreads
COMMAND: TypeAdapter[Command] = TypeAdapter(
    Annotated[Command, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)
COMMANDS: tuple[str, ...] = tuple(kind.model_fields["type"].default for kind in get_args(Command))
