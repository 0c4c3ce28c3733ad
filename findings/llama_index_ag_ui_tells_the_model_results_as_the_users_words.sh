#!/usr/bin/env bash
# llama-index-protocols-ag-ui 0.6.0: the model reads a front-end tool's call as text in tags, and its result as a message of the user.
#
# A thread with a call and its result is the usual second request after a front-end tool. `AGUIChatWorkflow` has no calls in
# its messages to the model. It writes `<tool_call>` tags into the assistant's text, and gives the result the role user. So a
# model sees a user who says "red", and an example of calling tools by text. The workflow itself gives the result of a tool of
# the server the role tool.
# Seen: roles user, assistant, user for the page's tool; user, assistant, tool for the server's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check llama-index-protocols-ag-ui==0.6.0 llama-index-core==0.14.25 ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio

from ag_ui.core import AssistantMessage, FunctionCall, RunAgentInput, ToolCall, ToolMessage, UserMessage
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.protocols.ag_ui.agent import AGUIChatWorkflow


class Model(MockFunctionCallingLLM):
    """Give the scripted answers. One that names a tool is a call of it."""

    answers: list[str]
    requests: list[list[tuple[str, str]]] = []

    async def astream_chat_with_tools(self, tools, user_msg=None, chat_history=None, **options):
        self.requests.append([(message.role.value, message.content) for message in chat_history])
        text = self.answers.pop(0)

        async def answer():
            yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)

        return answer()

    def get_tool_calls_from_response(self, response, *arguments, **options):
        is_call = response.message.content == "lookup"
        return [ToolSelection(tool_id="call", tool_name="lookup", tool_kwargs={})] if is_call else []


def lookup() -> str:
    """Look for the colour."""
    return "red"


async def last_request(messages: list, answers: list[str]) -> list[tuple[str, str]]:
    model = Model(answers=answers)
    fields = {"thread_id": "thread", "run_id": "run", "tools": [], "context": [], "state": {}, "forwarded_props": {}}
    run = RunAgentInput(messages=messages, **fields)
    await AGUIChatWorkflow(llm=model, backend_tools=[lookup]).run(input_data=run)
    return model.requests[-1]


async def main() -> None:
    question = UserMessage(id="1", content="Which colour?")
    call = AssistantMessage(id="2", tool_calls=[ToolCall(id="call", function=FunctionCall(name="pick", arguments="{}"))])
    result = ToolMessage(id="3", tool_call_id="call", content="red")
    of_page = await last_request([question, call, result], ["Red it is."])
    of_server = await last_request([question], ["lookup", "Red it is."])
    print("the page's tool:  ", of_page)
    print("the server's tool:", of_server)
    assert of_page == [
        ("user", "Which colour?"),
        ("assistant", "<tool_call><name>pick</name><arguments>{}</arguments></tool_call>"),
        ("user", "red"),
    ]
    assert of_server[-1] == ("tool", "red")


asyncio.run(main())
PYTHON
echo "as described"
