"""The goals of one run: their declaration, their tools, their prompts for the model, and their status.

Rules:

- An invalid goal in ``forwardedProps.goals`` is rejected before the model is called, with one sentence that names the
  field.
- A goal is achieved by the first call of its tool whose data matches the schema, and in no other way.
- A model that stops before all goals are achieved is reminded, up to a maximum number of times per run.
- At the end of the run each goal is achieved or failed, unless the turn continues in the thread's next run. Then that
  run gets the goals with their status.
- The status is stored after the client got the event for it, and before the client gets the end of the run.
- Subagents have no goals.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Annotated

from ag_ui.core import CustomEvent, Message, RunAgentInput, UserMessage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import to_json

from agui_container.agents.assistant.history import is_prompt
from agui_container.agents.assistant.prompt.system_text import caller_data
from agui_container.ports import Goal, GoalRecord, GoalRecords, GoalStatus, RunContext, Tool, ToolError
from agui_container.ports.goals import ACHIEVED, DECLARED, FAILED
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import read_forwarded_prop
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.offload import offload

FIELD = "goals"
MAX_GOALS = 16
"""Maximum number of goals of one turn. Each adds a tool to every prompt."""
MAX_DESCRIPTION = 2_000
"""Maximum characters of a goal's description."""
MAX_SCHEMAS = 20_000
"""Maximum bytes of all schemas of a turn as JSON. They are part of every prompt."""
MAX_PATTERNS = 16
"""Maximum number of patterns in all schemas of a turn. Compiling a short pattern can take 10 MB and 0.1 s."""


class GoalDeclaration(BaseModel):
    """One goal on the wire. The wire name of ``json_schema`` is ``schema``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,48}$")]
    json_schema: Annotated[dict[str, object], Field(alias="schema")]
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)] = ""


_GOALS: TypeAdapter[list[GoalDeclaration]] = TypeAdapter(Annotated[list[GoalDeclaration], Field(max_length=MAX_GOALS)])


def has_goals(props: object) -> bool:
    """Return True if the caller declares goals. An empty list is a declaration, too."""
    return isinstance(props, Mapping) and props.get(FIELD) is not None


def parse_goals(props: object) -> Sequence[Goal]:
    """Parse the goals in ``forwardedProps``. This may take a second, so it must run outside the event loop.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    from agui_container.agents.assistant.goals.schema_validation import count_patterns, schema_problem  # noqa: PLC0415 - the import takes 0.2 s

    goals: dict[str, Goal] = {}
    declarations = read_forwarded_prop(props, FIELD, _GOALS) or []
    if sum(len(to_json(each.json_schema)) for each in declarations) > MAX_SCHEMAS:
        message = f"forwardedProps.{FIELD}: the schemas have more than {MAX_SCHEMAS} bytes as JSON."
        raise AppError(ErrorCode.VALIDATION_ERROR, message)
    if sum(count_patterns(each.json_schema) for each in declarations) > MAX_PATTERNS:
        raise AppError(
            ErrorCode.VALIDATION_ERROR, f"forwardedProps.{FIELD}: the schemas have more than {MAX_PATTERNS} patterns."
        )
    for index, declaration in enumerate(declarations):
        path, name = f"forwardedProps.{FIELD}.{index}", declaration.type
        if name in goals:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"{path}.type: another goal has the type '{name}'.")
        # A schema of any version is read as the version that tool schemas have.
        schema = {key: value for key, value in declaration.json_schema.items() if key != "$schema"}
        problem = schema_problem(schema)
        if problem is not None:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"{path}.schema{problem}")
        goals[name] = Goal(name, schema, declaration.description)
    return list(goals.values())


PROMPTED = "goals.prompted"

RUN_WORK = 240_000
"""Work units of all validations of one run. See ``schema_validation.MAX_WORK`` for those of one."""

PROMPTS = 3
"""Default for the maximum number of reminders per run."""

SECTION = (
    "## Goals\n\nThis turn has goals. Before you end it, call the tool of each, once, with the data that it describes: "
)


async def track_goals(request: RunAgentInput, records: GoalRecords, prompts: int, ctx: RunContext) -> "GoalTracker":
    """Return a tracker for the goals that this run declares, or else those carried over from the previous run.

    A goal that is declared again unchanged keeps its status.

    Raises:
        AppError: VALIDATION_ERROR for an invalid goal; STORE_UNAVAILABLE.
    """
    if ctx.subagent_run_id is not None:
        return GoalTracker((), records, prompts, ctx)
    previous = await records.load(ctx)
    if not has_goals(request.forwarded_props):
        return GoalTracker(previous, records, prompts, ctx)
    goals = await offload(ctx.caller.identity, parse_goals, request.forwarded_props)
    current = [
        next((record for record in previous if record.goal == goal), GoalRecord(goal, run_id=ctx.run_id, index=index))
        for index, goal in enumerate(goals)
    ]
    replaced = [record for record in previous if record not in current]
    return GoalTracker(current, records, prompts, ctx, replaced=replaced)


