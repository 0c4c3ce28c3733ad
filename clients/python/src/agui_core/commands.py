"""Commands: client requests other than starting a run. A body, a WebSocket frame and a REST route share these models.

Rule: all fields are validated here, so that every transport refuses a wrong field with the same message. Unknown fields
are ignored, because newer clients may send them. Sentiments and categories of feedback are closed lists and part of the
API. The validators are built by the first command, so that the process starts faster.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class FeedbackSentiment(StrEnum):
    """A user's verdict on a message."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class FeedbackCategory(StrEnum):
    """A reason for a sentiment. ``OTHER`` fits both sentiments and requires notes."""

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


CATEGORIES: Mapping[FeedbackSentiment, tuple[FeedbackCategory, ...]] = {
    FeedbackSentiment.POSITIVE: (
        FeedbackCategory.CORRECT,
        FeedbackCategory.HELPFUL,
        FeedbackCategory.GOOD_TOOL_USE,
        FeedbackCategory.FORMATTING,
        FeedbackCategory.OTHER,
    ),
    FeedbackSentiment.NEGATIVE: (
        FeedbackCategory.INCORRECT,
        FeedbackCategory.INCOMPLETE,
        FeedbackCategory.TOOL_FAILURE,
        FeedbackCategory.REFUSED_VALID_REQUEST,
        FeedbackCategory.FORMATTING,
        FeedbackCategory.SLOW,
        FeedbackCategory.UNSAFE,
        FeedbackCategory.OTHER,
    ),
}
"""Categories that fit each sentiment."""


MAX_ID = 512
"""Maximum number of characters of a threadId, runId, messageId or token."""

MAX_TITLE = 200
"""Maximum number of characters of a thread's title."""

MAX_NOTES = 4_000
"""Maximum number of characters of the notes of a feedback."""

MAX_CATEGORIES = 50
"""Maximum number of categories of a feedback, repeated ones included."""

MAX_PAGE = 100
"""Maximum number of items of one page of a list."""


def _reject_bool(value: object) -> object:
    """Refuse ``true`` and ``false`` as numbers, because Python's ``bool`` is a subclass of ``int``."""
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


def _parse_flag(value: object) -> object:
    """Accept a boolean, or the strings ``true`` and ``false`` as in a URL's query."""
    flag = {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
    if not isinstance(flag, bool):
        raise PydanticCustomError("flag", "must be true or false")
    return flag


NOT_BOOL = BeforeValidator(_reject_bool)
Flag = Annotated[bool, BeforeValidator(_parse_flag)]
Id = Annotated[str, Field(min_length=1, max_length=MAX_ID)]
Token = Annotated[str, Field(max_length=MAX_ID)]


class _Command(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, defer_build=True)

    thread_id: Annotated[str, Field(max_length=MAX_ID)] | None = None


# --- runs -------------------------------------------------------------------------------------------------------------


class _RunTarget(_Command):
    """Fields that address a run. Without ``runId`` they address the thread's active run, or else its latest run.

    Without both ids, a WebSocket uses the ids of its connection. Other transports answer that the run does not exist.
    """

    run_id: Annotated[str, Field(max_length=MAX_ID)] | None = None


class Cancel(_RunTarget):
    """End a run as cancelled."""

    type: Literal["cancel"] = "cancel"


class Attach(_RunTarget):
    """Replay a run's events after ``after`` and follow it."""

    type: Literal["attach"] = "attach"
    after: Annotated[int, Field(ge=0), NOT_BOOL] = 0


class RunsList(_Command):
    """List the caller's active and recent runs, the newest first."""

    type: Literal["runs.list"] = "runs.list"


class RunsGet(_RunTarget):
    """Read the status of a run."""

    type: Literal["runs.get"] = "runs.get"


class Capabilities(_Command):
    """Read the capabilities of this server."""

    type: Literal["capabilities"] = "capabilities"


class Ping(_Command):
    """Check that the connection is alive."""

    type: Literal["ping"] = "ping"


# --- threads ----------------------------------------------------------------------------------------------------------


class ThreadsList(_Command):
    """List the caller's threads, the last changed first. ``page`` is the ``next`` token of an earlier answer.

    With ``text``, a page has those of its threads that contain the text in their title or messages.
    """

    type: Literal["threads.list"] = "threads.list"
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), NOT_BOOL] = MAX_PAGE
    page: Token | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_TITLE)] | None = None


class _ThreadTarget(_Command):
    thread_id: Id


class ThreadsGet(_ThreadTarget):
    """Read a thread, with all its messages, a page of them, or none.

    ``limit`` or ``before`` asks for a page: the last messages, or the last ones before a message.
    """

    type: Literal["threads.get"] = "threads.get"
    messages: Flag = True
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), NOT_BOOL] | None = None
    before: Id | None = None

    @property
    def is_page(self) -> bool:
        return self.limit is not None or self.before is not None


