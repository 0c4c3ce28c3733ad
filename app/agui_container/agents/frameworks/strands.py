"""Adapter for a Strands ``Agent``, ``Graph`` or ``Swarm``, through ``ag-ui-strands``.

Rules:
- Each thread has its own ``StrandsAgent``. The package's adapter (1.0) never drops the agent of a thread. With one
  adapter per thread, a thread's agent is dropped together with everything that the package stores for it.
- One run at a time uses a thread's adapter. The engine frees a thread when the readers have seen the end of its run, so
  the next run may have to wait until the agent of the previous run is closed.
- A ``Graph`` or ``Swarm`` is one object that has the state of its run. All threads share it, one run at a time.
- A model call that throttles within its answer ends the run. Strands (1.62) would repeat the call, and the client would
  read the beginning of the answer twice.
- The number of adapters is bounded. Only unused ones are evicted, the least recently used first.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ag_ui.core import CustomEvent, RunAgentInput, RunFinishedEvent
from ag_ui_strands import StrandsAgent
from msgspec import Struct
from strands.hooks import AfterToolCallEvent, AgentInitializedEvent, BeforeToolCallEvent, HookProvider, HookRegistry
from strands.middleware import InvokeModelContext, InvokeModelStage
from strands.multiagent import MultiAgentBase
from strands.types.exceptions import ModelThrottledException

from agui_container.agents.file_data import FileData
from agui_container.agents.frameworks.per_thread import PerThread
from agui_container.agents.frameworks.translation import (
    TOOL_FAILED,
    FrameworkError,
    awaits_client,
    check_events,
    own_input,
)
from agui_container.log_values import format_fields
from agui_container.ports import Agent, Item, RunContext, RunInterrupted, thread_key
from agui_container.ports.agent import maybe_aclosing
from agui_container.protocol.errors import AppError, ErrorCode

logger = logging.getLogger(__name__)

SHARED = "shared"
"""Name of the only adapter of a ``Graph`` or ``Swarm``."""

INTERRUPTED = "agui_interrupted"
"""Key in ``invocation_state`` of the list to which the server's tools append their interrupts."""

THROTTLED = "agui_throttled"
"""Key in ``invocation_state`` of the list to which calls that throttled within their answer append the run's error."""

OTHERS = "agui_others"
"""Key in ``invocation_state`` of the names of tools that are not the agent's own."""


def wrap(source: object, _: str) -> Agent:
    if isinstance(source, StrandsAgent):
        source._hooks.append(AgentHook())  # noqa: SLF001 - it makes its agents with these, and not with the template's
        return StrandsThreads(PerThread(lambda: source))
    adapter = make_adapter(source)  # An unsupported agent raises at startup.
    if isinstance(source, MultiAgentBase):
        return StrandsThreads(PerThread(lambda: adapter), lambda _: SHARED)
    return StrandsThreads(PerThread(lambda: make_adapter(source)))


def make_adapter(agent: object) -> StrandsAgent:
    if isinstance(agent, MultiAgentBase):
        equip_nodes(agent)
        return StrandsAgent(agent=agent, name="agent")
    return StrandsAgent(agent=agent, name=str(getattr(agent, "name", "agent")), hooks=[AgentHook()])


class AgentHook(HookProvider):  # type: ignore[misc]  # Strands has an environment of its own
    """Adds ``end_if_throttled`` to an agent, records the start of a tool, and replaces the text of its exception.

    Strands (1.62) sends that text to the client.
    """

    def register_hooks(self, registry: HookRegistry, **_: object) -> None:
        registry.add_callback(AgentInitializedEvent, add_middleware)
        registry.add_callback(BeforeToolCallEvent, record_started)
        registry.add_callback(AfterToolCallEvent, self.hide_text)

    def hide_text(self, event: AfterToolCallEvent) -> None:
        if event.exception is not None:
            logger.warning("tool failed %s", format_fields({"tool": event.tool_use["name"]}), exc_info=event.exception)
            event.result = {**event.result, "content": [{"text": TOOL_FAILED}]}


