"""Ports around tools: sources of tools, previews, and calls that wait for answers.

Rule: a tool reports a failure to the model by ``ToolError`` and a question to people by ``ToolSuspension``.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from ag_ui.core import ContentPart, Interrupt, Message, ResumeEntry

from agui_container.ports.agent import RunContext, Tool, ToolContent

MAX_REASON = 10_000
"""Maximum characters of the reason in the answer to an approval."""


class ToolSource(Protocol):
    """Source of tools that are known only at run time, such as those of an MCP server. Fixed tools need no source."""

    @property
    def name(self) -> str:
        """Name of the source in logs and in events."""

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:
        """Return the tools for this run. It is called once per run, so a source should cache its tools.

        Raises:
            ToolError: the tools are unavailable. The run continues without them, and the client gets the message.
        """

    async def aclose(self) -> None:
        """Close connections and processes. The source can be used again afterwards."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """State of a suspended call: its questions, and the data to resume it.

    A call without ``subagent_run_id`` and ``state`` has only asked, for example for consent: it is made again.

    Attributes:
        interrupts: questions that must be answered, at least one.
        subagent_run_id: id of the subagent run, which stays the same when the call is resumed. Empty for other tools.
        messages: the subagent's conversation so far.
        state: JSON object that the tool itself needs to resume the call, such as the state of an MCP server.
    """

    interrupts: Sequence[Interrupt]
    subagent_run_id: str = ""
    messages: Sequence[Message] = ()
    state: Mapping[str, object] | None = None

    @property
    def is_resumable(self) -> bool:
        """True if the call continues where it stopped. False if it is made again."""
        return bool(self.subagent_run_id) or self.state is not None


class ToolSuspension(Exception):
    """A call cannot continue without answers. A tool raises it, and the run ends with the interrupts."""

    def __init__(self, suspension: Suspension) -> None:
        super().__init__("the call waits for answers")
        self.suspension = suspension


@runtime_checkable
class Resumable(Protocol):
    """A tool whose calls may be suspended."""

    async def resume(self, suspension: Suspension, answers: Sequence[ResumeEntry], ctx: RunContext) -> ToolContent:
        """Resume a call and return its result. Raises the same exceptions as ``Tool.call``, and ``ToolSuspension``."""


@runtime_checkable
class Instructed(Protocol):
    """A tool whose source describes to the model how its tools are used."""

    @property
    def source_name(self) -> str:
        """Name of the source."""

    @property
    def instructions(self) -> str:
        """Text of the source, the same for all its tools. Empty if there is none."""


@runtime_checkable
class Previewing(Protocol):
    """A tool that can describe the effect of a call before a person approves it."""

    async def preview(self, arguments: Mapping[str, object], ctx: RunContext) -> str | None:
        """Describe the effect of a call without executing it. Return None if there is nothing to show."""


@runtime_checkable
class StrictlyChecked(Protocol):
    """A tool that can check arguments which a person has written."""

    def check_strictly(self, arguments: Mapping[str, object]) -> None:
        """Check the arguments without conversions, such as from ``true`` to a number. Raises ``ToolError``."""


CONSENT = "oauth_consent"
"""Reason of an interrupt that asks a person to follow a link. Its metadata has the link as ``url``."""

ELICITATION = "elicitation"
"""Reason of an interrupt with a question of an MCP server. The answer's payload follows ``responseSchema``."""

DECLINE: Final = {"action": "decline"}
"""Payload of the answer to such a question with which a person refuses it. The server reads that."""

NO_ANSWER: dict[str, object] = {"type": "object", "properties": {}}
"""JSON Schema of an answer without a value: the person only says that the run may continue."""


CONSENT_TEXT = "Open the link and allow the access. Then continue."


def consent_question(url: str, message: str = CONSENT_TEXT) -> Interrupt:
    """Return a new interrupt that asks a person to follow a link, by default to allow an access."""
    return Interrupt(
        id=f"consent-{uuid.uuid4()}",
        reason=CONSENT,
        message=message,
        response_schema=NO_ANSWER,
        metadata={"url": url},
    )


class ToolError(Exception):
    """A tool call failed. The message goes to the model and the client."""


AUDIENCE = "audience"
"""Key in the metadata of a content part. Its value ``["user"]`` keeps the part from models."""

USER_ONLY = "[The result is shown to the user alone.]"
"""Text for the model in place of a result without a part for it."""


def for_models(content: ToolContent) -> ToolContent:
    """Return the content of a result without the parts that only the user is to see."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if not is_for_user(part)]
    return content if len(parts) == len(content) else parts or USER_ONLY


def is_for_user(part: ContentPart) -> bool:
    """Return True for a part that only the user is to see."""
    return isinstance(part.metadata, Mapping) and part.metadata.get(AUDIENCE) == ["user"]
