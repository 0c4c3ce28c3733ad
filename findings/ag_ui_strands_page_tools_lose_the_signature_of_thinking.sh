#!/usr/bin/env bash
# ag-ui-strands 1.0.2 over strands-agents 1.62.0: a model that thinks before it calls a page's tool gets its call back without the signed thinking.
#
# Claude on Bedrock signs its thinking, and wants the signed block in front of the call when the result comes. Strands keeps
# it and sends it back with the result of a tool of the server. The result of a page's tool is a second run, for which the
# adapter rebuilds the agent's history from AG-UI's messages, in the same process too. AG-UI has a place for signatures,
# REASONING_ENCRYPTED_VALUE. The adapter sends it for redacted thinking alone. `replay_history_into_strands=False` keeps the
# signature, as long as the same process has the thread.
# Seen: server's tool: reasoningContent with "signature", toolUse; page's tool: toolUse, and no REASONING_ENCRYPTED_VALUE.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-strands==1.0.2 strands-agents==1.62.0 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging

from ag_ui.core import RunAgentInput, Tool, ToolMessage, UserMessage
from ag_ui_strands import StrandsAgent, StrandsAgentConfig
from strands import Agent, tool
from strands.models import Model

logging.disable(logging.CRITICAL)


class ThinkingModel(Model):
    """Think, call the tool `pick`, then answer."""

    def __init__(self) -> None:
        self.requests: list[list[dict]] = []

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *arguments, **options):
        yield {}

    async def stream(self, messages, *arguments, **options):
        self.requests.append([dict(message) for message in messages])
        yield {"messageStart": {"role": "assistant"}}
        if len(self.requests) > 1:
            yield {"contentBlockDelta": {"delta": {"text": "Red it is."}}}
        else:
            yield {"contentBlockDelta": {"delta": {"reasoningContent": {"text": "Which one?"}}}}
            yield {"contentBlockDelta": {"delta": {"reasoningContent": {"signature": "signed"}}}}
            yield {"contentBlockStop": {}}
            yield {"contentBlockStart": {"start": {"toolUse": {"name": "pick", "toolUseId": "call"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if len(self.requests) > 1 else "tool_use"}}


@tool
def pick() -> str:
    """Pick a color."""
    return "red"


async def run(agent: Agent, tools: list[Tool], *, replays: bool = True) -> list[str]:
    """Return the types of all events. Answer the call if it is the page's."""
    config = StrandsAgentConfig(replay_history_into_strands=replays)
    adapter = StrandsAgent(agent=agent, name="agent", config=config)
    messages, types = [UserMessage(id="1", content="Pick one.")], []
    while not messages[-1].role == "assistant":
        fields = {"context": [], "state": {}, "forwarded_props": {}}
        request = RunAgentInput(thread_id="thread", run_id=str(len(messages)), messages=messages, tools=tools, **fields)
        events = [event async for event in adapter.run(request)]
        assert events[-1].outcome.type == "success"
        types += [event.type.value for event in events]
        messages = [event.messages for event in events if event.type == "MESSAGES_SNAPSHOT"][-1]
        if messages[-1].role == "assistant" and messages[-1].tool_calls:
            messages = [*messages, ToolMessage(id="result", tool_call_id="call", content="red")]
    return types


async def main() -> None:
    server, page, unreplayed = (Agent(model=ThinkingModel(), tools=own, callback_handler=None) for own in ([pick], [], []))
    page_tool = Tool(name="pick", description="Pick a color.", parameters={"type": "object", "properties": {}})
    await run(server, [])
    types = await run(page, [page_tool])
    await run(unreplayed, [page_tool], replays=False)
    by_server, by_page, by_process = (agent.model.requests[1][1]["content"] for agent in (server, page, unreplayed))
    print(f"{by_server = }\n{by_page = }\n{by_process = }\n{types = }")
    thinking = {"reasoningContent": {"reasoningText": {"text": "Which one?", "signature": "signed"}}}
    call = {"toolUse": {"toolUseId": "call", "name": "pick", "input": {}}}
    assert by_server == by_process == [thinking, call]
    assert by_page == [call]
    assert "REASONING_MESSAGE_CONTENT" in types
    assert "REASONING_ENCRYPTED_VALUE" not in types


asyncio.run(main())
PYTHON
echo "as described"
