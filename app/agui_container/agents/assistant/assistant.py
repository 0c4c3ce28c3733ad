"""The built-in assistant: call the model, run its tool calls, and call the model again with the results.

Rules:
- Only calls that the model makes in this run, or that a stored approval holds, are ever run. Calls in the caller's
  history are text.
- Calls of client tools stay unanswered and end the run. The next run brings their results.
- Calls that need an approval end the run with interrupts. The next run brings the answers.
- The model is called again only when all its calls have results.
"""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count

from ag_ui.core import (
    AgentCapabilities,
    Context,
    ExecutionCapabilities,
    HumanInTheLoopCapabilities,
    Interrupt,
    MultiAgentCapabilities,
    ReasoningCapabilities,
    RunAgentInput,
    StateCapabilities,
    SubagentInfo,
    ToolMessage,
    ToolsCapabilities,
)
from ag_ui.core import Tool as ToolSpec
from pydantic import StrictStr, TypeAdapter

from agui_container.agents.approvals.approvals import (
    Approval,
    Approvals,
    read_approval_options,
)
from agui_container.agents.approvals.interrupt_scope import scope_key
from agui_container.agents.approvals.resume import ResumeOutcome, Resumption, cancelled_event, finish_event
from agui_container.agents.assistant.context_window.window import ContextBudget
from agui_container.agents.assistant.goals.goal_store import StoredGoalRecords
from agui_container.agents.assistant.goals.goal_tracker import MAX_GOALS, PROMPTS, GoalTracker, track_goals
from agui_container.agents.assistant.history import answerable, trusted_conversation
from agui_container.agents.assistant.model_turn import MediaReports, ModelTurn
from agui_container.agents.assistant.prompt.skills import (
    Skill,
    SkillInvocation,
    requested_skill,
    skill_list,
    skill_tools,
)
from agui_container.agents.assistant.prompt.system_text import application_context, system_text
from agui_container.agents.assistant.subagents import Subagent
from agui_container.agents.run_limits import check_step, with_limits
from agui_container.agents.tool_calls.tool_call import ModelToolCall, result_event
from agui_container.agents.tool_calls.tool_sources import SourceFailure, gather_tools
from agui_container.agents.tool_calls.toolbox import CallOutcome, Toolbox, by_name
from agui_container.ports import (
    Caller,
    CallRules,
    GoalRecords,
    Item,
    Model,
    Permission,
    Policy,
    Prompt,
    RunContext,
    RunLimits,
    Suspension,
    Tool,
    ToolSource,
    allow_all,
)
from agui_container.ports.store import Store
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.protocol.parser import read_forwarded_prop
from agui_container.runtime.aclosing import maybe_aclosing
from agui_container.runtime.log_values import format_fields
from agui_container.telemetry import ModelCall

SYSTEM_PROMPT = "You are a helpful assistant. Answer briefly. Use the tools when they help."
MAX_STEPS = 16


