#!/usr/bin/env bash
# ag-ui-strands 1.0.2 over strands-agents 1.62.0: a swarm whose agent fails ends with the outcome `success`, a graph with RUN_ERROR.
#
# The same agent, whose model cannot be reached, is the only node of a `Swarm` and of a `Graph`. The graph raises the model's
# exception. The swarm raises nothing: it returns a result with the status `failed`. The adapter ends a run by exceptions
# alone and does not look at that result, so only a CUSTOM event `MultiAgentNodeStatus` tells a client of the failure.
# Seen: plain swarm `failed`, plain graph RuntimeError; by AG-UI RUN_FINISHED with `success`, and RUN_ERROR.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-strands==1.0.2 strands-agents==1.62.0 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging

from ag_ui.core import RunAgentInput, UserMessage
from ag_ui_strands import StrandsAgent
from strands import Agent
from strands.models import Model
from strands.multiagent import GraphBuilder, Swarm

logging.disable(logging.CRITICAL)


class UnreachableModel(Model):
    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *arguments, **options):
        raise RuntimeError("the model cannot be reached")
        yield

    async def stream(self, *arguments, **options):
        raise RuntimeError("the model cannot be reached")
        yield


def writer() -> Agent:
    return Agent(name="writer", model=UnreachableModel(), callback_handler=None)


def swarm() -> Swarm:
    return Swarm([writer()])


def graph():
    builder = GraphBuilder()
    builder.add_node(writer(), "writer")
    return builder.build()


async def plain(orchestrator) -> str:
    try:
        return (await orchestrator.invoke_async("Hello")).status.value
    except RuntimeError as error:
        return type(error).__name__


async def by_ag_ui(orchestrator) -> tuple[list[str], str, str | None]:
    run = RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=[UserMessage(id="1", content="Hello")],
        tools=[],
        context=[],
        state={},
        forwarded_props={},
    )
    events = [event async for event in StrandsAgent(agent=orchestrator, name="team").run(run)]
    statuses = [event.value["status"] for event in events if event.type == "CUSTOM" and event.name == "MultiAgentNodeStatus"]
    outcome = getattr(events[-1], "outcome", None)
    return statuses, events[-1].type.value, outcome.type if outcome else None


async def main() -> None:
    of_swarm = await plain(swarm()), await by_ag_ui(swarm())
    of_graph = await plain(graph()), await by_ag_ui(graph())
    print("swarm:", of_swarm)
    print("graph:", of_graph)
    assert of_swarm == ("failed", (["failed"], "RUN_FINISHED", "success"))
    assert of_graph == ("RuntimeError", (["failed"], "RUN_ERROR", None))


asyncio.run(main())
PYTHON
echo "as described"