class GoalTracker:
    """Tracks the goals of one run. A context manager around the run's work.

    An error in the block fails the pending goals. An error that the caller can correct carries them over instead.
    Before ``begin``, such an error leaves the turn with the goals that it had before this run.

    Args:
        current: the run's goals with their status.
        records: stores the goals.
        prompts: maximum number of reminders.
        ctx: context of the run.
        replaced: goals of the turn that this run's declaration replaces; None if the run declares none.
    """

    def __init__(
        self,
        current: Sequence[GoalRecord],
        records: GoalRecords,
        prompts: int,
        ctx: RunContext,
        *,
        replaced: Sequence[GoalRecord] | None = None,
    ) -> None:
        self._goals = {record.goal.type: record for record in current}
        self._records = records
        self._prompts = prompts
        self._reminders_sent = 0
        self._ctx = ctx
        self._replaced = replaced
        self._is_carried = False
        self._has_begun = False
        self._order = asyncio.Lock()
        self._work: float = RUN_WORK

    async def __aenter__(self) -> None:
        if self._goals or self._replaced is not None:
            await self._records.carry_over(self._ctx, ())
            rows = [{"type": r.goal.type, "tool": tool_name(r.goal), "status": r.status} for r in self._goals.values()]
            self._emit(DECLARED, {"goals": rows})

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if error is None or (isinstance(error, AppError) and error.is_caller_fault and await self._try_carry_over()):
            return
        self.begin()
        if self._is_carried:
            self._ctx.background(self._records.carry_over(self._ctx, ()))
        self._fail("run_ended")
        if isinstance(error, Exception):  # The readers of a cancelled run have seen its end, so it does not wait.
            await self._record_and_wait()

    async def _try_carry_over(self) -> bool:
        try:
            await self.carry_over()
        except AppError:
            self._ctx.logger.warning(
                "carrying over goals failed, goals fail %s", format_fields({"run": self._ctx.run_id}), exc_info=True
            )
            return False
        return True

    def begin(self) -> None:
        """Mark the run as accepted. The goals that its declaration replaces fail."""
        if not self._has_begun and (self._goals or self._replaced is not None):
            self._record(fail_pending(self._replaced or ()))
        self._has_begun = True

    async def give_up(self) -> None:
        """Fail the pending goals because the turn ends, and wait until the status is stored."""
        self._fail("given_up")
        await self._record_and_wait()

    async def carry_over(self) -> None:
        """Carry the goals over to the thread's next run because the turn continues there.

        Raises:
            AppError: STORE_UNAVAILABLE.
        """
        if goals := self._turn_goals:
            self._is_carried = True
            await self._records.carry_over(self._ctx, goals)
        if self._has_begun:
            await self._record_and_wait()

    @property
    def _turn_goals(self) -> Sequence[GoalRecord]:
        """Goals of the turn: this run's, or before ``begin`` those that the turn had before this run."""
        if self._has_begun:
            return list(self._goals.values())
        earlier = [record for record in self._goals.values() if record.run_id != self._ctx.run_id]
        return [*earlier, *(self._replaced or ())]

    @property
    def pending(self) -> Sequence[GoalRecord]:
        """Goals that are neither achieved nor failed."""
        return [record for record in self._goals.values() if record.status is GoalStatus.PENDING]

    # --- the model ---

    def tools(self, others: Sequence[Tool], offered: Sequence[ToolSpec]) -> Sequence[Tool]:
        """Return the tools of the goals.

        Raises:
            AppError: VALIDATION_ERROR, if another tool of the server or the client has the name of one.
        """
        other_names = {tool.spec.name for tool in others} | {spec.name for spec in offered}
        for record in self._goals.values():
            if tool_name(record.goal) in other_names:
                message = f"forwardedProps.goals: there is another tool named '{tool_name(record.goal)}'."
                raise AppError(ErrorCode.VALIDATION_ERROR, message)
        return [AchieveTool(record.goal, self) for record in self._goals.values()]

    @property
    def section(self) -> str:
        """Section of the system text on the goals; empty without goals."""
        return f"{SECTION}{goal_tool_names(self._goals.values())}." if self._goals else ""

    def with_prompt(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the conversation. Append a request for the goals if it ends with nothing to answer."""
        has_prompt = bool(messages) and is_prompt(messages[-1])
        return messages if has_prompt or not self.pending else [*messages, self._request()]

    def reminder(self) -> Sequence[Message]:
        """Return a reminder for a model that has stopped; none if no goal is pending or all reminders are used up."""
        if not self.pending or self._reminders_sent == self._prompts:
            return ()
        self._reminders_sent += 1
        types = [record.goal.type for record in self.pending]
        self._emit(PROMPTED, {"goals": types, "prompt": self._reminders_sent, "prompts": self._prompts})
        return [self._request()]

    def _request(self) -> Message:
        names = goal_tool_names(self.pending)
        text = f"Achieve the goals: {names}. Call each of these tools with the data that it describes."
        return UserMessage(id=self._ctx.new_id(), content=text)

    # --- status ---

    async def achieve(self, goal: Goal, data: Mapping[str, object], ctx: RunContext) -> str:
        """Mark a goal as achieved with ``data``. Concurrent calls are handled in their order. Return the result text.

        Raises:
            ToolError: the goal is achieved already, or the data does not match its schema.
        """
        async with self._order:
            if self._goals[goal.type].status is GoalStatus.ACHIEVED:
                raise ToolError(f"the goal {goal.type} is achieved already; the data that was given first counts.")
            errors, self._work = await offload(ctx.caller.identity, _validate, goal, data, self._work)
            if errors:
                raise ToolError(f"{tool_name(goal)}: {'; '.join(errors)}.")
            self._emit(ACHIEVED, {"type": goal.type, "toolCallId": ctx.tool_call_id, "data": data})
            self._update(replace(self._goals[goal.type], status=GoalStatus.ACHIEVED, data=data))
        return f"The goal {goal.type} is achieved."

    def _fail(self, reason: str) -> None:
        for record in fail_pending(self.pending):
            self._emit(FAILED, {"type": record.goal.type, "reason": reason})
            self._update(record)

    def _update(self, record: GoalRecord) -> None:
        self._goals[record.goal.type] = record
        self._record()

    def _record(self, others: Sequence[GoalRecord] = ()) -> None:
        self._records.record(self._ctx, [*others, *self._goals.values()])

    async def _record_and_wait(self) -> None:
        await self._records.record_and_wait(self._ctx, list(self._goals.values()))

    def _emit(self, name: str, value: Mapping[str, object]) -> None:
        self._ctx.emit(CustomEvent(name=name, value=value))


class AchieveTool(Struct, frozen=True):
    """Implements ``ports.Tool`` for one goal. The arguments of a call are the goal's data."""

    goal: Goal
    tracker: GoalTracker

    @property
    def spec(self) -> ToolSpec:
        """Description of the tool, with the goal's schema as its parameters."""
        description = f"Achieve the goal {self.goal.type}."
        if self.goal.description:
            description += f" Its description by the user's application: {caller_data(self.goal.description)}"
        return ToolSpec(name=tool_name(self.goal), description=description, parameters=dict(self.goal.schema))

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> str:
        """Achieve the goal with the arguments as its data. Raises ``ToolError`` as ``GoalTracker.achieve`` does."""
        return await self.tracker.achieve(self.goal, arguments, ctx)


def tool_name(goal: Goal) -> str:
    """Return the name of the goal's tool."""
    return f"achieve_{goal.type}"


def fail_pending(records: Iterable[GoalRecord]) -> Sequence[GoalRecord]:
    """Return the pending records as failed ones. Other records are left out."""
    return [replace(record, status=GoalStatus.FAILED) for record in records if record.status is GoalStatus.PENDING]


def goal_tool_names(records: Iterable[GoalRecord]) -> str:
    """Return the names of the goals' tools, separated by commas."""
    return ", ".join(tool_name(record.goal) for record in records)


def _validate(goal: Goal, data: Mapping[str, object], work: float) -> tuple[list[str], float]:
    """Return the errors in a goal's data, and the rest of ``work`` units."""
    from agui_container.agents.assistant.goals.schema_validation import MAX_WORK, WorkBudget, validation_errors  # noqa: PLC0415 - the import takes 0.2 s

    budget = WorkBudget(min(MAX_WORK, work))
    errors = validation_errors(goal.schema, data, budget)
    return errors, work - min(MAX_WORK, work) + max(0.0, budget.remaining)