class ThreadsRename(_ThreadTarget):
    """Set the title of a thread, one line of text. None removes it."""

    type: Literal["threads.rename"] = "threads.rename"
    title: Annotated[str, Field(max_length=MAX_TITLE)] | None

    @field_validator("title")
    @classmethod
    def _check_title(cls, title: str | None) -> str | None:
        line = None if title is None else " ".join(title.split())
        if line == "":
            raise PydanticCustomError("blank", "must not be blank; null takes the title away")
        return line


class ThreadsDelete(_ThreadTarget):
    """Delete a thread and everything that belongs to it."""

    type: Literal["threads.delete"] = "threads.delete"


class ThreadsTranscript(_ThreadTarget):
    """Read a thread as plain text."""

    type: Literal["threads.transcript"] = "threads.transcript"


class ThreadsDelta(_ThreadTarget):
    """Read the changes of a thread since a ``continuationToken``, or the whole thread without one."""

    type: Literal["threads.delta"] = "threads.delta"
    since: Token | None = None


class ThreadsFork(_ThreadTarget):
    """Create a thread with the history up to and including a message.

    A repeated command with the same ``newThreadId`` returns the same thread.
    """

    type: Literal["threads.fork"] = "threads.fork"
    message_id: Id
    new_thread_id: Id | None = None


class ThreadsFeedback(_ThreadTarget):
    """Store the caller's feedback on a message. Categories are deduplicated and sorted by name.

    Categories are checked against the sentiment first, then notes against the categories.
    """

    type: Literal["threads.feedback"] = "threads.feedback"
    message_id: Id
    sentiment: FeedbackSentiment
    categories: Annotated[tuple[FeedbackCategory, ...], Field(max_length=MAX_CATEGORIES), FailFast()] = ()
    notes: Annotated[str | None, Field(max_length=MAX_NOTES, validate_default=True)] = None

    @field_validator("categories")
    @classmethod
    def _check_categories(
        cls, categories: tuple[FeedbackCategory, ...], info: ValidationInfo
    ) -> tuple[FeedbackCategory, ...]:
        sentiment: FeedbackSentiment | None = info.data.get("sentiment")
        fitting = CATEGORIES[sentiment] if sentiment else tuple(FeedbackCategory)
        for category in categories:
            if category not in fitting:
                facts = {"category": category.value, "fitting": ", ".join(fitting)}
                raise PydanticCustomError("unfit", "'{category}' does not fit the sentiment; {fitting} do", facts)
        return tuple(sorted(set(categories)))

    @field_validator("notes")
    @classmethod
    def _check_notes(cls, notes: str | None, info: ValidationInfo) -> str | None:
        text = (notes or "").strip() or None
        if text is None and FeedbackCategory.OTHER in info.data.get("categories", ()):
            raise PydanticCustomError("missing_notes", "are required with the category 'other'")
        return text


# --- files ------------------------------------------------------------------------------------------------------------


class FilesPut(_Command):
    """Store a file, with its bytes as base64. A message names it by the ``id`` of the answer."""

    type: Literal["files.put"] = "files.put"
    data: str
    mime_type: Annotated[str, Field(max_length=MAX_TITLE)] = ""
    name: Annotated[str, Field(max_length=MAX_TITLE)] = ""


class _FileTarget(_Command):
    file_id: Id


class FilesGet(_FileTarget):
    """Read a file, with its bytes as base64."""

    type: Literal["files.get"] = "files.get"


class FilesDelete(_FileTarget):
    """Delete a file. Messages that name it stay."""

    type: Literal["files.delete"] = "files.delete"


FileCommand = FilesPut | FilesGet | FilesDelete
ThreadCommand = (
    ThreadsList
    | ThreadsGet
    | ThreadsRename
    | ThreadsDelete
    | ThreadsTranscript
    | ThreadsDelta
    | ThreadsFork
    | ThreadsFeedback
)
Command = Cancel | Attach | Capabilities | Ping | RunsList | RunsGet | FileCommand | ThreadCommand
ReadCommand = (
    Attach
    | Capabilities
    | FilesGet
    | Ping
    | RunsGet
    | RunsList
    | ThreadsDelta
    | ThreadsGet
    | ThreadsList
    | ThreadsTranscript
)
"""Commands that change nothing."""

COMMAND: TypeAdapter[Command] = TypeAdapter(
    Annotated[Command, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)
COMMANDS: tuple[str, ...] = tuple(kind.model_fields["type"].default for kind in get_args(Command))
