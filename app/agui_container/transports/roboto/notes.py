"""Facts of a session that a thread does not have, stored in the thread's metadata.

Rule: each fact has its own key in the metadata, so that concurrent requests can change different facts.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import fields
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.roboto.requests import MAX_TOOLS, AnalysisScope, ToolSpec

PREFIX = "roboto."
"""Prefix of the keys in the metadata."""

MAX_FAILURES = 100
"""Number of failed turns that a session stores. Older ones are shown without their error."""

MESSAGE = "roboto"
"""Key of the facts in the ``metadata`` of a message."""

CANCELLED, APPROVAL_REQUIRED = "CANCELLED", "APPROVAL_REQUIRED"
"""Codes of a turn that was cancelled, or that waits for an approval. They are not in the error table."""

LOCAL = "local"
"""Organisation of a session that names none. This server has no organisations."""


MAX_TIME = 253_402_300_799
"""Largest time that has a date, in Unix seconds: the end of the year 9999."""


class TurnFailure(BaseModel):
    """A turn without its answer. ``code`` is one of the error table, CANCELLED or APPROVAL_REQUIRED."""

    model_config = ConfigDict(frozen=True)

    code: str
    message: str

    @property
    def status(self) -> str:
        """Status of the message that shows the failure."""
        return "cancelled" if self.code == CANCELLED else "failed"


class Notes(BaseModel):
    """Facts of a session.

    Attributes:
        tools: client tools; of several with one name, the last one.
        failures: failed turns, by the id of the message after which the turn failed.
        forked_from: index of the last copied message, if the session is a copy.
    """

    model_config = ConfigDict(frozen=True, protected_namespaces=(), extra="ignore")

    tools: list[ToolSpec] = Field(default_factory=list)
    scope: AnalysisScope | None = None
    model_profile: str | None = None
    org_id: str = LOCAL
    visibility: Literal["private", "org"] = "private"
    pinned_at: float | None = None
    failures: dict[str, TurnFailure] = Field(default_factory=dict)
    forked_from: int | None = None

    @classmethod
    def of(cls, metadata: bytes | None) -> "Notes":
        """Read the facts of a session from the metadata. A thread of another protocol has none."""
        facts = from_json(metadata) if metadata else {}
        return cls.model_validate(
            {name.removeprefix(PREFIX): value for name, value in facts.items() if name.startswith(PREFIX)}
        )

    def with_tools(self, tools: list[ToolSpec] | None) -> list[ToolSpec]:
        """Return the session's tools, with these added. A tool with the same name is replaced.

        Raises:
            AppError: VALIDATION_ERROR for too many tools.
        """
        by_name = {tool.name: tool for tool in (*self.tools, *(tools or ()))}
        if len(by_name) > MAX_TOOLS:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"client_tools: a session may have {MAX_TOOLS} tools at most.")
        return list(by_name.values())

    def with_failure(self, message_id: str, failure: TurnFailure) -> dict[str, TurnFailure]:
        """Return the last ``MAX_FAILURES`` failures of the session, including this one."""
        failures = {**self.failures, message_id: failure}
        return dict(list(failures.items())[-MAX_FAILURES:])


def as_metadata(**facts: object) -> dict[str, object]:
    """Return facts as metadata."""
    return {f"{PREFIX}{name}": _plain(value) for name, value in facts.items()}


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


class MessageNotes(Struct, frozen=True):
    """Facts of one message, in its ``metadata``.

    Attributes:
        run_id: id of the run that the message began.
        created: Unix seconds.
        is_sent: True if the client has the message already, because the client sent it to an existing session.
        goals: goals that the client declared with the message.
        context: context that the client sent with the message.
        denied: ids of the calls that waited for an approval, and that the message denied.
        status, runtime_ms: status and duration of a client's tool, for its result.
    """

    run_id: str | None = None
    created: Annotated[float, Meta(ge=0, le=MAX_TIME)] | None = None
    is_sent: bool = field(default=False, name="sent")
    goals: list[dict[str, object]] = field(default_factory=list)
    context: dict[str, object] | None = None
    denied: list[str] = field(default_factory=list)
    status: str | None = None
    runtime_ms: int = 0

    @classmethod
    def of(cls, metadata: Mapping[str, object] | None) -> "MessageNotes":
        """Read the facts of a message. A message of another client has none."""
        try:
            return convert((metadata or {}).get(MESSAGE) or {}, cls)
        except ValidationError:  # metadata of another client under the same key
            return cls()

    def metadata(self) -> dict[str, object]:
        """Return the message's ``metadata``."""
        facts = {it.encode_name: getattr(self, it.name) for it in fields(self)}
        return {MESSAGE: {name: value for name, value in facts.items() if value}}
