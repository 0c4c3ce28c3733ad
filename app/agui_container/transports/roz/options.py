"""Options of roz: the settings that it reads.

Rule: this module is imported at the start, so it does not import gRPC.
"""

from enum import StrEnum

import msgspec


class RozWire(StrEnum):
    """Generation of roz clients that responses are written for."""

    BOTH = "both"
    V0_2 = "0.2"
    V1_0 = "1.0"


class PermissionRule(msgspec.Struct, frozen=True):
    """One rule of the server's tool policy, as clients see it."""

    tool_pattern: str
    policy: str
    category: str | None = None
    reason: str | None = None


class RozOptions(msgspec.Struct, frozen=True):
    """Settings that this protocol reads.

    Attributes:
        roz_wire: generation of the clients.
        keepalive: seconds of silence before a session is sent a keepalive.
        model: name of the model for clients that choose none.
        models: models that a client may choose, as ``name=model`` or ``model``.
        tool_policy: the tool policy's rules, a JSON list.
        context_tokens: budget of one model call's prompt; 0 is no budget.
        on_busy: policy for a message during a turn: ``reject``, ``enqueue`` or ``interrupt``.
    """

    roz_wire: RozWire
    keepalive: float
    model: str
    models: tuple[str, ...]
    tool_policy: str
    context_tokens: int
    on_busy: str

    @property
    def model_names(self) -> list[str]:
        """Names of the models that a client may choose."""
        return [entry.rpartition("=")[0] or entry for entry in self.models]

    @property
    def permissions(self) -> list[PermissionRule]:
        """Rules of the tool policy."""
        return msgspec.json.decode(self.tool_policy, type=list[PermissionRule])