@dataclass(frozen=True, slots=True)
class Assistant:
    """Implements ``ports.Agent``, ``ports.Responder`` and ``ports.store.StoreUser`` with any ``Model`` and ``Tool``.

    Approvals and goals are stored in memory unless ``with_store`` binds the assistant to a store.

    Attributes:
        model: the model that answers, unless the caller chooses another one of ``models``.
        tools: tools that the server runs. Clients may offer their own tools in addition.
        system_prompt: the operator's prompt, the first section of the system text.
        max_steps: maximum number of model calls per run. A run that needs more ends with RUN_LIMIT_EXCEEDED.
        max_tokens: maximum number of tokens per run, subagents included; None means no limit. A run over the limit ends
            with RUN_LIMIT_EXCEEDED.
        policy: decides for each tool name if it may run, needs an approval, or is denied. It holds for subagents, too.
        trust_instructions: True if a caller's system and developer messages reach the model.
        asks: True if the policy may require approvals for tools of sources, which are unknown until a run.
        approvals: the calls that wait for an answer.
        sources: sources of tools that are known only at run time. A failed source costs a run only its own tools.
        skills: instructions that the model loads when it needs them, or that a caller requests.
        budget: the limit on the tokens of a prompt.
        goals: the records of the goals of turns.
        goal_prompts: maximum number of times per run that a model that stops before achieving its goals is reminded.
        monotonic: monotonic clock in seconds, by which tools are timed.
        models: models that a caller may choose, by name.
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
        """Return the same assistant, subagents included, with its approvals and goals in ``store``."""
        tools = [tool.with_store(store, depth + 1) if isinstance(tool, Subagent) else tool for tool in self.tools]
        goals = self.goals.with_store(store) if isinstance(self.goals, StoredGoalRecords) else self.goals
        approvals = self.approvals.with_store(store.interrupts, depth)
        return replace(self, tools=tuple(tools), approvals=approvals, goals=goals)

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Call the model and its tools in turn until it makes no more calls or a call must be answered elsewhere."""
        model, skill, ctx = self._choices(input.forwarded_props, ctx)
        goals = await track_goals(input, self.goals, self.goal_prompts, ctx)
        tools, source_failures = await gather_tools(self._tools, self.sources, ctx)
        for source_failure in source_failures:
            yield source_failure.event
        new_approvals: Sequence[Approval] = ()
        async with goals:
            resumption = Resumption(input, await self.approvals.load(scope_key(ctx)), self.approvals, ctx)
            ctx, rules = resumption.ctx, resumption.ctx.call_rules
            toolbox = self._toolbox(tools, source_failures, goals, input.tools or (), rules)
            async with aclosing(resumption.results(toolbox)) as answered_calls:
                async for result in answered_calls:
                    yield result_event(result)
            goals.begin()
            if resumption.outcome.has_denial and rules.cancels_on_denial:
                await goals.give_up()
                yield cancelled_event(ctx)
                return
            must_wait, steps = resumption.outcome.skips_model, count()
            prompt = self._prompt(input, resumption.outcome, skill, goals, toolbox, ctx)
            window, media_reports = self.budget.open_window(model, prompt, ctx), MediaReports(prompt.messages)
            while not must_wait:
                check_step(next(steps), self.max_steps, ctx)
                await window.fit()
                turn, sent = ModelTurn(ctx, media_reports), replace(prompt, messages=window.messages)
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
                client_ids, own_calls = toolbox.split_calls(turn.calls)
                results, new_approvals = await self._run_calls(own_calls, client_ids, toolbox, ctx)
                for result in results:
                    yield result_event(result)
                must_wait = bool(client_ids or new_approvals)
                if must_wait or not (additions := results or goals.reminder()):
                    break
                window.add(additions)
            await (goals.carry_over() if must_wait else goals.give_up())
            async with self.approvals.registered_during(new_approvals, ctx):
                yield finish_event(ctx, new_approvals or resumption.outcome.waiting)

    def _choices(self, props: object, ctx: RunContext) -> tuple[Model, SkillInvocation | None, RunContext]:
        """Return the model and the skill of the caller's choice, and the context with the rules and limits of both.

        Raises:
            AppError: VALIDATION_ERROR, naming the field of ``forwardedProps``.
        """
        rules = read_approval_options(props).added_to(ctx.call_rules.with_policy(self.policy))
        limited = replace(with_limits(ctx, RunLimits(tokens=self.max_tokens)), call_rules=rules)
        return chosen_model(props, self.models, self.model), requested_skill(props, self.skills), limited

    def _toolbox(
        self,
        tools: Sequence[Tool],
        source_failures: Sequence[SourceFailure],
        goals: GoalTracker,
        offered: Sequence[ToolSpec],
        rules: CallRules,
    ) -> Toolbox:
        is_complete = not any(failure.is_down for failure in source_failures)
        own = by_name([*tools, *goals.tools(tools, offered)])
        return Toolbox.build(own, offered, rules, is_complete=is_complete, monotonic=self.monotonic)

    async def pending_interrupts(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """Return the interrupts of the thread's open approvals. Implements ``ports.Responder``."""
        stored = await self.approvals.load((caller.owner, thread_id, ""))
        return [interrupt for approval in stored if not approval.is_settled for interrupt in approval.interrupts]

    def capabilities(self) -> AgentCapabilities:
        """Return the capabilities that clients may expect of this assistant."""
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
        """Run those of the server's calls of a turn that need no approval.

        ``beside`` are the ids of the client's calls in the same turn. Return the results, and the approvals of calls
        that need an answer before they start or that were suspended.
        """
        to_approve = {call.id: decision for call in calls if (decision := toolbox.required_approval(call)) is not None}
        ready = [call for call in calls if call.id not in to_approve]
        outcomes = await toolbox.run_all(ready, ctx)
        results = result_messages(ready, outcomes, ctx)
        approvals = [
            self.approvals.create(call, to_approve[call.id], ctx.new_id(), beside, await toolbox.details(call, ctx))
            for call in calls
            if call.id in to_approve
        ]
        for call, outcome in zip(ready, outcomes, strict=True):
            if isinstance(outcome, Suspension):
                approvals.append(Approval(call, outcome.interrupts, beside, outcome))
        return results, approvals

    def _prompt(  # noqa: PLR0913, PLR0917 - each is a part of the prompt
        self,
        input: RunAgentInput,
        resumed: ResumeOutcome,
        skill: SkillInvocation | None,
        goals: GoalTracker,
        toolbox: Toolbox,
        ctx: RunContext,
    ) -> Prompt:
        history = resumed.with_settled_calls(input.messages)
        dropped = Counter[str]()
        trusted = trusted_conversation(history, trust_instructions=self.trust_instructions, dropped=dropped)
        if counts := {kind: count for kind, count in dropped.items() if count}:
            ctx.logger.warning("history messages dropped %s", format_fields({"run": ctx.run_id, **counts}))
        messages = goals.with_prompt(skill.with_arguments(trusted, ctx.new_id) if skill else trusted)
        if not resumed.skips_model:
            messages = answerable(messages, [*input.messages, *resumed.new_results(input.messages)])
        return Prompt(self._system(skill, goals, input.context or ()), messages, toolbox.specs)

    def _system(self, skill: SkillInvocation | None, goals: GoalTracker, context: Sequence[Context]) -> str:
        skill_section = skill.section if skill else ""
        application_section = application_context(context)
        return system_text(
            self.system_prompt, skill_list(self.skills), skill_section, goals.section, application_section
        )

    @property
    def _tools(self) -> Sequence[Tool]:
        return *self.tools, *skill_tools(self.skills)

    def _custom(self) -> dict[str, object]:
        custom: dict[str, object] = {
            "goals": {"max": MAX_GOALS, "prompts": self.goal_prompts},
            "model": {"provider": self.model.provider, "name": self.model.name},
        }
        configured = {
            "skills": [skill.name for skill in self.skills],
            "models": list(self.models),
            "trustsInstructions": self.trust_instructions,
        }
        return custom | {name: value for name, value in configured.items() if value}

    def _subagents(self) -> MultiAgentCapabilities | None:
        agents = [tool for tool in self.tools if isinstance(tool, Subagent)]
        if not agents:
            return None
        infos = [SubagentInfo(name=agent.name, description=agent.description) for agent in agents]
        return MultiAgentCapabilities(supported=True, delegation=True, subagents=infos)

    def _human_in_the_loop(self) -> HumanInTheLoopCapabilities | None:
        asks = self.asks or any(self.policy(tool.spec.name).permission is Permission.ASK for tool in self._tools)
        if not asks:
            return None
        return HumanInTheLoopCapabilities(supported=True, approvals=True, interrupts=True, approve_with_edits=True)


def with_policy(spec: ToolSpec, policy: Policy) -> ToolSpec:
    """Return the tool with its policy in the metadata if it needs an approval or is denied, else unchanged."""
    decision = policy(spec.name)
    if decision.permission is Permission.ALLOW:
        return spec
    details = {"policy": decision.permission.value, "category": decision.category, "reason": decision.reason}
    details = {name: value for name, value in details.items() if value is not None}
    return spec.model_copy(update={"metadata": {**(spec.metadata or {}), **details}})


def result_messages(
    calls: Sequence[ModelToolCall], outcomes: Sequence[CallOutcome], ctx: RunContext
) -> list[ToolMessage]:
    """Return the tool messages of the calls that have a result, each with a new id. Suspended calls have none."""
    return [
        outcome.to_message(ctx.new_id(), call.id)
        for call, outcome in zip(calls, outcomes, strict=True)
        if not isinstance(outcome, Suspension)
    ]


_MODEL_NAME = TypeAdapter(StrictStr)


def chosen_model(props: object, models: Mapping[str, Model], default: Model) -> Model:
    """Return the model that ``forwardedProps.model`` names, or the default. Only names in ``models`` can be chosen.

    Raises:
        AppError: VALIDATION_ERROR for any other name.
    """
    name = read_forwarded_prop(props, "model", _MODEL_NAME)
    if not name:
        return default
    if name not in models:
        allowed = f"allowed are {', '.join(models)}" if models else "this server allows no choice"
        raise AppError(
            ErrorCode.VALIDATION_ERROR,
            clip_message(f"forwardedProps.model: '{name[:64]}' cannot be chosen; {allowed}."),
        )
    return models[name]
