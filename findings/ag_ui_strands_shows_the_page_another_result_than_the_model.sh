#!/usr/bin/env bash
# ag-ui-strands 1.0.2 over strands-agents 1.62.0: a tool returns "1.10"; the model reads 1.10, and the page shows 1.1.
#
# A tool's text goes to the model as it is. For the page the adapter parses it as JSON, if need be with all apostrophes made
# quotes, and writes what it got as JSON again. So a version and a price lose their last digit, "null" is nothing at all,
# and every text that is no JSON is in quotes with escapes, like a string in a program. The page keeps that as the result.
# An agent that begins anew, as after a restart, reads it there in place of the tool's text. Objects only lose their spaces.
# Seen: "1.10": 1.1; "null": empty; 'It is "on".': "It is \"on\"."; an agent that begins with the page's messages reads the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-strands==1.0.2 strands-agents==1.62.0 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio

from ag_ui.core import MessagesSnapshotEvent, RunAgentInput, ToolCallResultEvent, UserMessage
from ag_ui_strands import StrandsAgent
from strands import Agent, tool
from strands.models import Model


class CallingModel(Model):
    """Calls the tool for the first message, and notes which results it reads."""

    read: list[str]

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *arguments, **options):
        raise NotImplementedError
        yield

    async def stream(self, messages, *arguments, **options):
        results = [block["toolResult"] for message in messages for block in message["content"] if "toolResult" in block]
        self.read = [str(part.get("text", part)) for result in results for part in result["content"]]
        yield {"messageStart": {"role": "assistant"}}
        if results:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Done."}}}
        else:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "call", "name": "look"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if results else "tool_use"}}


def agent(model: CallingModel, text: str) -> StrandsAgent:
    @tool
    async def look() -> str:
        """Look it up."""
        return text

    return StrandsAgent(agent=Agent(model=model, tools=[look], callback_handler=None), name="agent")


def request(run_id: str, messages: list) -> RunAgentInput:
    return RunAgentInput(
        thread_id="thread", run_id=run_id, state={}, messages=messages, tools=[], context=[], forwarded_props={}
    )


async def results(text: str) -> tuple[str, str, str]:
    """Return what the model reads, what the page gets, and what a model reads of the page's messages."""
    model = CallingModel()
    question = UserMessage(id="one", role="user", content="Look.")
    events = [event async for event in agent(model, text).run(request("run", [question]))]
    (shown,) = [event.content for event in events if isinstance(event, ToolCallResultEvent)]
    messages = [event.messages for event in events if isinstance(event, MessagesSnapshotEvent)][-1]
    restarted = CallingModel()
    again = UserMessage(id="two", role="user", content="And now?")
    async for _ in agent(restarted, text).run(request("next", [*messages, again])):
        pass
    return model.read[0], shown, restarted.read[0]


async def main() -> None:
    expected = {"1.10": "1.1", "null": "", 'It is "on".': '"It is \\"on\\"."', '{"total": 3}': '{"total":3}'}
    for text, shown in expected.items():
        seen = await results(text)
        print(f"tool {text!r}: model {seen[0]!r}, page {seen[1]!r}, next model {seen[2]!r}")
        assert seen == (text, shown, shown)


asyncio.run(main())
PYTHON
echo "as described"
