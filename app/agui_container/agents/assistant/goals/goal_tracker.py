"""The goals of one run: their tools, what the model is told of them, and what becomes of each.

Rules: a goal is achieved by the first call of its tool whose data fits its schema, and by nothing else. A model that
stops before is asked again, so often and no more. However the run ends, each goal is achieved or failed when it is
over, unless the turn goes on in the next run: then that run takes them up as they stand, if this one ends well. How
they stand is written down after the client has been told of it, and before it is told that the run is over. Subagents
have no goals.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from ag_ui.core import CustomEvent, Message, RunAgentInput, ToolMessage, UserMessage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct

from agui_container.agents.assistant.goals.declarations import has_goals, parse_goals
from agui_container.ports import Goal, GoalRecord, GoalRecords, GoalStatus, RunContext, Tool, ToolError
from agui_container.ports.goals import ACHIEVED, DECLARED, FAILED
from agui_container.protocol.errors import AppError, ErrorCode

PROMPTED = "goals.prompted"

PROMPTS = 3
"""How often a model that stops too early is asked again, in one run."""

SECTION = (
    "## Goals\n\nThis turn has goals. Before you end it, call the tool of each, once, with the data that it describes: "
)


async def track_goals(asked: RunAgentInput, records: GoalRecords, prompts: int, ctx: RunContext) -> "GoalTracker":
    """The goals that this run declares, or else those that the thread's turn has left open.

    A goal that is declared again as it was stands where it stood. Raises ``AppError`` VALIDATION_ERROR.
    """
    if ctx.subagent_run_id is not None:
        return GoalTracker((), records, prompts, ctx)
    left = await records.load(ctx)
    if not has_goals(asked.forwarded_props):
        return GoalTracker(left, records, prompts, ctx)
    goals = await asyncio.to_thread(parse_goals, asked.forwarded_props)
    standing = [
        next((record for record in left if record.goal == goal), GoalRecord(goal, run_id=ctx.run_id, index=index))
        for index, goal in enumerate(goals)
    ]
    return GoalTracker(standing, records, prompts, ctx, replaced=[record for record in left if record not in standing])


class GoalTracker:
    """A context manager around the run's work: an error fails what is pending, unless it is the caller's to correct.

    Until ``begin`` a caller's error leaves the turn the goals that it had.

    Args:
        standing: the goals, and where they stand.
        prompts: how often the model may be asked again.
        replaced: what the turn had until now; None where nothing has been declared.
    """

    def __init__(
        self,
        standing: Sequence[GoalRecord],
        records: GoalRecords,
        prompts: int,
        ctx: RunContext,
        *,
        replaced: Sequence[GoalRecord] | None = None,
    ) -> None:
        self._goals = {record.goal.type: record for record in standing}
        self._records = records
        self._prompts = prompts
        self._prompted = 0
        self._ctx = ctx
        self._replaced = replaced
        self._carried = False
        self._begun = False
        self._order = asyncio.Lock()

    async def __aenter__(self) -> None:
        if self._goals or self._replaced is not None:
            await self._records.carry_over(self._ctx, ())
            rows = [{"type": r.goal.type, "tool": tool_name(r.goal), "status": r.status} for r in self._goals.values()]
            self._emit(DECLARED, {"goals": rows})

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if error is None or (isinstance(error, AppError) and error.is_caller_fault and await self._is_carried_over()):
            return
        self.begin()
        if self._carried:
            self._ctx.background(self._records.carry_over(self._ctx, ()))
        self._fail("run_ended")
        if isinstance(error, Exception):  # what was cancelled has ended for its readers, and waits for no store
            await self._recorded()

    async def _is_carried_over(self) -> bool:
        try:
            await self.carry_over()
        except AppError:
            self._ctx.logger.warning("the goals of the turn cannot be kept: they fail", exc_info=True)
            return False
        return True

    def begin(self) -> None:
        """The run goes on with its goals and is not refused any more: those that they replace have failed."""
        if not self._begun and (self._goals or self._replaced is not None):
            self._record(fail_pending(self._replaced or ()))
        self._begun = True

    async def give_up(self) -> None:
        """The turn ends, and what is pending fails."""
        self._fail("given_up")
        await self._recorded()

    async def carry_over(self) -> None:
        """The turn goes on: the thread's next run has its goals, unless this one fails yet.

        Raises ``AppError`` STORE_UNAVAILABLE.
        """
        if lasting := self._turn_goals:
            self._carried = True
            await self._records.carry_over(self._ctx, lasting)
        if self._begun:
            await self._recorded()

    @property
    def _turn_goals(self) -> Sequence[GoalRecord]:
        """The goals of the turn: this run's, or those that it found while it may still be refused."""
        if self._begun:
            return list(self._goals.values())
        earlier = [record for record in self._goals.values() if record.run_id != self._ctx.run_id]
        return [*earlier, *(self._replaced or ())]

    @property
    def pending(self) -> Sequence[GoalRecord]:
        """What is still to be achieved."""
        return [record for record in self._goals.values() if record.status is GoalStatus.PENDING]

    # --- the model ---

    def tools(self, others: Sequence[Tool], offered: Sequence[ToolSpec]) -> Sequence[Tool]:
        """The goals' tools. Raises ``AppError`` VALIDATION_ERROR where a name is taken."""
        taken = {tool.spec.name for tool in others} | {spec.name for spec in offered}
        for record in self._goals.values():
            if tool_name(record.goal) in taken:
                message = f"forwardedProps.goals: there is another tool named '{tool_name(record.goal)}'."
                raise AppError(ErrorCode.VALIDATION_ERROR, message)
        return [AchieveTool(record.goal, self) for record in self._goals.values()]

    @property
    def section(self) -> str:
        """The goals in the system text."""
        return f"{SECTION}{goal_tool_names(self._goals.values())}." if self._goals else ""

    def with_prompt(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The conversation; where nobody speaks last, the goals are asked for."""
        goes_on = bool(messages) and isinstance(messages[-1], UserMessage | ToolMessage)
        return messages if goes_on or not self.pending else [*messages, self._request()]

    def reminder(self) -> Sequence[Message]:
        """What a model is told that has stopped; nothing where it may stop, or was told often enough."""
        if not self.pending or self._prompted == self._prompts:
            return ()
        self._prompted += 1
        types = [record.goal.type for record in self.pending]
        self._emit(PROMPTED, {"goals": types, "prompt": self._prompted, "prompts": self._prompts})
        return [self._request()]

    def _request(self) -> Message:
        said = f"Achieve the goals: {goal_tool_names(self.pending)}. Call each of these tools with the data that it describes."
        return UserMessage(id=self._ctx.new_id(), content=said)

    # --- what becomes of them ---

    async def achieve(self, goal: Goal, data: Mapping[str, object], ctx: RunContext) -> str:
        """Take the data, of calls side by side in their order. Raises ``ToolError``."""
        async with self._order:
            if self._goals[goal.type].status is GoalStatus.ACHIEVED:
                raise ToolError(f"the goal {goal.type} is achieved already; the data that was given first counts.")
            wrong = await asyncio.to_thread(_faults, goal, data)
            if wrong:
                raise ToolError(f"{tool_name(goal)}: {'; '.join(wrong)}.")
            self._emit(ACHIEVED, {"type": goal.type, "toolCallId": ctx.tool_call_id, "data": data})
            self._is_current(replace(self._goals[goal.type], status=GoalStatus.ACHIEVED, data=data))
        return f"The goal {goal.type} is achieved."

    def _fail(self, reason: str) -> None:
        for record in fail_pending(self.pending):
            self._emit(FAILED, {"type": record.goal.type, "reason": reason})
            self._is_current(record)

    def _is_current(self, record: GoalRecord) -> None:
        self._goals[record.goal.type] = record
        self._record()

    def _record(self, others: Sequence[GoalRecord] = ()) -> None:
        self._records.record(self._ctx, [*others, *self._goals.values()])

    async def _recorded(self) -> None:
        await self._records.record_and_wait(self._ctx, list(self._goals.values()))

    def _emit(self, name: str, value: Mapping[str, object]) -> None:
        self._ctx.emit(CustomEvent(name=name, value=value))


class AchieveTool(Struct, frozen=True):
    """Implements ``ports.Tool``: its arguments are the goal's data."""

    goal: Goal
    tracker: GoalTracker

    @property
    def spec(self) -> ToolSpec:
        """The goal's own schema."""
        description = f"Achieve the goal {self.goal.type}. {self.goal.description}".strip()
        return ToolSpec(name=tool_name(self.goal), description=description, parameters=dict(self.goal.schema))

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> str:
        """Give the data."""
        return await self.tracker.achieve(self.goal, arguments, ctx)


def tool_name(goal: Goal) -> str:
    """What the goal's tool is called."""
    return f"achieve_{goal.type}"


def fail_pending(records: Iterable[GoalRecord]) -> Sequence[GoalRecord]:
    """What becomes of those that are pending, where nobody goes on with them."""
    return [replace(record, status=GoalStatus.FAILED) for record in records if record.status is GoalStatus.PENDING]


def goal_tool_names(records: Iterable[GoalRecord]) -> str:
    """The goals' tools."""
    return ", ".join(tool_name(record.goal) for record in records)


def _faults(goal: Goal, data: Mapping[str, object]) -> list[str]:
    from agui_container.agents.assistant.goals.schema_validation import validation_errors  # noqa: PLC0415 - as where goals are declared

    return validation_errors(goal.schema, data)
