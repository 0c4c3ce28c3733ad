#!/usr/bin/env bash
# pydantic-ai-slim 2.68.0: a call whose arguments are cut JSON is tried again if the tool is the server's, and ends the run if it is the page's.
#
# Models now and then stop within a call's arguments. Pydantic AI tells them so and asks again, as often as the agent's
# `retries` allow. Its AG-UI adapter puts the page's tools into a toolset whose limit is always 0. The error advises to raise
# the limit, and `Agent(retries=3)` changes nothing for them. Arguments that break the page's schema are not checked at all:
# the page gets them, while a tool of the server has them sent back to the model.
# Seen: cut: server 2 requests, RUN_FINISHED; page 1 request, RUN_ERROR "max retries count of 0"; of a wrong type: 2 and 1, both RUN_FINISHED.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "pydantic-ai-slim[ag-ui]==2.68.0" ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import logging

from ag_ui.core import RunAgentInput, Tool, UserMessage
from pydantic_ai import Agent
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter

logging.disable(logging.CRITICAL)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def forecast(city: str) -> str:
    return f"Sun in {city}"


async def run(json_args: str, *, is_server: bool) -> tuple[int, str, str | None]:
    """Return the number of requests to the model, and the type and the message of the last event."""
    requests = 0

    async def answers(messages, info):
        nonlocal requests
        requests += 1
        yield {0: DeltaToolCall(name="forecast", json_args=json_args, tool_call_id="call")} if requests == 1 else "Sun."

    agent = Agent(FunctionModel(stream_function=answers), tools=[forecast] if is_server else [], retries=3)
    page_tools = [] if is_server else [Tool(name="forecast", description="Show the weather.", parameters=SCHEMA)]
    request = RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=[UserMessage(id="1", content="Will it rain in Bonn?")],
        tools=page_tools,
        context=[],
        state={},
        forwarded_props={},
    )
    events = [event async for event in AGUIAdapter(agent=agent, run_input=request).run_stream()]
    return requests, events[-1].type.value, getattr(events[-1], "message", None)


async def main() -> None:
    cut, wrong_type = '{"city": "Bonn', '{"city": 53111}'
    cut_server, cut_page = await run(cut, is_server=True), await run(cut, is_server=False)
    wrong_server, wrong_page = await run(wrong_type, is_server=True), await run(wrong_type, is_server=False)
    print(f"{cut_server = }\n{cut_page = }\n{wrong_server = }\n{wrong_page = }")
    assert cut_server == wrong_server == (2, "RUN_FINISHED", None)
    assert cut_page[:2] == (1, "RUN_ERROR")
    assert "exceeded max retries count of 0. Consider raising the retry limit" in cut_page[2]
    assert wrong_page == (1, "RUN_FINISHED", None)


asyncio.run(main())
PYTHON
echo "as described"
