"""A compiled LangGraph graph, through ``ag-ui-langgraph``.

Rule: a fresh adapter for every run, because the package keeps the run's state in it. A graph without a checkpointer
gets one for the length of the run, because the package asks for the thread's state; its history is what clients send.
What a checkpoint waits for is looked up before the run, so that each answer goes to the interrupt that it names.
"""

import logging
from collections.abc import AsyncGenerator, Sequence

from ag_ui.core import Interrupt, Message, MessagesSnapshotEvent, ResumeEntry, RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent
from ag_ui_langgraph.interrupts import DEFAULT_RESUME_SENTINEL_CANCELLED
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from msgspec import Struct

from app.agents.frameworks.answers import named
from app.agents.frameworks.langgraph_events import LosslessGraph
from app.agents.frameworks.stream import awaits_client, checked, own, thread_of
from app.closing import closing
from app.core.errors import AppError, Code
from app.ports import Agent, Item, RunContext

HOOKS = ("_interrupts_to_agui", "_build_command_from_agui_resume")
"""How a user's own adapter names interrupts and gives their answers. Who does either has ids of its own."""

logger = logging.getLogger(__name__)


def wrap(source: object, name: str) -> Agent:
    """Serve a compiled graph, or a user's ``LangGraphAgent`` with its own settings."""
    if isinstance(source, LangGraphAgent):
        return GraphAgent(source)
    # Interrupts as AG-UI 1.0 has them. RAW events would repeat the graph's whole state beside every event.
    return GraphAgent(LangGraphAgent(name=name, graph=source, emit_interrupt_outcome=True, emit_raw_events=False))


class GraphAgent(Struct, frozen=True):
    """Implements ``ports.Agent`` and ``ports.Rememberer``.

    Nodes and tools find the run's context in ``config["configurable"]["ctx"]``.
    """

    template: LangGraphAgent

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the graph."""
        check_form(input)
        if awaits_client(input):
            return
        adapter = self._adapter(ctx)
        waiting = await self._waiting(adapter, thread_of(ctx.caller.owner, input.thread_id))
        later = [message for message in input.messages if waiting.unheard(message)]
        answers = named(input.resume or (), {interrupt.id for interrupt in waiting.interrupts}, ctx)
        said = [message for message in input.messages if not waiting.unheard(message)]
        if input.resume and not answers and not waiting.interrupts and {each.id for each in said} <= waiting.heard:
            return  # answered already, and nothing new is said: the graph would begin again
        request = own(input.model_copy(update={"resume": answers or None, "messages": said}), ctx, waiting.heard)
        async with closing(checked(adapter.run(request), ctx)) as events:
            async for event in events:
                yield with_messages(event, later) if later else event

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        """Delete its checkpoints. Raises what the checkpointer raises, unless that cannot do it at all."""
        if self.template.graph.checkpointer:
            try:
                await self.template.graph.checkpointer.adelete_thread(thread_of(owner, thread_id))
            except NotImplementedError:
                logger.warning("thread=<%s> | its checkpoints stay: the checkpointer cannot delete a thread", thread_id)

    async def _waiting(self, adapter: LangGraphAgent, thread: str) -> "Waiting":
        if not self.template.graph.checkpointer:
            return Waiting()
        config = {"configurable": {**adapter.config["configurable"], "thread_id": thread}}
        state = await adapter.graph.aget_state(config)
        interrupts = adapter._interrupts_to_agui(adapter._collect_interrupts(state.tasks))  # noqa: SLF001 - as it asks
        return Waiting(interrupts, frozenset(str(message.id) for message in state.values.get("messages", ())))

    def _adapter(self, ctx: RunContext) -> LangGraphAgent:
        adapter = self.template.clone()
        adapter.config = {**adapter.config, "configurable": {**adapter.config.get("configurable", {}), "ctx": ctx}}
        graph = adapter.graph
        adapter.graph = LosslessGraph(graph if graph.checkpointer else graph.copy({"checkpointer": InMemorySaver()}))
        if all(getattr(type(adapter), hook) is getattr(LangGraphAgent, hook) for hook in HOOKS):
            adapter._build_command_from_agui_resume = by_interrupt  # noqa: SLF001 - made to be replaced
        return adapter


class Waiting(Struct, frozen=True):
    """What a checkpoint waits for.

    Attributes:
        interrupts: those that are open.
        heard: ids of the messages that the graph has.
    """

    interrupts: Sequence[Interrupt] = ()
    heard: frozenset[str] = frozenset()

    def unheard(self, message: Message) -> bool:
        """Whether a user has said this meanwhile. It would come between a call and its result, which models refuse."""
        return bool(self.interrupts) and isinstance(message, UserMessage) and message.id not in self.heard


def with_messages(event: Item, later: Sequence[Message]) -> Item:
    """A snapshot with what the graph has not heard yet, because a client takes what is missing there for deleted."""
    if not isinstance(event, MessagesSnapshotEvent):
        return event
    return event.model_copy(update={"messages": [*event.messages, *later]})


def by_interrupt(entries: Sequence[ResumeEntry], **_: object) -> Command[str]:
    """Each answer to the interrupt that it names. The package would answer whichever is open, and several with none."""
    return Command(resume={entry.interrupt_id: answer_of(entry) for entry in entries})


def answer_of(entry: ResumeEntry) -> object:
    """What ``interrupt()`` gives: the payload, or the package's own mark of an answer that was refused."""
    if entry.status == "resolved":
        return entry.payload
    return {DEFAULT_RESUME_SENTINEL_CANCELLED: True, "interrupt_id": entry.interrupt_id}


def check_form(input: RunAgentInput) -> None:
    """Raises ``AppError`` VALIDATION_ERROR for what the package takes for granted to be an object."""
    for field, value in (("state", input.state), ("forwardedProps", input.forwarded_props)):
        if value and not isinstance(value, dict):
            raise AppError(Code.VALIDATION_ERROR, f"{field}: must be an object for this agent.")
