#!/usr/bin/env bash
# ag-ui-adk 0.11.0 over google-adk 2.13.0: "try again" and an edited message give an empty run that succeeds, and of two new messages one is lost.
#
# A page repeats a question by sending the thread up to it once more, and its `messages` are the thread by AG-UI's rules.
# The adapter keeps a thread of its own and looks for message ids that it has not seen. Without one it ends the run at
# once, whatever the text of the message is now. Of several new messages of the user the last alone reaches the model, and
# what the page has cut off stays there. Key by key, the state has the same rule: what the page deletes comes back.
# Seen: repeated and edited: RUN_STARTED, RUN_FINISHED, no request to the model; [one, two]: the model reads "two" behind the old turn.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-adk==0.11.0 google-adk==2.13.0 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging

from ag_ui.core import RunAgentInput, UserMessage
from ag_ui_adk import ADKAgent
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

logging.disable(logging.CRITICAL)
requests: list[list[str]] = []


class AnsweringModel(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        requests.append([part.text for content in request.contents for part in content.parts])
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hello.")]))


async def run(adapter: ADKAgent, run_id: str, state: dict, **texts: str) -> tuple[list[str], dict | None]:
    """Return the types of the events and the state at the end. ``texts`` are the user's messages by their ids."""
    request = RunAgentInput(
        thread_id="thread",
        run_id=run_id,
        messages=[UserMessage(id=id_, content=text) for id_, text in texts.items()],
        tools=[],
        context=[],
        state=state,
        forwarded_props={},
    )
    events = [event async for event in adapter.run(request)]
    snapshots = [event.snapshot for event in events if event.type == "STATE_SNAPSHOT"]
    return [event.type.value for event in events], snapshots[-1] if snapshots else None


async def main() -> None:
    agent = LlmAgent(name="agent", model=AnsweringModel(model="test"))
    adapter = ADKAgent(adk_agent=agent, app_name="app", user_id="ada", use_in_memory_services=True)
    first, _ = await run(adapter, "first", {"city": "Ulm", "date": "today"}, a="Weather?")
    repeated, _ = await run(adapter, "repeated", {}, a="Weather?")
    edited, _ = await run(adapter, "edited", {}, a="Weather tomorrow?")
    two, state = await run(adapter, "two", {"city": "Ulm"}, b="one", c="two")
    print("first:   ", first)
    print("repeated:", repeated)
    print("edited:  ", edited)
    print("the model gets:", requests)
    print("state:", state)
    assert "TEXT_MESSAGE_CONTENT" in first
    assert repeated == edited == ["RUN_STARTED", "RUN_FINISHED"]
    assert "TEXT_MESSAGE_CONTENT" in two
    assert requests == [["Weather?"], ["Weather?", "Hello.", "two"]]
    assert state["date"] == "today"


asyncio.run(main())
PYTHON
echo "as described"
