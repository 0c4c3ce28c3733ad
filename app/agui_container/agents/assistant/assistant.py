"""The built-in assistant: call the model, run the tools it asks for, and call it again with the results.

Rules: only calls that the model makes in this run are ever run; calls found in the caller's history are words. Calls of
client tools are left unanswered and end the run: the next run brings their results. Calls that somebody must approve
end it with interrupts: the next run brings the answers. A model is asked again only when all it called is answered.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ag_ui.core import (
    AgentCapabilities,
    Context,
    ExecutionCapabilities,
    HumanInTheLoopCapabilities,
    Interrupt,
    MultiAgentCapabilities,
    ReasoningCapabilities,
    RunAgentInput,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    StateCapabilities,
    SubagentInfo,
    ToolMessage,
    ToolsCapabilities,
)
from ag_ui.core import Tool as ToolSpec

from agui_container.agents.assistant.approvals.approvals import Approval, Approvals
from agui_container.agents.assistant.approvals.asking import Asking, asking_of
from agui_container.agents.assistant.approvals.resume import Resumed, resume
from agui_container.agents.assistant.context_window.budget import ContextBudget
from agui_container.agents.assistant.goals.declarations import MAX_GOALS
from agui_container.agents.assistant.goals.goal_store import StoredGoalRecords
from agui_container.agents.assistant.goals.goal_tracker import PROMPTS, GoalTracker, track_goals
from agui_container.agents.assistant.history import trusted_conversation
from agui_container.agents.assistant.model_choice import chosen_model
from agui_container.agents.assistant.model_turn import ModelToolCall, ModelTurn
from agui_container.agents.assistant.prompt.skills import (
    Skill,
    SkillInvocation,
    requested_skill,
    skill_list,
    skill_tools,
)
from agui_container.agents.assistant.prompt.system_text import application_context, system_text
from agui_container.agents.assistant.subagents import Subagent
from agui_container.agents.assistant.tool_sources import SourceFailure, gather_tools
from agui_container.agents.assistant.toolbox import Answered, Toolbox, result_event
from agui_container.agents.run_limits import check_step, with_limits
from agui_container.ports import (
    Caller,
    GoalRecords,
    Item,
    Model,
    Permission,
    Policy,
    PolicyDecision,
    Prompt,
    RunContext,
    RunLimits,
    Suspension,
    Tool,
    ToolSource,
)
from agui_container.ports.store import Store
from agui_container.runtime.aclosing import maybe_aclosing
from agui_container.telemetry import ModelCall

SYSTEM_PROMPT = "You are a helpful assistant. Answer briefly. Use the tools when they help."
MAX_STEPS = 16


def allow_all(_tool_name: str) -> PolicyDecision:
    """The policy where there are no rules."""
    return PolicyDecision(Permission.ALLOW)


@dataclass(frozen=True, slots=True)
class Assistant:
    """Implements ``ports.Agent``, ``ports.Responder`` and ``ports.store.Keeper`` with any ``Model`` and any ``Tool``.

    Where nothing else is said, what waits for answers is kept in memory.

    Attributes:
        tools: what the server runs for the model; clients may offer their own besides.
        max_steps: model calls per run; a run that needs more ends with RUN_LIMIT_EXCEEDED.
        max_tokens: what they may use together, subagents included; None is no limit. It ends a run like ``max_steps``.
        policy: which tools may run, must be asked for, or may not.
        trust_instructions: whether a caller's system and developer messages reach the model.
        asks: whether the policy may ask for tools that only sources know.
        approvals: the calls that wait for somebody's word.
        sources: tools that are known only at run time. One that fails costs a run its own tools and nothing else.
        skills: instructions that the model reads when it needs them, or that a caller asks for.
        budget: how many tokens a model call may be sent.
        goals: where the goals of turns are written down.
        goal_prompts: how often, in one run, a model that stops too early is asked again for the goals.
        steady: seconds that only go forward; tools are timed by it.
        models: models that a caller may choose instead of ``model``, by name.
    """

    model: Model
    tools: Sequence[Tool] = ()
    system_prompt: str = SYSTEM_PROMPT
    max_steps: int = MAX_STEPS
    sources: Sequence[ToolSource] = ()
    policy: Policy = allow_all
    trust_instructions: bool = False
    approvals: Approvals = field(default_factory=Approvals)
    skills: Sequence[Skill] = ()
    budget: ContextBudget = field(default_factory=ContextBudget)
    asks: bool = False
    max_tokens: int | None = None
    goals: GoalRecords = field(default_factory=StoredGoalRecords)
    goal_prompts: int = PROMPTS
    monotonic: Callable[[], float] = time.monotonic
    models: Mapping[str, Model] = field(default_factory=dict)

    def with_store(self, store: Store, depth: int = 0) -> "Assistant":
        """The same assistant, and those below it, with what waits for answers in a store."""
        tools = [tool.kept_in(store, depth + 1) if isinstance(tool, Subagent) else tool for tool in self.tools]
        goals = self.goals.kept_in(store) if isinstance(self.goals, StoredGoalRecords) else self.goals
        return replace(self, tools=tuple(tools), approvals=self.approvals.kept_in(store.interrupts, depth), goals=goals)

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Answer: model, tools, model, … until there is nothing more to call, or somebody else's turn has come."""
        ctx = with_limits(ctx, RunLimits(tokens=self.max_tokens))
        props = input.forwarded_props
        asking, model = asking_of(props), chosen_model(props, self.models, self.model)
        skill = requested_skill(props, self.skills)
        goals = await track_goals(input, self.goals, self.goal_prompts, ctx)
        tools, source_failures = await gather_tools(self._tools, self.sources, ctx)
        for source_failure in source_failures:
            yield source_failure.event
        toolbox = self._toolbox(tools, source_failures, goals, input.tools or (), asking)
        asked: Sequence[Approval] = ()
        async with goals:
            resumed = await resume(input, self.approvals, toolbox, ctx)
            goals.begin()
            for result in resumed.new_results(input.messages):
                yield result_event(result)
            if resumed.has_denial and asking.on_denial == "cancel":
                await goals.give_up()
                yield cancelled(ctx)
                return
            others_turn, steps = resumed.skips_model, 0
            prompt = self._prompt(input, resumed, skill, goals, toolbox, ctx)
            window = self.budget.open_window(model, prompt, ctx)
            while not others_turn:
                check_step(steps, self.max_steps, ctx)
                steps += 1
                await window.fit()
                turn, sent = ModelTurn(ctx), replace(prompt, messages=window.messages)
                with ModelCall(model, sent, ctx) as call:
                    async with maybe_aclosing(model.stream(sent)) as deltas:
                        async for delta in deltas:
                            for event in turn.feed(delta):
                                yield event
                    call.record_answer(turn)
                for event in turn.close():
                    yield event
                window.add(turn.messages)
                window.snapshot()
                left, own = toolbox.split_calls(turn.calls)
                results, asked = await self._run_calls(own, left, toolbox, ctx)
                for result in results:
                    yield result_event(result)
                others_turn = bool(left or asked)
                more = () if others_turn else results or goals.reminder()
                if not more:
                    break
                window.add(more)
            await (goals.carry_over() if others_turn else goals.give_up())
            async with self.approvals.registered_during(asked, ctx):
                yield finish_event(ctx, asked or resumed.waiting)

    def _toolbox(
        self,
        tools: Sequence[Tool],
        source_failures: Sequence[SourceFailure],
        goals: GoalTracker,
        offered: Sequence[ToolSpec],
        asking: Asking,
    ) -> Toolbox:
        complete = not any(outage.down for outage in source_failures)
        own = [*tools, *goals.tools(tools, offered)]
        return Toolbox.build(own, offered, asking.policy(self.policy), complete=complete, steady=self.monotonic)

    async def pending_interrupts(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """Implements ``ports.Responder``: what is asked on this thread, and not answered."""
        held = await self.approvals.load((caller.owner, thread_id, ""))
        return [interrupt for approval in held if not approval.is_settled for interrupt in approval.interrupts]

    def capabilities(self) -> AgentCapabilities:
        """What clients may expect of this assistant."""
        return AgentCapabilities(
            tools=ToolsCapabilities(
                supported=True,
                items=[with_policy(tool.spec, self.policy) for tool in self._tools],
                parallel_calls=True,
                client_provided=True,
            ),
            reasoning=ReasoningCapabilities(supported=True, streaming=True),
            state=StateCapabilities(snapshots=True, deltas=True),
            multi_agent=self._subagents(),
            human_in_the_loop=self._human_in_the_loop(),
            execution=ExecutionCapabilities(max_iterations=self.max_steps),
            custom=self._custom(),
        )

    async def _run_calls(
        self, calls: Sequence[ModelToolCall], beside: Sequence[str], toolbox: Toolbox, ctx: RunContext
    ) -> tuple[Sequence[ToolMessage], Sequence[Approval]]:
        """Run the calls that may be run. Their results, and those that wait for somebody's word."""
        asked = {call.id: ruling for call in calls if (ruling := toolbox.approval_rule(call)) is not None}
        ready = [call for call in calls if call.id not in asked]
        answers = await toolbox.run_all(ready, ctx)
        results = result_messages(ready, answers, ctx)
        waiting = [
            self.approvals.create(call, asked[call.id], ctx.new_id(), beside, await toolbox.preview(call, ctx))
            for call in calls
            if call.id in asked
        ]
        for call, answer in zip(ready, answers, strict=True):
            if isinstance(answer, Suspension):
                waiting.append(Approval(call, answer.interrupts, beside, answer))
        return results, waiting

    def _prompt(  # noqa: PLR0913, PLR0917 - a prompt is made of all of these
        self,
        input: RunAgentInput,
        resumed: Resumed,
        skill: SkillInvocation | None,
        goals: GoalTracker,
        toolbox: Toolbox,
        ctx: RunContext,
    ) -> Prompt:
        messages = trusted_conversation(
            resumed.with_held_calls(input.messages), trust_instructions=self.trust_instructions
        )
        told = goals.with_prompt(skill.with_arguments(messages, ctx.new_id) if skill else messages)
        return Prompt(self._system(skill, goals, input.context or ()), told, toolbox.specs)

    def _system(self, skill: SkillInvocation | None, goals: GoalTracker, context: Sequence[Context]) -> str:
        asked = skill.section if skill else ""
        applications = application_context(context)
        return system_text(self.system_prompt, skill_list(self.skills), asked, goals.section, applications)

    @property
    def _tools(self) -> Sequence[Tool]:
        return *self.tools, *skill_tools(self.skills)

    def _custom(self) -> dict[str, object]:
        custom: dict[str, object] = {"goals": {"max": MAX_GOALS, "prompts": self.goal_prompts}}
        return {**custom, "skills": [skill.name for skill in self.skills]} if self.skills else custom

    def _subagents(self) -> MultiAgentCapabilities | None:
        agents = [tool for tool in self.tools if isinstance(tool, Subagent)]
        if not agents:
            return None
        named = [SubagentInfo(name=agent.name, description=agent.description) for agent in agents]
        return MultiAgentCapabilities(supported=True, delegation=True, subagents=named)

    def _human_in_the_loop(self) -> HumanInTheLoopCapabilities | None:
        asks = self.asks or any(self.policy(tool.spec.name).permission is Permission.ASK for tool in self._tools)
        if not asks:
            return None
        return HumanInTheLoopCapabilities(supported=True, approvals=True, interrupts=True, approve_with_edits=True)


def with_policy(spec: ToolSpec, policy: Policy) -> ToolSpec:
    """A tool with what a client should know of it before it is called: that it is asked for, or never run."""
    ruling = policy(spec.name)
    if ruling.permission is Permission.ALLOW:
        return spec
    told = {"policy": ruling.permission.value, "category": ruling.category, "reason": ruling.reason}
    known = {name: value for name, value in told.items() if value is not None}
    return spec.model_copy(update={"metadata": {**(spec.metadata or {}), **known}})


def finish_event(ctx: RunContext, waiting: Sequence[Approval]) -> RunFinishedEvent:
    """The end of a run: a success, or an interrupt for each call that waits."""
    interrupts = [interrupt for approval in waiting for interrupt in approval.interrupts]
    outcome = RunFinishedInterruptOutcome(interrupts=interrupts) if interrupts else None
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


def cancelled(ctx: RunContext) -> RunFinishedEvent:
    """The end of a run that its caller stopped."""
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=RunFinishedCancelledOutcome())


def result_messages(calls: Sequence[ModelToolCall], answers: Sequence[Answered], ctx: RunContext) -> list[ToolMessage]:
    """The tool messages of answered calls, each with an id of its own; calls that wait have none yet."""
    return [
        answer.to_message(ctx.new_id(), call.id)
        for call, answer in zip(calls, answers, strict=True)
        if not isinstance(answer, Suspension)
    ]
