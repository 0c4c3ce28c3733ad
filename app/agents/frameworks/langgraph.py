"""A compiled LangGraph graph, through ``ag-ui-langgraph``.

Rule: a fresh adapter for every run, because the package keeps the run's state in it. A graph without a checkpointer
gets one for the length of the run, because the package asks for the thread's state; its history is what clients send.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from ag_ui.core import RunAgentInput
from ag_ui_langgraph import LangGraphAgent
from langgraph.checkpoint.memory import InMemorySaver

from app.agents.frameworks.langgraph_events import LosslessGraph
from app.agents.frameworks.stream import checked, own
from app.ports import Agent, Item, RunContext


def wrap(source: object, name: str) -> Agent:
    """Serve a compiled graph, or a user's ``LangGraphAgent`` with its own settings."""
    if isinstance(source, LangGraphAgent):
        return GraphAgent(source)
    # Interrupts as AG-UI 1.0 has them. RAW events would repeat the graph's whole state beside every event.
    return GraphAgent(LangGraphAgent(name=name, graph=source, emit_interrupt_outcome=True, emit_raw_events=False))


@dataclass(frozen=True, slots=True)
class GraphAgent:
    """Implements ``ports.Agent``. Nodes and tools find the run's context in ``config["configurable"]["ctx"]``."""

    template: LangGraphAgent

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the graph."""
        return checked(self._adapter(ctx).run(own(input, ctx)), ctx)

    def _adapter(self, ctx: RunContext) -> LangGraphAgent:
        adapter = self.template.clone()
        adapter.config = {**adapter.config, "configurable": {**adapter.config.get("configurable", {}), "ctx": ctx}}
        graph = adapter.graph
        adapter.graph = LosslessGraph(graph if graph.checkpointer else graph.copy({"checkpointer": InMemorySaver()}))
        return adapter
