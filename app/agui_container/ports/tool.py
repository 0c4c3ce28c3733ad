"""Ports around tools: sources of tools, previews, and calls that wait for answers.

Rule: a tool reports a failure to the model by ``ToolError`` and a question to people by ``ToolSuspension``.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ag_ui.core import Interrupt, Message, ResumeEntry

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

    Attributes:
        interrupts: questions that must be answered, at least one.
        subagent_run_id: id of the subagent run, which stays the same when the call is resumed. Empty if a tool without
            a subagent asks, for example for consent; its call is repeated.
        messages: the subagent's conversation so far.
    """

    interrupts: Sequence[Interrupt]
    subagent_run_id: str
    messages: Sequence[Message]


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

NO_ANSWER: dict[str, object] = {"type": "object", "properties": {}}
"""JSON Schema of an answer without a value: the person only says that the run may continue."""


def consent_question(url: str) -> Interrupt:
    """Return a new interrupt that asks a person to follow a link and to allow an access."""
    return Interrupt(
        id=f"consent-{uuid.uuid4()}",
        reason=CONSENT,
        message="Open the link and allow the access. Then continue.",
        response_schema=NO_ANSWER,
        metadata={"url": url},
    )


class ToolError(Exception):
    """A tool call failed. The message goes to the model and the client."""