def add_middleware(event: AgentInitializedEvent) -> None:
    event.agent.add_middleware(InvokeModelStage, end_if_throttled)


def record_started(event: BeforeToolCallEvent) -> None:
    """Record that a tool of the agent's own starts. The gate records those of the server, and a client runs its own."""
    state = event.invocation_state
    if event.tool_use["name"] not in state.get(OTHERS, ()):
        state["ctx"].turn.started_calls.add(event.tool_use["toolUseId"])


async def end_if_throttled(
    context: InvokeModelContext, call: Callable[[InvokeModelContext], AsyncGenerator[Any, None]]
) -> AsyncGenerator[Any, None]:
    """Call the model. If it throttles within its answer, raise an error for which Strands does not repeat the call."""
    has_output = False
    try:
        async for event in call(context):
            has_output = has_output or "contentBlockDelta" in event.get("event", ())
            yield event
    except ModelThrottledException as error:
        if not has_output:
            raise
        busy = AppError(ErrorCode.MODEL_THROTTLED, "The model is busy. Try again later.")
        context.invocation_state[THROTTLED].append(busy)
        raise busy from error


@contextmanager
def prefer_errors(errors: Sequence[AppError]) -> Iterator[None]:
    """Raise the first of ``errors``, if there is one, in place of a ``FrameworkError``."""
    try:
        yield
    except FrameworkError as error:
        if errors:
            raise errors[0] from error
        raise


def equip_nodes(orchestrator: MultiAgentBase) -> None:
    for node in orchestrator.nodes.values():
        if isinstance(node.executor, MultiAgentBase):
            equip_nodes(node.executor)
        else:
            node.executor.hooks.add_hook(AgentHook())
            node.executor.add_middleware(InvokeModelStage, end_if_throttled)


def failed_node(event: object) -> str | None:
    """Return the node of a ``Swarm`` that failed. The package (1.0) ends such a run as if nothing had happened."""
    match event:
        case CustomEvent(name="MultiAgentNodeStatus", value={"status": "failed", "node_id": node}):
            return str(node)
    return None


class StrandsThreads(Struct, frozen=True):
    """Implements ``ports.Agent``, ``ports.ThreadCleanup``. The context is in ``invocation_state["ctx"]``."""

    adapters: PerThread[StrandsAgent]
    place: Callable[[str], str] = str
    """Returns the name under which the adapter of a thread is kept."""

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Yield nothing until the client has sent all results of the last turn."""
        if awaits_client(input):
            return
        files = FileData(ctx)
        messages = await files.inline(input.messages)
        request = own_input(input.model_copy(update={"messages": messages}), ctx)
        interrupted: list[RunInterrupted] = []
        others = {*ctx.tools, *(tool.name for tool in input.tools or ())}
        throttled: list[AppError] = []
        state = {"ctx": ctx, INTERRUPTED: interrupted, OTHERS: others, THROTTLED: throttled}
        with prefer_errors(throttled):
            async with (
                self.adapters.acquire(self.place(request.thread_id)) as adapter,
                maybe_aclosing(check_events(adapter.run(request, invocation_state=state), ctx)) as events,
            ):
                failed = None
                async for event in events:
                    failed = failed or failed_node(event)
                    if failed is not None and isinstance(event, RunFinishedEvent):
                        raise FrameworkError(SHARED, f"node {failed} failed")
                    if not interrupted:  # the result of the call that waits, and the end of the agent
                        yield files.with_handles(event)
        if interrupted:
            # The agent's messages end with a call without a result. A new one begins with the client's messages.
            self.adapters.drop(request.thread_id)
            raise interrupted[-1]

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        """A user's own ``StrandsAgent`` cannot drop an agent."""
        self.adapters.drop(thread_key(owner, thread_id))
