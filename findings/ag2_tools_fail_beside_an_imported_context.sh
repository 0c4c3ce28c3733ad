#!/usr/bin/env bash
# ag2 1.2.1 over fast-depends 3.0.9: a script that imports AG-UI's `Context` can call no tool any more, neither its own nor the page's.
#
# AG2 annotates its inner functions with the text "Context". fast-depends resolves such a text with the local variables of
# all frames on the stack before it looks into AG2's own module, and the script that calls `asyncio.run` is on that stack.
# A class of the same name there takes the place of AG2's, whose argument is then "missing". The model is told of the
# error, and the run succeeds. With another name for the class (`import Context as Entry`) all is well.
# Seen: without the import: results ["found 1"], pending ["page"]; with it: no result, and "look" is pending as if the page had it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ag2[ag-ui]==1.2.1" fast-depends==3.0.9 ag-ui-protocol==1.0.0 2>/dev/null
cat >"$folder/check.py" <<'PYTHON'
import asyncio
import json
import logging
import sys

from ag2 import Agent, tool
from ag2.ag_ui import AGUIStream
from ag2.events import ToolCallEvent
from ag2.testing import TestConfig
from ag_ui.core import RunAgentInput, Tool, UserMessage

if sys.argv[1] == "with":
    from ag_ui.core import Context  # noqa: F401

logging.disable(logging.CRITICAL)


@tool
def look(number: int) -> str:
    """Look for a table."""
    return f"found {number}"


async def events_of(*answers: object) -> list[dict]:
    config = TestConfig(*answers, raise_tool_errors=False)
    run = RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=[UserMessage(id="1", content="Hello")],
        tools=[Tool(name="show", description="Show the page.", parameters={"type": "object", "properties": {}})],
        context=[],
        state={},
        forwarded_props={},
        protocol_version="1.0",
    )
    frames = [frame async for frame in AGUIStream(Agent("agent", config=config, tools=[look])).dispatch(run)]
    return [json.loads(frame.strip().removeprefix("data: ")) for frame in frames]


async def main() -> None:
    of_agent = await events_of(ToolCallEvent(name="look", arguments='{"number": 1}', id="look"), "Done.")
    of_page = await events_of(ToolCallEvent(name="show", arguments="{}", id="page"), "Done.")
    results = [event["content"] for event in of_agent if event["type"] == "TOOL_CALL_RESULT"]
    pending = [events[-1]["outcome"].get("pendingToolCallIds", []) for events in (of_agent, of_page)]
    print(f"{sys.argv[1]} the import: {results = }, {pending = }")
    if sys.argv[1] == "with":
        assert (results, pending) == ([], [["look"], []])
    else:
        assert (results, pending) == (["found 1"], [[], ["page"]])


asyncio.run(main())
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/check.py" without
"$folder/venv/bin/python" -W ignore "$folder/check.py" with
echo "as described"
