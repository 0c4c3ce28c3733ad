#!/usr/bin/env bash
# ag-ui-strands 1.0.2 over strands-agents 1.62.0: a graph gets neither the thread's history nor the page's tools, an agent gets both.
#
# `StrandsAgent` takes an agent, a `Graph` or a `Swarm`. For an agent it rebuilds the history from the messages of the
# request, and registers the tools that the page sends. A graph is called with the text of the last message, and each node
# begins anew. No event, no log and no exception says so, and the run ends with success.
# Seen: agent 3 messages and [pick] in the second run; graph 1 message and [], also when its only node is the same agent.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-strands==1.0.2 strands-agents==1.62.0 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio

from ag_ui.core import AssistantMessage, RunAgentInput, Tool, UserMessage
from ag_ui_strands import StrandsAgent
from strands import Agent
from strands.models import Model
from strands.multiagent import GraphBuilder

requests: list[tuple[list[str], list[str]]] = []


class AnsweringModel(Model):
    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *arguments, **options):
        raise NotImplementedError
        yield

    async def stream(self, messages, tool_specs=None, *arguments, **options):
        texts = [block["text"] for message in messages for block in message["content"]]
        requests.append((texts, [spec["name"] for spec in tool_specs or []]))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "Hello."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def agent() -> Agent:
    return Agent(name="writer", model=AnsweringModel(), callback_handler=None)


def graph():
    builder = GraphBuilder()
    builder.add_node(agent(), "writer")
    return builder.build()


async def second_request(served) -> tuple[list[str], list[str]]:
    requests.clear()
    adapter = StrandsAgent(agent=served, name="writer")
    said = [
        UserMessage(id="1", content="My name is Ada."),
        AssistantMessage(id="2", content="Hello."),
        UserMessage(id="3", content="What is my name?"),
    ]
    for run_id, messages in (("first", said[:1]), ("second", said)):
        run = RunAgentInput(
            thread_id="thread",
            run_id=run_id,
            messages=messages,
            tools=[Tool(name="pick", description="Let the user pick.", parameters={"type": "object", "properties": {}})],
            context=[],
            state={},
            forwarded_props={},
        )
        events = [event async for event in adapter.run(run)]
        assert events[-1].outcome.type == "success"
    return requests[1]


async def main() -> None:
    of_agent, of_graph = await second_request(agent()), await second_request(graph())
    print("agent:", of_agent)
    print("graph:", of_graph)
    assert of_agent == (["My name is Ada.", "Hello.", "What is my name?"], ["pick"])
    assert of_graph == (["What is my name?"], [])


asyncio.run(main())
PYTHON
echo "as described"
