#!/usr/bin/env bash
# llama-index-core 0.14.25 beside pydantic 2.14.4: an agent that is run twice with one `Context` forgets the first run.
#
# Passing the same `Context` to each run is LlamaIndex's way to continue a conversation. The second run copies the context
# by serializing it. The serializer of stored messages passes its `info` to pydantic's handler, which since 2.14 takes only
# an index there and raises TypeError. A memory with a message in it then counts as "known unserializable" and is left out,
# with a warning but no error. pip installs this pair, because llama-index-core allows every pydantic from 2.8 on.
# Seen: the model gets 1 message in the second run with pydantic 2.14.4, and 3 messages with 2.13.5.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/check.py" <<'PYTHON'
import asyncio
import sys
import warnings

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.workflow import Context
from pydantic import VERSION
from pydantic_core import PydanticSerializationError

requests: list[list[str]] = []


class Model(MockFunctionCallingLLM):
    async def astream_chat_with_tools(self, tools, user_msg=None, chat_history=None, **options):
        requests.append([message.content for message in chat_history])

        async def answer():
            yield ChatResponse(message=ChatMessage(role="assistant", content="Hello."), delta="Hello.")

        return answer()

    def get_tool_calls_from_response(self, *arguments, **options):
        return []


def is_serializable() -> bool:
    memory = ChatMemoryBuffer.from_defaults()
    memory.put(ChatMessage(role="user", content="My name is Ada."))
    try:
        memory.to_dict()
    except PydanticSerializationError as error:
        print(str(error).partition(", got")[0])
        return False
    return True


async def main() -> None:
    agent = FunctionAgent(llm=Model())
    context = Context(agent)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await agent.run("My name is Ada.", ctx=context)
        await agent.run("What is my name?", ctx=context)
    names = {each.category.__name__ for each in caught}
    print(f"pydantic {VERSION}, the model gets:", requests)
    if sys.argv[1] == "forgets":
        assert requests == [["My name is Ada."], ["What is my name?"]]
        assert "UnserializableKeyWarning" in names
        assert not is_serializable()
    else:
        assert requests == [["My name is Ada."], ["My name is Ada.", "Hello.", "What is my name?"]]
        assert "UnserializableKeyWarning" not in names
        assert is_serializable()


asyncio.run(main())
PYTHON
python3 -m venv "$folder/venv"
install() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@" 2>/dev/null; }
install llama-index-core==0.14.25 llama-index-workflows==2.26.1 pydantic==2.14.4
"$folder/venv/bin/python" "$folder/check.py" forgets
install pydantic==2.13.5
"$folder/venv/bin/python" "$folder/check.py" remembers
echo "as described"
