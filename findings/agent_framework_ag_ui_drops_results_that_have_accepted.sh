#!/usr/bin/env bash
# agent-framework-ag-ui 1.7.0 over agent-framework-core 1.23.0: a page's result that has a property `accepted` never reaches the model.
#
# The package asks for approvals with a call, whose answer is a result with `accepted`. It takes each result that is a JSON
# object with this name for such an answer, whatever the value is and whose call it was. An answer that fits no open approval
# is removed. So an invitation with {"accepted": 5, "declined": 1} is a call without a result, which models refuse or repeat.
# The run succeeds, and a warning speaks of a rejected approval. Other names, and `accepted` in a nested object, arrive as sent.
# Seen: "accepted" with true, 5 and null: roles user, assistant; "approved", and a nested "accepted": user, assistant, tool.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check agent-framework-ag-ui==1.7.0 agent-framework-core==1.23.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import json
import logging

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    ResponseStream,
)
from agent_framework_ag_ui import AgentFrameworkAgent

warnings: list[str] = []


class Warnings(logging.Handler):
    def emit(self, record):
        warnings.append(record.getMessage())


class Model(FunctionInvocationLayer, BaseChatClient):
    requests: list[list] = []

    def _inner_get_response(self, *, messages, options, stream, **_):
        self.requests.append(list(messages))

        async def answer():
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text("Thanks.")])

        return ResponseStream(answer(), finalizer=ChatResponse.from_updates)


async def roles_with(result: dict) -> tuple[list[str], str]:
    """Return the roles that the model reads, and the last event."""
    Model.requests.clear()
    call = {"id": "call", "type": "function", "function": {"name": "invite", "arguments": "{}"}}
    messages = [
        {"id": "1", "role": "user", "content": "Invite them."},
        {"id": "2", "role": "assistant", "toolCalls": [call]},
        {"id": "3", "role": "tool", "toolCallId": "call", "content": json.dumps(result)},
    ]
    tool = {"name": "invite", "description": "Ask all guests.", "parameters": {"type": "object", "properties": {}}}
    run = {"threadId": "thread", "runId": "run", "messages": messages, "tools": [tool]}
    events = [event async for event in AgentFrameworkAgent(Agent(client=Model())).run(run)]
    return [message.role for message in Model.requests[0]], events[-1].type.value


async def main() -> None:
    logging.getLogger().addHandler(Warnings())
    for value in (True, 5, None):
        dropped = await roles_with({"accepted": value, "declined": 1})
        print(f"accepted: {value}:", dropped)
        assert dropped == (["user", "assistant"], "RUN_FINISHED")
    for result in ({"approved": True}, {"answers": {"accepted": 5}}):
        passed = await roles_with(result)
        print(result, passed)
        assert passed == (["user", "assistant", "tool"], "RUN_FINISHED")
    print(warnings)
    assert warnings == ["Rejected approval response id=call: no matching approval occurrence"] * 3


asyncio.run(main())
PYTHON
echo "as described"
