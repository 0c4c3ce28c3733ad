"""Models of the JSON answers, for the OpenAPI document only. The routes write the views of the engine as they are."""

from typing import Any, Literal

from ag_ui.core import Interrupt, Message, RunErrorEvent
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from agui_container.ports.records import RunStatus, ThreadStatus
from agui_core.commands import FeedbackCategory, FeedbackSentiment


class Answer(BaseModel):
    """Base of the answers. Times are Unix seconds. A field with a default may be absent."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class HealthAnswer(BaseModel):
    status: Literal["Healthy", "HealthyBusy"]
    time_of_last_update: int


class RunAnswer(Answer):
    """A run. ``error`` is the RUN_ERROR that ended it."""

    run_id: str
    thread_id: str
    status: RunStatus
    started_at: float
    ended_at: float = 0
    seconds: float
    events: int
    tokens: int
    readers: int = 0
    error: RunErrorEvent | None = None


class RunList(Answer):
    runs: list[RunAnswer]


class Origin(Answer):
    thread_id: str
    message_id: str


class Thread(Answer):
    thread_id: str
    title: str = ""
    status: ThreadStatus
    created_at: float
    changed_at: float
    active_run_id: str = ""
    forked_from: Origin | None = None


class ThreadList(Answer):
    """Threads, the last changed first. ``next`` is the ``page`` of the next request; the last page has none."""

    threads: list[Thread]
    next: str = ""


class ThreadDeltaAnswer(Thread):
    """A thread and its changed messages. An unchanged order or state is absent."""

    messages: list[Message]
    runs: dict[str, str]
    order: list[str] = []
    state: Any = None
    continuation_token: str


class Feedback(Answer):
    message_id: str
    sentiment: FeedbackSentiment
    categories: list[FeedbackCategory]
    notes: str = ""
    created_at: float
    changed_at: float


class StoredFeedback(Feedback):
    thread_id: str


class InterruptAnswer(Answer):
    """Answer to an interrupt with its question, or a question that no longer waits and has no answer."""

    run_id: str
    message_id: str = ""
    interrupt_id: str
    reason: str
    message: str = ""
    tool_call_id: str = ""
    status: Literal["resolved", "cancelled", "unanswered"]
    payload: Any = None


class Notice(Answer):
    """A CUSTOM event that tells the user about a run."""

    run_id: str
    message_id: str = ""
    name: str
    value: Any = None


class ThreadContents(Thread):
    """A thread. ``messages=false`` leaves out messages and runs, and ``limit`` returns those of a page."""

    messages: list[Message] = []
    runs: dict[str, str] = {}
    state: Any = None
    continuation_token: str
    feedback: list[Feedback]
    waiting: list[Interrupt]
    answers: list[InterruptAnswer]
    notices: list[Notice]
    before: str = ""


class Deleted(Answer):
    thread_id: str
    deleted: Literal[True]


class StoredFile(Answer):
    """A file. Over a socket ``id`` is that of the request, so ``fileId`` has the id, too."""

    id: str
    file_id: str
    name: str
    mime_type: str
    bytes: int


class DeletedFile(Answer):
    id: str
    file_id: str
    deleted: Literal[True]
