#!/usr/bin/env bash
# llama-index-protocols-ag-ui 0.6.0: once the model has called a tool of the server, it is offered none of the page's tools any more.
#
# `AGUIChatWorkflow` adds the tools of the `RunAgentInput` to the first request of a run alone. Each request after the
# result of a server's tool has only those that the constructor got. So "look for a table, then book it" cannot be done when
# only the page defines `book`. It can when the server repeats the definition as `frontend_tools`.
# Seen: offered [lookup, book], then [lookup]; with `frontend_tools` [book, lookup] both times.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check llama-index-protocols-ag-ui==0.6.0 llama-index-core==0.14.25 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio

from ag_ui.core import RunAgentInput, Tool, UserMessage
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.protocols.ag_ui.agent import AGUIChatWorkflow

offered: list[list[str]] = []


class Model(MockFunctionCallingLLM):
    """Call `lookup` first, then answer."""

    async def astream_chat_with_tools(self, tools, user_msg=None, chat_history=None, **options):
        offered.append([tool.metadata.name for tool in tools])
        text = "Looking." if len(offered) == 1 else "Done."

        async def answer():
            yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)

        return answer()

    def get_tool_calls_from_response(self, response, *arguments, **options):
        is_call = response.message.content == "Looking."
        return [ToolSelection(tool_id="call", tool_name="lookup", tool_kwargs={})] if is_call else []


def lookup() -> str:
    """Look for a free table."""
    return "Table 4"


def book() -> str:
    """Book a table."""
    return ""


async def tools_offered(**options) -> list[list[str]]:
    offered.clear()
    run = RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=[UserMessage(id="1", content="Look for a table, then book it.")],
        tools=[Tool(name="book", description="Book a table.", parameters={"type": "object", "properties": {}})],
        context=[],
        state={},
        forwarded_props={},
    )
    await AGUIChatWorkflow(llm=Model(), backend_tools=[lookup], **options).run(input_data=run)
    return list(offered)


async def main() -> None:
    by_page = await tools_offered()
    by_server = await tools_offered(frontend_tools=[book])
    print("`book` is in the input:          ", by_page)
    print("`book` is in the constructor too:", by_server)
    assert by_page == [["lookup", "book"], ["lookup"]]
    assert by_server == [["book", "lookup"], ["book", "lookup"]]


asyncio.run(main())
PYTHON
echo "as described"
