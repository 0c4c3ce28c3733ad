"""The seams: what an agent, a model, a tool and a clock are to the engine, and what an agent is given.

Rule: small Protocols and frozen data, nothing that knows a transport or a store. Plug-ins (agents, models, tools)
import this package and ``core`` only.
"""

from app.core.said import Said
from app.ports.goal import Goal, GoalRecord, GoalRecords, GoalStatus
from app.ports.model import (
    Counting,
    Delta,
    EncryptedDelta,
    Model,
    Prompt,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    UsageDelta,
)
from app.ports.run import (
    LOG_FIELDS,
    Agent,
    Allowance,
    Caller,
    Clock,
    Emit,
    Item,
    Rememberer,
    Responder,
    RunContext,
    State,
    Timer,
    Tool,
    ToolContent,
)
from app.ports.tool import (
    Permission,
    Policy,
    Resumable,
    Ruling,
    Suspended,
    Suspension,
    ToolError,
    ToolSource,
)

__all__ = [
    "LOG_FIELDS",
    "Agent",
    "Allowance",
    "Caller",
    "Clock",
    "Counting",
    "Delta",
    "Emit",
    "EncryptedDelta",
    "Goal",
    "GoalRecord",
    "GoalRecords",
    "GoalStatus",
    "Item",
    "Model",
    "Permission",
    "Policy",
    "Prompt",
    "ReasoningDelta",
    "Rememberer",
    "Responder",
    "Resumable",
    "Ruling",
    "RunContext",
    "Said",
    "State",
    "StopDelta",
    "StopReason",
    "Suspended",
    "Suspension",
    "TextDelta",
    "Timer",
    "Tool",
    "ToolCallDelta",
    "ToolContent",
    "ToolError",
    "ToolSource",
    "UsageDelta",
]
