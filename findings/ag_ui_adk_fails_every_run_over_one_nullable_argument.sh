#!/usr/bin/env bash
# ag-ui-adk 0.11.0 over google-adk 2.13.0: a page with one argument of the type ["string", "null"] gets no answer to anything.
#
# A list of types and a choice of numbers are plain JSON Schema. The adapter cleans the schemas of front-end tools for Gemini
# and passes both on, and the class for Gemini's schemas takes a single type and choices of strings alone. It does so when
# the tools are offered. Each run of such a page fails before the model is asked, whatever the user wants.
# Seen: list of types: RUN_ERROR "'list' object has no attribute 'upper'"; enum [1, 2]: RUN_ERROR "Input should be a valid string";
# neither asks the model. The same types as `anyOf`, and as an integer with a maximum: RUN_FINISHED and one request.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ag-ui-adk==0.11.0 google-adk==2.13.0 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging

from ag_ui.core import RunAgentInput, Tool, UserMessage
from ag_ui_adk import ADKAgent, AGUIToolset
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

logging.disable(logging.CRITICAL)
requests: list[list[str]] = []


class AnsweringModel(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        requests.append(list(request.tools_dict))
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hello.")]))


async def ending(thread: str, argument: dict) -> tuple[str, str, int]:
    """Return the type of the last event, its message and the number of requests to the model."""
    requests.clear()
    schema = {"type": "object", "properties": {"argument": argument}}
    agent = LlmAgent(name="agent", model=AnsweringModel(model="test"), tools=[AGUIToolset()])
    adapter = ADKAgent(adk_agent=agent, app_name="app", user_id="ada", use_in_memory_services=True)
    run = RunAgentInput(
        thread_id=thread,
        run_id="run",
        messages=[UserMessage(id="1", content="Hello")],
        tools=[Tool(name="book", description="Book a table.", parameters=schema)],
        context=[],
        state={},
        forwarded_props={},
    )
    events = [event async for event in adapter.run(run)]
    return events[-1].type.value, getattr(events[-1], "message", ""), len(requests)


async def main() -> None:
    nullable = await ending("list", {"type": ["string", "null"]})
    nullable_union = await ending("union", {"anyOf": [{"type": "string"}, {"type": "null"}]})
    choice = await ending("choice", {"type": "integer", "enum": [1, 2]})
    limited = await ending("limited", {"type": "integer", "maximum": 2})
    print("list of types:", nullable)
    print("anyOf:        ", nullable_union)
    print("enum [1, 2]:  ", choice)
    print("maximum:      ", limited)
    assert nullable == ("RUN_ERROR", "'list' object has no attribute 'upper'", 0)
    assert choice[0] == "RUN_ERROR"
    assert "Input should be a valid string" in choice[1]
    assert choice[2] == 0
    assert nullable_union == limited == ("RUN_FINISHED", "", 1)


asyncio.run(main())
PYTHON
echo "as described"
