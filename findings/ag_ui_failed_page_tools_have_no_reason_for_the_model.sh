#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47, ag-ui-strands 1.0.2 and pydantic-ai-slim 2.68.0: why a page's tool has failed is told to no model.
#
# A `ToolMessage` of AG-UI has `content`, and `error` for the message of a call that failed. All three adapters read `error`
# as a yes or no: they mark the result as failed and send `content` alone. A page that fills each field with what it is for,
# and so leaves the content of a failed call empty, gives the model a failure without a reason. The model can only call again
# or guess. Nothing is logged, and a page that repeats the error in `content` is understood.
# Seen: error "The table is taken.", content "": "" from all three, as "error" or "failed"; the words occur in no request.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-protocol==1.0.0 ag-ui-langgraph==0.0.47 \
  langgraph==1.2.24 ag-ui-strands==1.0.2 strands-agents==1.62.0 "pydantic-ai-slim[ag-ui]==2.68.0" 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging

from ag_ui.core import AssistantMessage, FunctionCall, RunAgentInput, Tool, ToolCall, ToolMessage, UserMessage
from ag_ui_langgraph import LangGraphAgent
from ag_ui_strands import StrandsAgent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from strands import Agent
from strands.models import Model

logging.disable(logging.CRITICAL)
seen: dict[str, list] = {}


def node(state):
    seen["langgraph"] = state["messages"]
    return {"messages": [("ai", "Sorry.")]}


async def answer(messages, _):
    seen["pydantic-ai"] = messages
    yield "Sorry."


class TestModel(Model):
    def update_config(self, **options):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *arguments, **options):
        raise NotImplementedError
        yield

    async def stream(self, messages, *arguments, **options):
        seen["strands"] = list(messages)
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": "Sorry."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


async def main() -> None:
    call = ToolCall(id="call", function=FunctionCall(name="book", arguments="{}"))
    messages = [
        UserMessage(id="1", content="Book a table."),
        AssistantMessage(id="2", tool_calls=[call]),
        ToolMessage(id="3", tool_call_id="call", content="", error="The table is taken."),
    ]
    tools = [Tool(name="book", description="Book a table.", parameters={"type": "object", "properties": {}})]
    fields = {"tools": tools, "context": [], "state": {}, "forwarded_props": {}}
    run = RunAgentInput(thread_id="thread", run_id="run", messages=messages, **fields)
    graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile(checkpointer=InMemorySaver())
    for events in (
        LangGraphAgent(name="agent", graph=graph).run(run),
        StrandsAgent(agent=Agent(model=TestModel(), callback_handler=None), name="agent").run(run),
        AGUIAdapter(PydanticAgent(FunctionModel(stream_function=answer)), run).run_stream(),
    ):
        assert [event.type async for event in events][-1] == "RUN_FINISHED"
    from_langgraph, from_pydantic = seen["langgraph"][-1], seen["pydantic-ai"][-1].parts[-1]
    from_strands = seen["strands"][-1]["content"][-1]["toolResult"]
    print("langgraph:  ", (from_langgraph.content, from_langgraph.status))
    print("strands:    ", (from_strands["content"], from_strands["status"]))
    print("pydantic-ai:", (from_pydantic.content, from_pydantic.outcome))
    assert (from_langgraph.content, from_langgraph.status) == ("", "error")
    assert (from_strands["content"], from_strands["status"]) == ([{"text": ""}], "error")
    assert (from_pydantic.content, from_pydantic.outcome) == ("", "failed")
    assert len(seen) == 3 and "taken" not in str(seen)


asyncio.run(main())
PYTHON
echo "as described"
