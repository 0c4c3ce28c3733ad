"""How a caller wants to be asked before tools run: ``forwardedProps.approvals``.

Rule: a caller can ask for more approvals than the operator's policy, never for fewer.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from agui_container.ports import Permission, Policy, PolicyDecision
from agui_container.protocol.forwarded_props import read_forwarded_prop


class Asking(BaseModel):
    """``forwardedProps.approvals``.

    Attributes:
        ask: ``policy`` asks where the operator's policy says so, ``all`` asks before every tool that may run.
        on_denial: ``resolve`` gives the model the denial and goes on, ``cancel`` ends the run as cancelled. The denial
            stays in the thread's history either way.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    ask: Literal["policy", "all"] = "policy"
    on_denial: Literal["tell", "cancel"] = "tell"

    def policy(self, policy: Policy) -> Policy:
        """The policy that this run keeps to."""

        def ask_all(tool_name: str) -> PolicyDecision:
            ruling = policy(tool_name)
            if ruling.permission is not Permission.ALLOW:
                return ruling
            return PolicyDecision(Permission.ASK, reason=ruling.reason, category=ruling.category)

        return ask_all if self.ask == "all" else policy


_ASKING = TypeAdapter(Asking)
_DEFAULT = Asking()


def asking_of(props: object) -> Asking:
    """The wish of a run's caller. Raises ``AppError`` VALIDATION_ERROR, naming the field."""
    return read_forwarded_prop(props, "approvals", _ASKING) or _DEFAULT
