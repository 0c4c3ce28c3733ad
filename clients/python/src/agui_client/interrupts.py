"""Interrupts: a run stopped to ask, and the next run brings the answers.

An approval is an interrupt that asks about one tool call. Its answer is a ``Decision``. Any other interrupt describes
its answer by a JSON Schema, ``interrupt.response_schema``. A question of an MCP server may also be answered by
``DECLINE``.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ag_ui.core import Interrupt, ToolCall

from agui_client.events import arguments_of, parse_object

ELICITATION: Final = "elicitation"
"""Reason of an interrupt with a question of an MCP server."""

DECLINE: Final[Mapping[str, object]] = {"action": "decline"}
"""The answer that refuses what an MCP server asks. The server reads it, unlike an abandoned question."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to an approval.

    Attributes:
        approved: True if the call may run.
        reason: of a denial, for the model.
        edited_args: arguments in place of the model's, in full.
    """

    approved: bool
    reason: str | None = None
    edited_args: Mapping[str, object] | None = None

    @property
    def payload(self) -> dict[str, object]:
        """The decision as AG-UI sends it."""
        fields = {"approved": self.approved, "reason": self.reason, "editedArgs": self.edited_args}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Approval:
    """A tool call that waits for a person.

    Attributes:
        interrupt: the interrupt itself.
        tool_name: the tool. Empty if the server does not say it.
        arguments: as the model wrote them. None if they are no JSON object.
    """

    interrupt: Interrupt
    tool_name: str
    arguments: dict[str, object] | None

    @property
    def message(self) -> str:
        """A question that can be shown."""
        return self.interrupt.message or f"Allow {self.tool_name}?"

    @property
    def reason(self) -> str | None:
        """Why the call needs an approval."""
        reason = (self.interrupt.metadata or {}).get("reason")
        return reason if isinstance(reason, str) else None

    def approve(self) -> Decision:
        """Run the call as the model wrote it."""
        return Decision(approved=True)

    def edit(self, arguments: Mapping[str, object]) -> Decision:
        """Run the call with these arguments, which replace the model's in full."""
        return Decision(approved=True, edited_args=dict(arguments))

    def deny(self, reason: str | None = None) -> Decision:
        """Do not run the call. The model reads the reason."""
        return Decision(approved=False, reason=reason)


Approver = Callable[[Approval], "Decision | bool | Awaitable[Decision | bool | None] | None"]
"""Decides about an approval. True approves the call as it is, False denies it, and None leaves it waiting."""

Answerer = Callable[[Interrupt], object]
"""Answers any other interrupt, with a value that its schema allows. May be ``async``."""


def approval_of(interrupt: Interrupt, call: ToolCall | None) -> Approval | None:
    """Return the approval that an interrupt asks for, or None if it asks for something else."""
    if interrupt.reason == ELICITATION:  # a server's own field may have the name "approved"
        return None
    schema = interrupt.response_schema or {}
    properties = schema.get("properties")
    asks = isinstance(properties, Mapping) and "approved" in properties
    if not asks and (schema or interrupt.reason != "tool_call"):
        return None
    if call is not None:
        return Approval(interrupt, call.function.name, arguments_of(call))
    metadata = interrupt.metadata or {}
    written = metadata.get("arguments")
    arguments = parse_object(written) if isinstance(written, str) else written
    return Approval(interrupt, str(metadata.get("toolName") or ""), arguments if isinstance(arguments, dict) else None)
