"""The thinking server is a judge, too: it reads prompts back as they were, and refuses what providers refuse."""

import json
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from agui_container.models.bedrock import BedrockOptions
from agui_container.models.bedrock.reasoning_signature import sign_text
from agui_container.models.bedrock.request import request_of
from agui_container.models.openai import request as openai_requests
from agui_container.models.openai.request import SILENCE, OpenAIOptions
from agui_container.ports import Prompt
from tests.contexts import client_tool
from tests.models.bedrock import reasoning as bedrock
from tests.models.bedrock.doubles import MODEL
from tests.models.openai import reasoning as openai
from tests.models.reasoning_server.watched_model import prompts_as_json

ARGUMENTS = '{"text": "Grüße"}'
CALL = ToolCall(id="c1", function=FunctionCall(name="echo", arguments=ARGUMENTS))
SEAL = sign_text(MODEL, "Hm.", bedrock.signature_of("Hm."))
CONVERSATION: list[Message] = [
    SystemMessage(id="s", content="Be quick."),
    UserMessage(id="u", content="hi"),
    ReasoningMessage(id="r", content="Hm.", encrypted_value=SEAL),
    AssistantMessage(id="a", content="Wait.", tool_calls=[CALL]),
    ToolMessage(id="t", tool_call_id="c1", content="Grüße"),
    UserMessage(id="v", content="one"),
    UserMessage(id="w", content="two"),
]
PROMPT = Prompt("Be kind.", CONVERSATION, [client_tool("echo")])


def prompt_rows(prompt: Prompt) -> list[tuple[str, ...]]:
    """Return the content of a prompt, without ids."""
    (said,) = prompts_as_json([prompt])
    rows = [(message["role"], message.get("content") or "") for message in said["messages"]]
    calls = [call["function"] for message in said["messages"] for call in message.get("toolCalls", ())]
    return [(said["system"], *said["tools"]), *rows, *((call["name"], call["arguments"]) for call in calls)]


def test_a_request_of_chat_completions_is_read_back() -> None:
    options = OpenAIOptions(reasoning_field=openai.REASONING)
    body = json.loads(openai_requests.request_of("m", PROMPT, options).body)
    assert openai.broken_rules(body) == []
    read = [row for row in prompt_rows(openai.prompt_of(body)) if row != ("assistant", SILENCE)]
    assert read == prompt_rows(PROMPT)


def test_a_request_of_converse_is_read_back() -> None:
    body = dict(request_of(MODEL, BedrockOptions(), PROMPT).body)
    assert bedrock.broken_rules(body) == []
    assert prompt_rows(bedrock.prompt_of(body)) == prompt_rows(PROMPT)


def test_a_signature_on_another_text_is_refused() -> None:
    body: Any = request_of(MODEL, BedrockOptions(), PROMPT).body
    (said,) = (message for message in body["messages"] if message["role"] == "assistant")
    said["content"][0]["reasoningContent"]["reasoningText"]["text"] = "Obey."
    (broken,) = bedrock.broken_rules(body)
    assert broken.startswith("not signed by the model")


def called(*ids: str) -> dict[str, object]:
    calls = [{"id": key, "type": "function", "function": {"name": "echo", "arguments": "{}"}} for key in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool_answer(key: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": key, "content": "x"}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([tool_answer("c1")], "a result without its call"),
        ([called("c1"), tool_answer("c1"), tool_answer("c1")], "a result without its call"),
        ([called("c1", "c2"), tool_answer("c1")], "calls without results"),
        ([called("c1"), {"role": "user", "content": "hi"}], "calls without results"),
        ([called("c1", "c1"), tool_answer("c1"), tool_answer("c1")], "ids of calls are unique"),
        ([{"role": "assistant", "content": None}], "an assistant says something"),
    ],
)
def test_requests_that_strict_servers_refuse_are_refused(messages: list[dict[str, object]], rule: str) -> None:
    assert any(broken.startswith(rule) for broken in openai.broken_rules({"messages": messages}))


def test_names_that_strict_servers_refuse_are_refused() -> None:
    offered = [{"type": "function", "function": {"name": name}} for name in ("ui/open", "echo", "echo")]
    broken = openai.broken_rules({"messages": [], "tools": offered})
    assert [rule.partition(":")[0] for rule in broken] == ["names of tools are unique", "not a name"]
