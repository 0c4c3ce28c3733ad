"""What a session has that a thread has not, kept in the thread's metadata.

Rule: each fact has a name of its own in there, so that two requests at once change two facts.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, ValidationError, convert, field
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from agui_container.transports.roboto.requests import Scope, ToolSpec

PREFIX = "roboto."
"""The names of these facts in the metadata begin with it."""

MAX_FAILURES = 100
"""Failed turns that a session remembers; older ones are shown without their error."""

MESSAGE = "roboto"
"""The key of these facts in the ``metadata`` of a message."""


CANCELLED = "CANCELLED"
"""The code of a turn that was cancelled, which is no error."""

LOCAL = "local"
"""The organisation of a session that was begun without one. This server knows no organisations."""


class Failure(BaseModel):
    """A turn that ended without what was asked. ``code`` is one of the error table, or CANCELLED."""

    model_config = ConfigDict(frozen=True)

    code: str
    message: str

    @property
    def status(self) -> str:
        """The status of the message that shows it."""
        return "cancelled" if self.code == CANCELLED else "failed"


class Notes(BaseModel):
    """The facts of a session.

    Attributes:
        tools: client tools, by name the last that was declared.
        failures: by the id of the message behind which the turn failed.
        forked_from: the index of the last message that was copied, in a fork.
    """

    model_config = ConfigDict(frozen=True, protected_namespaces=(), extra="ignore")

    tools: list[ToolSpec] = Field(default_factory=list)
    scope: Scope | None = None
    model_profile: str | None = None
    org_id: str = LOCAL
    visibility: Literal["private", "org"] = "private"
    pinned_at: float | None = None
    failures: dict[str, Failure] = Field(default_factory=dict)
    forked_from: int | None = None

    @classmethod
    def of(cls, metadata: bytes | None) -> "Notes":
        """Read the facts of a session. A thread of another protocol has none of them."""
        kept = from_json(metadata) if metadata else {}
        return cls.model_validate(
            {name.removeprefix(PREFIX): value for name, value in kept.items() if name.startswith(PREFIX)}
        )

    def with_tools(self, tools: list[ToolSpec] | None) -> list[ToolSpec]:
        """Return the session's tools with these added, or put in place of those of their names."""
        return list({tool.name: tool for tool in (*self.tools, *(tools or ()))}.values())

    def with_failure(self, message_id: str, failure: Failure) -> dict[str, Failure]:
        """Return the session's failures and this one, the last ``MAX_FAILURES`` of them."""
        failures = {**self.failures, message_id: failure}
        return dict(list(failures.items())[-MAX_FAILURES:])


def written(**facts: object) -> dict[str, object]:
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
    """The facts of one message, in its ``metadata``.

    Attributes:
        run_id: the run that it began.
        created: Unix seconds.
        sent: the client has the message already, because it sent it to a session that it held.
        goals: goals as they were declared with it.
        context: what the client was showing.
        status, runtime_ms: of the result of a client's tool.
    """

    run_id: str | None = None
    created: float | None = None
    sent: bool = False
    goals: list[dict[str, object]] = field(default_factory=list)
    context: dict[str, object] | None = None
    status: str | None = None
    runtime_ms: int = 0

    @classmethod
    def of(cls, metadata: Mapping[str, object] | None) -> "MessageNotes":
        """Read the facts of a message; one that another client sent has none."""
        try:
            return convert((metadata or {}).get(MESSAGE) or {}, cls)
        except ValidationError:  # another client's own facts under this name
            return cls()

    def metadata(self) -> dict[str, object]:
        """Return the message's ``metadata``."""
        kept = {name: getattr(self, name) for name in self.__struct_fields__}
        return {MESSAGE: {name: value for name, value in kept.items() if value}}
