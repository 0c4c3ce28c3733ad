#!/usr/bin/env bash
# ag-ui-strands 1.0.2 over strands-agents 1.62.0: a model that throttles within an answer makes the page show the beginning of it twice.
#
# Strands asks a throttling model again, by default up to five times, also if a part of the answer has already been streamed.
# What it keeps is the last attempt alone. The adapter sends the text of each attempt into the same message, since nothing
# but a RAW event lies between, and writes the sum into MESSAGES_SNAPSHOT. The run succeeds. The page then sends that text
# with the next question, and the adapter rebuilds the history from it, so that the model reads it as its own.
# Seen: Strands "The dose is 10 mg."; events and snapshot "The dose is The dose is 10 mg.", and so does the model in the next run.
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
from strands import Agent, ModelRetryStrategy
from strands.models import Model
from strands.types.exceptions import ModelThrottledException

logging.disable(logging.CRITICAL)


class ThrottlingModel(Model):
    """Throttle the first answer after its beginning."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *arguments, **options):
        yield {}

    async def stream(self, messages, *arguments, **options):
        self.requests.append(["".join(part["text"] for part in message["content"]) for message in messages])
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": "The dose is "}}}
        if len(self.requests) == 1:
            raise ModelThrottledException("Too many tokens")
        yield {"contentBlockDelta": {"delta": {"text": "10 mg."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def throttled_agent() -> Agent:
    at_once = ModelRetryStrategy(max_attempts=2, initial_delay=0, max_delay=0)
    return Agent(model=ThrottlingModel(), callback_handler=None, retry_strategy=at_once)


async def events_of(agent: StrandsAgent, messages: list) -> list:
    run = RunAgentInput(
        thread_id="thread", run_id="run", messages=messages, tools=[], context=[], state={}, forwarded_props={}
    )
    return [event async for event in agent.run(run)]


async def main() -> None:
    alone = throttled_agent()
    kept = str(await alone.invoke_async("How much?")).strip()
    by_strands = throttled_agent()
    adapter = StrandsAgent(agent=by_strands, name="agent")
    events = await events_of(adapter, [UserMessage(id="1", content="How much?")])
    text = "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")
    thread = [event.messages for event in events if event.type == "MESSAGES_SNAPSHOT"][-1]
    await events_of(adapter, [*thread, UserMessage(id="2", content="Sure?")])
    request = by_strands.model.requests[-1]
    print(f"{kept = }\n{text = }\n{thread[-1].content = }\n{events[-1].outcome.type = }\n{request = }")
    assert kept == "The dose is 10 mg."
    assert text == thread[-1].content == "The dose is The dose is 10 mg."
    assert events[-1].outcome.type == "success"
    assert request == ["How much?", text, "Sure?"]


asyncio.run(main())
PYTHON
echo "as described"
