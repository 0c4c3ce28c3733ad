"""A Pydantic AI ``Agent``, through the AG-UI adapter in ``pydantic-ai-slim[ag-ui]``.

Rule: an adapter for every run, as the package has it; the agent itself keeps nothing. Its dependencies are made here,
so an agent is served only if their making is known. What waits for answers is read from the messages: a run that
answers leaves no call without an answer, because the package drops such a call and ends well.
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

from agui_container.agents.assistant.approvals.resume import answered_ids, call_ids
from agui_container.agents.custom.as_agent import AgentLoadError
from agui_container.agents.frameworks.translation import awaits_client, check_events, filter_answers
from agui_container.ports import Agent, Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.aclosing import maybe_aclosing


def wrap(source: object, name: str) -> Agent:
    """Serve a Pydantic AI agent.

    Raises:
        AgentLoadError: it wants dependencies that only its author can make.
    """
    if not isinstance(source, AbstractAgent):
        raise AgentLoadError(f"'{name}' is not an agent of the installed Pydantic AI.")
    return PydanticAgent(source, _dependencies(source.deps_type, name))


class PydanticAgent(Struct, frozen=True):
    """Implements ``ports.Agent``. ``dependencies`` makes the ``deps`` of one run."""

    agent: AbstractAgent[Any, Any]
    dependencies: Callable[[RunContext], object]

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the agent."""
        if awaits_client(input):
            return
        adapter = AGUIAdapter(self.agent, with_answers(input, ctx), include_usage=True)
        async with (
            maybe_aclosing(open_run(adapter, self.dependencies(ctx))) as native,
            maybe_aclosing(check_events(adapter.transform_stream(native), ctx)) as events,
        ):
            async for event in events:
                yield event


def open_run(adapter: AGUIAdapter[Any, Any], deps: object) -> AsyncIterator[NativeEvent]:
    """A run of the agent. Raises ``AppError`` VALIDATION_ERROR for a state that is not what the agent's deps hold."""
    try:
        return adapter.run_stream_native(deps=deps)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(map(str, ("state", *first["loc"])))
        raise AppError(ErrorCode.VALIDATION_ERROR, f"{field}: {first['msg']}") from None


def with_answers(input: RunAgentInput, ctx: RunContext) -> RunAgentInput:
    """The input with the answers to what its messages leave open, and no others.

    Raises:
        AppError: VALIDATION_ERROR for two answers to one call, one of another form, or a call without an answer.
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
    """The calls of the agent's last turn that have no result. Users may have spoken since."""
    said = dropwhile(lambda message: not isinstance(message, AssistantMessage | ToolMessage), reversed(messages))
    turn = list(takewhile(lambda message: not isinstance(message, UserMessage), said))
    return call_ids(turn) - answered_ids(turn)


def check_approval(answer: ResumeEntry) -> None:
    """Raises ``AppError`` VALIDATION_ERROR for an answer that says neither yes nor no."""
    match answer.status, answer.payload:
        case ("cancelled", _) | (_, {"approved": True | False}):
            return
    raise AppError(ErrorCode.VALIDATION_ERROR, "resume: payload.approved must be true or false.")


def _dependencies(wanted: object, name: str) -> Callable[[RunContext], object]:
    if wanted in (object, type(None)):
        return lambda _: None
    if get_origin(wanted) is StateDeps:
        (state,) = get_args(wanted)
        return lambda _: StateDeps(state())
    if callable(wanted) and _accepts_ctx(wanted):
        return lambda ctx: wanted(ctx=ctx)
    raise AgentLoadError(
        f"'{name}' has the deps_type {wanted}. Accepted are none, StateDeps[...] and what is made with (ctx=...); "
        "for others write a generator function that runs pydantic_ai.ui.ag_ui.AGUIAdapter with your deps."
    )


def _accepts_ctx(wanted: Callable[..., object]) -> bool:
    try:
        inspect.signature(wanted).bind(ctx=None)
    except (TypeError, ValueError):
        return False
    return True
