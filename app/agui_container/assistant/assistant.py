"""The built-in assistant: call the model, run its tool calls, and call the model again with the results.

Rules:
- Only calls that the model makes in this run, or that a stored approval holds, are ever run. Calls in the caller's
  history are text.
- Calls of client tools stay unanswered and end the run. The next run brings their results.
- Calls that need an approval end the run with interrupts. The next run brings the answers.
- The model is called again only when all its calls have results.
- Changes of the client's tools and context count from the next model call. A call of a client tool that has been
  removed since then still goes to the client.
"""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from ag_ui.core import (
    AgentCapabilities,
    Context,
    ExecutionCapabilities,
    HumanInTheLoopCapabilities,
    Message,
    MultiAgentCapabilities,
    ReasoningCapabilities,
    RunAgentInput,
    StateCapabilities,
    SubagentInfo,
    ToolsCapabilities,
)
from ag_ui.core import Tool as ToolSpec
from msgspec import structs
from pydantic import StrictStr, TypeAdapter

from agui_container.agents.file_data import FileData
from agui_container.agents.gate.approval import with_demands
from agui_container.agents.gate.calls import CallNote, result_event
from agui_container.agents.gate.gate import ToolGate, finish_event, interrupts_of_calls
from agui_container.agents.gate.journal import Journal
from agui_container.agents.gate.toolbox import Toolbox, gather_tools
from agui_container.agents.run_limits import check_step, with_limits
from agui_container.assistant.context_window.window import ContextBudget, Window
from agui_container.assistant.history import answerable, trusted_conversation
from agui_container.assistant.model_turn import MediaReports, ModelTurn
from agui_container.assistant.prompt.skills import (
    Skill,
    SkillInvocation,
    requested_skill,
    skill_list,
    skill_tools,
)
from agui_container.assistant.prompt.system_text import application_context, system_text, tool_servers
from agui_container.assistant.subagents import Subagent
from agui_container.log_values import format_fields
from agui_container.ports import (
    Item,
    Model,
    Permission,
    Policy,
    Prompt,
    RunContext,
    RunLimits,
    Tool,
    ToolSource,
    allow_all,
)
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.store import Store
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.protocol.parser import read_forwarded_prop
from agui_container.telemetry.spans import ModelCall

SYSTEM_PROMPT = "You are a helpful assistant. Answer briefly. Use the tools when they help."
MAX_STEPS = 16


