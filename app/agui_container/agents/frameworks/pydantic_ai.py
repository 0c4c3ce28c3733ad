"""Adapter for a Pydantic AI ``Agent``, through the AG-UI adapter in ``pydantic-ai-slim[ag-ui]``.

Rules:
- Each run has its own AG-UI adapter. The agent has no state.
- The dependencies of a run are created here, so an agent with another ``deps_type`` is rejected at startup.
- Open interrupts are derived from the messages. A run that answers some must answer all, because the package (2.68)
  drops an unanswered call, and only the log says so.
- A model that cuts a call's arguments off is asked again, as often as the agent's ``retries`` allow. The package (2.68)
  gives the tools of a client no retries, so that such a call would end the run.
"""

import dataclasses
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import cached_property
from typing import Any, get_args, get_origin

from ag_ui.core import AssistantMessage, ResumeEntry, RunAgentInput, ToolMessage
from msgspec import Struct
from pydantic import ValidationError
from pydantic_ai import RunContext as CallContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import FunctionToolCallEvent
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_ai.ui import NativeEvent, StateDeps
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.ag_ui._utils import INTERRUPT_ID_PREFIX

from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.file_data import FileData
from agui_container.agents.frameworks.translation import awaits_client, check_events, filter_answers
from agui_container.ports import Agent, Item, RunContext
from agui_container.ports.agent import maybe_aclosing
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_core.turns import unanswered_in_last_turn, with_results


def wrap(source: object, name: str) -> Agent:
    """Raise ``AgentLoadError`` if the agent needs dependencies that cannot be created here."""
    if not isinstance(source, AbstractAgent):
        raise AgentLoadError(f"'{name}' is not an agent of the installed Pydantic AI.")
    return PydanticAgent(source, _deps_factory(source.deps_type, name))


class PydanticAgent(Struct, frozen=True):
    """Implements ``ports.Agent``. ``dependencies`` creates the ``deps`` of one run."""

    agent: AbstractAgent[Any, Any]
    dependencies: Callable[[RunContext], object]

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Yield nothing until the client has sent all results of the last turn."""
        if awaits_client(input):
            return
        answered = with_answers(input, ctx)
        messages = with_results(answered.messages, lambda call: [call.result] if call.result else [])
        request = answered.model_copy(update={"messages": await FileData(ctx).inline(messages)})
        adapter = RetryingAdapter(self.agent, request, include_usage=True)
        async with (
            maybe_aclosing(record_started(open_run(adapter, self.dependencies(ctx)), ctx)) as native,
            maybe_aclosing(check_events(adapter.transform_stream(native), ctx)) as events,
        ):
            async for event in events:
                yield event


class RetryingAdapter(AGUIAdapter[Any, Any]):
    @cached_property
    def toolset(self) -> AbstractToolset[Any] | None:
        client_tools = super().toolset
        return client_tools and RetriedToolset(client_tools)


class RetriedToolset(WrapperToolset[Any]):
    """Tools with the retries of the agent."""

    async def get_tools(self, ctx: CallContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        return {name: dataclasses.replace(tool, max_retries=ctx.max_retries) for name, tool in tools.items()}


def open_run(adapter: AGUIAdapter[Any, Any], deps: object) -> AsyncIterator[NativeEvent]:
    """Raise ``AppError`` VALIDATION_ERROR if the state does not match the state type of the agent's deps."""
    try:
        return adapter.run_stream_native(deps=deps)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(map(str, ("state", *first["loc"])))
        raise validation_error(f"{field}: {first['msg']}") from None


async def record_started(native: AsyncIterator[NativeEvent], ctx: RunContext) -> AsyncGenerator[NativeEvent, None]:
    """Pass on the events of a run, and record which of the agent's own tools start. The gate records the server's."""
    async with maybe_aclosing(native) as events:
        async for event in events:
            if isinstance(event, FunctionToolCallEvent) and event.args_valid and event.part.tool_name not in ctx.tools:
                ctx.turn.started_calls.add(event.part.tool_call_id)
            yield event


def with_answers(input: RunAgentInput, ctx: RunContext) -> RunAgentInput:
    """Return the input with ``resume`` limited to answers to open calls. Raises ``AppError`` VALIDATION_ERROR."""
    if not input.resume:
        return input
    answers = [at for at, each in enumerate(input.messages, 1) if isinstance(each, AssistantMessage | ToolMessage)]
    unanswered = unanswered_in_last_turn(input.messages[: max(answers, default=0)])  # the user may have written since
    waiting = {f"{INTERRUPT_ID_PREFIX}{call.id}" for call in unanswered}
    entries = filter_answers(input.resume, waiting, ctx)
    if len(entries) < len(waiting):
        raise AppError(
            ErrorCode.VALIDATION_ERROR, "resume: the thread waits for more answers and results than were sent."
        )
    for entry in entries:
        check_approval(entry)
    return input.model_copy(update={"resume": entries or None})


def check_approval(answer: ResumeEntry) -> None:
    match answer.status, answer.payload:
        case ("cancelled", _) | (_, {"approved": True | False}):
            return
    raise validation_error("resume: payload.approved must be true or false.")


def _deps_factory(deps_type: object, name: str) -> Callable[[RunContext], object]:
    if deps_type in (object, type(None)):
        return lambda _: None
    if get_origin(deps_type) is StateDeps:
        (state,) = get_args(deps_type)
        return lambda _: StateDeps(state())
    if callable(deps_type) and _accepts_ctx(deps_type):
        return lambda ctx: deps_type(ctx=ctx)
    raise AgentLoadError(
        f"'{name}' has the deps_type {deps_type}. Accepted are none, StateDeps[...] and what is made with (ctx=...); "
        "for others write a generator function that runs pydantic_ai.ui.ag_ui.AGUIAdapter with your deps."
    )


def _accepts_ctx(deps_type: Callable[..., object]) -> bool:
    try:
        inspect.signature(deps_type).bind(ctx=None)
    except (TypeError, ValueError):
        return False
    return True
