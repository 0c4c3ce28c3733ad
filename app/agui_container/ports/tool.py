"""Tools beyond one call: where they come from, who may run them, and what happens when a call must wait.

Rule: what a tool raises here is all that leaves it: ``ToolError`` for the model, ``Suspended`` for people.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from ag_ui.core import Interrupt, Message, ResumeEntry

from agui_container.ports.agent import RunContext, Tool, ToolContent


class ToolSource(Protocol):
    """Tools that are known only at run time, such as those of an MCP server. A fixed tool needs no source."""

    @property
    def name(self) -> str:
        """What the source is called in logs and towards clients."""

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:
        """The tools for this run; asked once per run, so a source keeps what it found.

        Raises:
            ToolError: there are none for now; the run goes on without them, and the client is told the message.
        """

    async def aclose(self) -> None:
        """Let go of connections and processes. The source can be used again afterwards."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """Where a call stopped to ask: what it asked, and what it needs to go on from there.

    Attributes:
        interrupts: what must be answered, at least one.
        subagent_run_id: the part of the run that goes on under the same id.
        messages: its conversation so far.
    """

    interrupts: Sequence[Interrupt]
    subagent_run_id: str
    messages: Sequence[Message]


class Suspended(Exception):
    """Raised by a tool whose call cannot go on without answers. The run ends with the interrupts."""

    def __init__(self, suspension: Suspension) -> None:
        super().__init__("the call waits for answers")
        self.suspension = suspension


@runtime_checkable
class Resumable(Protocol):
    """A tool whose calls may be suspended."""

    async def resume(self, suspension: Suspension, answers: Sequence[ResumeEntry], ctx: RunContext) -> ToolContent:
        """Go on with a call. The content is its result; raise as ``Tool.call`` does, ``Suspended`` included."""


@runtime_checkable
class Previewing(Protocol):
    """A tool that can show the effect of a call before somebody approves it."""

    async def preview(self, arguments: Mapping[str, object], ctx: RunContext) -> str | None:
        """Describe the effect of a call without having it; None where there is nothing to show."""


class ToolError(Exception):
    """A tool could not do what was asked. The message goes to the model and the client."""


class Permission(StrEnum):
    """What a policy says of a tool."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """A permission and why. ``category`` groups tools for people, such as ``physical``."""

    permission: Permission
    reason: str | None = None
    category: str | None = None


Policy = Callable[[str], PolicyDecision]
"""The ruling on a tool, by its name."""