@dataclass(frozen=True, slots=True)
class Assistant:
    """Implements ``ports.Agent``, ``ports.Responder`` and ``ports.store.StoreUser`` with any ``Model`` and ``Tool``.

    Its journal is stored in memory unless ``with_store`` binds the assistant to a store.

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
        journal: the calls that wait for an answer, and the demands of the turn.
        sources: sources of tools that are known only at run time. A failed source costs a run only its own tools.
        skills: instructions that the model loads when it needs them, or that a caller requests.
        budget: the limit on the tokens of a prompt.
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
    journal: Journal = field(default_factory=Journal)
    skills: Sequence[Skill] = ()
    budget: ContextBudget = field(default_factory=ContextBudget)
    asks: bool = False
    max_tokens: int | None = None
    monotonic: Callable[[], float] = time.monotonic
    models: Mapping[str, Model] = field(default_factory=dict)

    def with_store(self, store: Store, depth: int = 0) -> "Assistant":
        """Return the same assistant, subagents included, with its approvals in ``store``."""
        tools = [tool.with_store(store, depth + 1) if isinstance(tool, Subagent) else tool for tool in self.tools]
        journal = self.journal.with_store(store, depth)
        return replace(self, tools=tuple(tools), journal=journal)

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        model, skill, ctx = self._choices(input.forwarded_props, ctx)
        journal = await self.journal.open(input, ctx)
        toolbox = await gather_tools(self._tools, self.sources, input.tools or (), self.monotonic, journal.ctx)
        gate = ToolGate(toolbox, journal, input)
        gate.refuse_lost_answers()
        end, ctx = await gate.start(), gate.ctx
        if end is not None:
            yield end
            return
        waiting: Sequence[CallNote] = ()
        must_wait, steps = gate.is_idle, count()
        prompt = self._prompt(input, gate, skill)
        window, media_reports = self.budget.open_window(model, prompt, ctx), MediaReports(prompt.messages)
        file_data = FileData(ctx)
        while not must_wait:
            check_step(next(steps), self.max_steps, ctx)
            prompt = self._with_offer(prompt, window, gate, skill)
            await window.fit()
            answer, messages = ModelTurn(ctx, media_reports), await file_data.inline(window.messages)
            sent = replace(prompt, messages=messages)
            with ModelCall(model, sent, ctx) as call:
                async with maybe_aclosing(model.stream(sent)) as deltas:
                    async for delta in deltas:
                        for event in answer.feed(delta):
                            yield event
                call.record_answer(answer)
            for event in answer.close():
                yield event
            window.add(answer.messages)
            window.snapshot()
            client_ids, own_calls = gate.toolbox.split_calls(answer.calls)
            made = await gate.make([CallNote(call) for call in own_calls])
            waiting = [note for note in made if note.result is None]
            results = [note.result.to_message(ctx.new_id(), note.id) for note in made if note.result is not None]
            for result in results:
                yield result_event(result)
            must_wait = bool(client_ids or waiting)
            if must_wait or not results:
                break
            window.add(results)
        async with journal.ending(waiting):
            yield finish_event(ctx, interrupts_of_calls(waiting))

    def _choices(self, props: object, ctx: RunContext) -> tuple[Model, SkillInvocation | None, RunContext]:
        """Return the model, the skill and the context of the caller's choice. Raises ``AppError`` VALIDATION_ERROR."""
        rules = with_demands(ctx.call_rules.with_policy(self.policy), props)
        limited = structs.replace(with_limits(ctx, RunLimits(tokens=self.max_tokens)), call_rules=rules)
        return chosen_model(props, self.models, self.model), requested_skill(props, self.skills), limited

    @property
    def only_answers(self) -> bool:
        return True

    def capabilities(self) -> AgentCapabilities:
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

    def _prompt(self, input: RunAgentInput, gate: ToolGate, skill: SkillInvocation | None) -> Prompt:
        ctx, dropped = gate.ctx, Counter[str]()
        history = gate.history()
        trusted = trusted_conversation(history, trust_instructions=self.trust_instructions, dropped=dropped)
        if counts := {kind: count for kind, count in dropped.items() if count}:
            ctx.logger.warning("history messages dropped %s", format_fields({"run": ctx.run_id, **counts}))
        messages: Sequence[Message] = skill.with_arguments(trusted, ctx.new_id) if skill else trusted
        if not gate.is_idle:
            messages = answerable(messages, [*input.messages, *gate.new_results])
        return Prompt(self._system(skill, gate.toolbox, input.context or ()), messages, gate.toolbox.specs)

    def _with_offer(self, prompt: Prompt, window: Window, gate: ToolGate, skill: SkillInvocation | None) -> Prompt:
        """Return the prompt with what the client has changed since the model call before."""
        latest = gate.ctx.offer.take() if gate.ctx.offer is not None else None
        if latest is None:
            return prompt
        tools, context = latest
        gate.toolbox = gate.toolbox.with_client(tools, gate.ctx)
        changed = replace(prompt, system=self._system(skill, gate.toolbox, context), tools=gate.toolbox.specs)
        window.count_prompt(changed)
        return changed

    def _system(self, skill: SkillInvocation | None, toolbox: Toolbox, context: Sequence[Context]) -> str:
        skills = (skill_list(self.skills), skill.section if skill else "")
        servers = tool_servers(toolbox.server.values(), toolbox.unavailable)
        return system_text(self.system_prompt, *skills, servers, application_context(context))

    @property
    def _tools(self) -> Sequence[Tool]:
        return *self.tools, *skill_tools(self.skills)

    def _custom(self) -> dict[str, object]:
        custom: dict[str, object] = {
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
    decision = policy(spec.name)
    if decision.permission is Permission.ALLOW:
        return spec
    details = {"policy": decision.permission.value, "category": decision.category, "reason": decision.reason}
    details = {name: value for name, value in details.items() if value is not None}
    return spec.model_copy(update={"metadata": {**(spec.metadata or {}), **details}})


_MODEL_NAME = TypeAdapter(StrictStr)


def chosen_model(props: object, models: Mapping[str, Model], default: Model) -> Model:
    """Only names in ``models`` can be chosen. Raises ``AppError`` VALIDATION_ERROR for any other name."""
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
