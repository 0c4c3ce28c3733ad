"""Adapter for a Pydantic AI ``Agent``, through the AG-UI adapter in ``pydantic-ai-slim[ag-ui]``.

Rules:
- Each run has its own AG-UI adapter. The agent has no state.
- The dependencies of a run are created here, so an agent with another ``deps_type`` is rejected at startup.
- Open interrupts are derived from the messages. A run that answers some must answer all, because the package drops an
  unanswered call without an error.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from itertools import dropwhile, takewhile
from typing import Any, get_args, get_origin

from ag_ui.core import AssistantMessage, Message, ResumeEntry, RunAgentInput, ToolMessage, UserMessage
from msgspec import Struct
from pydantic import ValidationError
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.ui import NativeEvent, StateDeps
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.ag_ui._utils import INTERRUPT_ID_PREFIX

from agui_container.agents.approvals.resume import answered_ids, call_ids
from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.frameworks.translation import awaits_client, check_events, filter_answers, with_last_results
from agui_container.ports import Agent, Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.aclosing import maybe_aclosing


def wrap(source: object, name: str) -> Agent:
    """Adapt a Pydantic AI agent.

    Raises:
        AgentLoadError: the agent needs dependencies that cannot be created here.
    """
    if not isinstance(source, AbstractAgent):
        raise AgentLoadError(f"'{name}' is not an agent of the installed Pydantic AI.")
    return PydanticAgent(source, _deps_factory(source.deps_type, name))


class PydanticAgent(Struct, frozen=True):
    """Implements ``ports.Agent``. ``dependencies`` creates the ``deps`` of one run."""

    agent: AbstractAgent[Any, Any]
    dependencies: Callable[[RunContext], object]

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the agent. Yield nothing until the client has sent all results of the last turn."""
        if awaits_client(input):
            return
        answered = with_answers(input, ctx)
        request = answered.model_copy(update={"messages": with_last_results(answered.messages)})
        adapter = AGUIAdapter(self.agent, request, include_usage=True)
        async with (
            maybe_aclosing(open_run(adapter, self.dependencies(ctx))) as native,
            maybe_aclosing(check_events(adapter.transform_stream(native), ctx)) as events,
        ):
            async for event in events:
                yield event


def open_run(adapter: AGUIAdapter[Any, Any], deps: object) -> AsyncIterator[NativeEvent]:
    """Start a run of the agent.

    Raises:
        AppError: VALIDATION_ERROR, if the state does not match the state type of the agent's deps.
    """
    try:
        return adapter.run_stream_native(deps=deps)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(map(str, ("state", *first["loc"])))
        raise AppError(ErrorCode.VALIDATION_ERROR, f"{field}: {first['msg']}") from None


def with_answers(input: RunAgentInput, ctx: RunContext) -> RunAgentInput:
    """Return the input with ``resume`` limited to answers to the open calls of its messages.

    Raises:
        AppError: VALIDATION_ERROR for a call that is answered twice or not at all, or an invalid answer.
    """
    if not input.resume:
        return input
    waiting = {f"{INTERRUPT_ID_PREFIX}{call_id}" for call_id in open_calls(input.messages)}
    answers = filter_answers(input.resume, waiting, ctx)
    if len(answers) < len(waiting):
        raise AppError(
            ErrorCode.VALIDATION_ERROR, "resume: the thread waits for more answers and results than were sent."
        )
    for answer in answers:
        check_approval(answer)
    return input.model_copy(update={"resume": answers or None})


def open_calls(messages: Sequence[Message]) -> set[str]:
    """Return the ids of the calls of the agent's last turn without a result. User messages may follow that turn."""
    latest_first = dropwhile(
        lambda message: not isinstance(message, AssistantMessage | ToolMessage), reversed(messages)
    )
    turn = list(takewhile(lambda message: not isinstance(message, UserMessage), latest_first))
    return call_ids(turn) - answered_ids(turn)


def check_approval(answer: ResumeEntry) -> None:
    """Raise ``AppError`` VALIDATION_ERROR for an answer that neither approves nor denies the call."""
    match answer.status, answer.payload:
        case ("cancelled", _) | (_, {"approved": True | False}):
            return
    raise AppError(ErrorCode.VALIDATION_ERROR, "resume: payload.approved must be true or false.")


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
