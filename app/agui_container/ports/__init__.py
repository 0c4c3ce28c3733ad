"""Interfaces between the engine and plug-ins: agents, models, tools, stores, buses and clocks.

Rule: small Protocols and frozen data without knowledge of a transport or a database. Plug-ins import this package and
``protocol`` only.
"""

from agui_container.ports.agent import (
    LOG_FIELDS,
    Agent,
    Caller,
    Clock,
    Emit,
    Item,
    Responder,
    RunContext,
    RunLimits,
    RunState,
    ThreadCleanup,
    Timer,
    Tool,
    ToolContent,
)
from agui_container.ports.goals import Goal, GoalRecord, GoalRecords, GoalStatus
from agui_container.ports.model import (
    ContextWindowed,
    Delta,
    EncryptedDelta,
    Model,
    Prompt,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    TokenCounter,
    ToolCallDelta,
    UsageDelta,
)
from agui_container.ports.policy import CallRules, Permission, Policy, PolicyDecision, allow_all
from agui_container.ports.tool import (
    Previewing,
    Resumable,
    StrictlyChecked,
    Suspension,
    ToolError,
    ToolSource,
    ToolSuspension,
)
from agui_container.protocol.expander import MessageText

__all__ = [
    "LOG_FIELDS",
    "Agent",
    "CallRules",
    "Caller",
    "Clock",
    "ContextWindowed",
    "Delta",
    "Emit",
    "EncryptedDelta",
    "Goal",
    "GoalRecord",
    "GoalRecords",
    "GoalStatus",
    "Item",
    "MessageText",
    "Model",
    "Permission",
    "Policy",
    "PolicyDecision",
    "Previewing",
    "Prompt",
    "ReasoningDelta",
    "Responder",
    "Resumable",
    "RunContext",
    "RunLimits",
    "RunState",
    "StopDelta",
    "StopReason",
    "StrictlyChecked",
    "Suspension",
    "TextDelta",
    "ThreadCleanup",
    "Timer",
    "TokenCounter",
    "Tool",
    "ToolCallDelta",
    "ToolContent",
    "ToolError",
    "ToolSource",
    "ToolSuspension",
    "UsageDelta",
    "allow_all",
]
