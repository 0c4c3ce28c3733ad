#!/usr/bin/env bash
# llama-index-protocols-ag-ui 0.6.0: whatever the schema of a front-end tool says, the model is told that its arguments are strings.
#
# `RunAgentInput.tools` carry JSON Schemas. `AGUIChatWorkflow` makes a pydantic class of each, and takes only the names,
# the descriptions and `required` into it. Numbers, booleans, lists and enums are lost without a message. A model that does
# as it is told sends "2" for 2 and text for a list, and a page that checks its arguments has to refuse them.
# Seen: integer, boolean, array and enum all arrive as string, optional ones as string or null; tools of the server keep theirs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check llama-index-protocols-ag-ui==0.6.0 llama-index-core==0.14.25 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio

from ag_ui.core import RunAgentInput, Tool, UserMessage
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.protocols.ag_ui.agent import AGUIChatWorkflow

told: dict[str, dict] = {}


class Model(MockFunctionCallingLLM):
    async def astream_chat_with_tools(self, tools, user_msg=None, chat_history=None, **options):
        for tool in tools:
            told[tool.metadata.name] = tool.metadata.to_openai_tool()["function"]["parameters"]

        async def answer():
            yield ChatResponse(message=ChatMessage(role="assistant", content="Hello."), delta="Hello.")

        return answer()

    def get_tool_calls_from_response(self, *arguments, **options):
        return []


def lookup(people: int) -> str:
    """Look for a free table."""
    return "Table 4"


def types_in(schema: dict) -> dict[str, list[str]]:
    return {
        name: [each["type"] for each in field.get("anyOf", [field])] for name, field in schema["properties"].items()
    }


async def main() -> None:
    properties = {
        "people": {"type": "integer", "minimum": 1},
        "outside": {"type": "boolean"},
        "dishes": {"type": "array", "items": {"type": "string"}},
        "room": {"type": "string", "enum": ["bar", "hall"]},
    }
    schema = {"type": "object", "properties": properties, "required": ["people", "room"]}
    run = RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=[UserMessage(id="1", content="Book a table.")],
        tools=[Tool(name="book", description="Book a table.", parameters=schema)],
        context=[],
        state={},
        forwarded_props={},
    )
    await AGUIChatWorkflow(llm=Model(), backend_tools=[lookup]).run(input_data=run)
    print("sent:", types_in(schema))
    print("told:", types_in(told["book"]))
    assert types_in(told["book"]) == {
        "people": ["string"],
        "outside": ["string", "null"],
        "dishes": ["string", "null"],
        "room": ["string"],
    }
    assert "enum" not in told["book"]["properties"]["room"]
    assert types_in(told["lookup"]) == {"people": ["integer"]}


asyncio.run(main())
PYTHON
echo "as described"
