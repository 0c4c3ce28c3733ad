"""Every history becomes one that Bedrock takes."""

from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import DeveloperMessage, Message, ReasoningMessage, SystemMessage, ToolMessage
from hypothesis import given
from hypothesis import strategies as st

from agui_container.models.bedrock import BedrockOptions, CachePlace
from agui_container.models.bedrock.reasoning_signature import sign_redacted, sign_text, verify_reasoning
from agui_container.models.bedrock.request import request_of
from agui_container.ports.tool import USER_ONLY
from tests.models.bedrock.doubles import MODEL, prompt
from tests.models.bedrock.rules import broken_rules
from tests.models.histories import FOR_USER, IMAGE, URL, assistant, histories, names, result, user


def thought(text: str = "hm", sealed: str | None = None) -> ReasoningMessage:
    value = sign_text(MODEL, text, "signed") if sealed is None else sealed
    return ReasoningMessage(id="r", content=text, encrypted_value=value)


def request_messages(*messages: Message) -> list[tuple[str, list[Any]]]:
    """Roles and blocks as Bedrock gets them; nothing that it would refuse."""
    body = request_of(MODEL, BedrockOptions(), prompt(*messages)).body
    assert broken_rules(body) == []
    found: Any = body["messages"]
    return [(message["role"], message["content"]) for message in found]


def use(wire_id: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"toolUse": {"toolUseId": f"call0000{wire_id}", "name": "now", "input": arguments}}


def tool_result(wire_id: str, text: str = "done") -> dict[str, Any]:
    return {"toolResult": {"toolUseId": f"call0000{wire_id}", "content": [{"text": text}]}}


REASONING = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "signed"}}}
CONVERSATIONS: dict[str, tuple[Sequence[Message], list[tuple[str, list[Any]]]]] = {
    "reasoning keeps its place between texts and before a call": (
        [user(), thought(), assistant("one"), thought(), assistant("two", "1"), result("1")],
        [
            ("user", [{"text": "hi"}]),
            ("assistant", [REASONING, {"text": "one"}, REASONING, {"text": "two"}, use("1")]),
            ("user", [tool_result("1")]),
        ],
    ),
    "a call without a result is answered with the empty string": (
        [user(), assistant(None, "1", "2"), result("2"), user("well?")],
        [
            ("user", [{"text": "hi"}]),
            ("assistant", [use("1"), use("2")]),
            ("user", [tool_result("1", ""), tool_result("2"), {"text": "well?"}]),
        ],
    ),
    "redacted reasoning": (
        [user(), thought("", sign_redacted(MODEL, b"\0\1")), assistant("a"), user("b")],
        [
            ("user", [{"text": "hi"}]),
            ("assistant", [{"reasoningContent": {"redactedContent": b"\0\1"}}, {"text": "a"}]),
            ("user", [{"text": "b"}]),
        ],
    ),
    "a failed result has its text": (
        [user(), assistant(None, "1"), result("1", "half", error="It broke.")],
        [
            ("user", [{"text": "hi"}]),
            ("assistant", [use("1")]),
            (
                "user",
                [
                    {
                        "toolResult": {
                            "toolUseId": "call00001",
                            "content": [{"text": "half"}],
                            "status": "error",
                        }
                    }
                ],
            ),
        ],
    ),
}


@pytest.mark.parametrize(
    ("failed", "texts"),
    [
        (result("1", "Error: no such city.", failed=True, durationMs=3), ["Error: no such city."]),
        (result("1", "", failed=True), ["The tool failed."]),
        (result("1", "", error=""), ["The tool failed."]),
    ],
)
def test_a_result_that_says_that_it_failed_is_one_to_bedrock(failed: ToolMessage, texts: list[str]) -> None:
    _, _, (_, (block,)) = request_messages(user(), assistant(None, "1"), failed)
    content = [{"text": text} for text in texts]
    assert block == {"toolResult": {"toolUseId": "call00001", "content": content, "status": "error"}}


@pytest.mark.parametrize("metadata", [{}, {"durationMs": 3}, {"failed": False}, {"failed": "no"}])
def test_a_result_is_no_failure_for_its_words(metadata: dict[str, Any]) -> None:
    said = "Error: disk full (from yesterday's log)"
    _, _, (_, (block,)) = request_messages(user(), assistant(None, "1"), result("1", said, **metadata))
    assert block == tool_result("1", said)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation(name: str) -> None:
    messages, expected = CONVERSATIONS[name]
    assert request_messages(*messages) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a": [1.5, null]}', {"a": [1.5, None]}),
        ("", {}),
        ('{"a": ', {"invalid_json": '{"a": '}),
        ("[1]", {"invalid_json": "[1]"}),
        ('{"a": NaN}', {"invalid_json": '{"a": NaN}'}),
        ('{"a": [1e400]}', {"invalid_json": '{"a": [1e400]}'}),
        ('{"a": 1e300, "b": "1e400"}', {"a": 1e300, "b": "1e400"}),
        ("[" * 100_000, {"invalid_json": "[" * 100_000}),
    ],
)
def test_arguments_are_an_object_or_shown_as_they_are(arguments: str, expected: dict[str, Any]) -> None:
    _, (_, (block,)), _ = request_messages(user(), assistant(None, "1", arguments=arguments), result("1"))
    assert block["toolUse"]["input"] == expected


def test_media_in_results() -> None:
    turns = request_messages(
        user(),
        assistant(None, "1", "2", "3", "4"),
        result("1", [IMAGE]),
        result("2", [URL]),
        result("3", [IMAGE], "no"),
        result("4", [FOR_USER]),
    )
    first, second, third, fourth = (block["toolResult"] for block in turns[2][1])
    assert list(first["content"][0]) == ["image"]
    note = {"text": "[image left out: this model cannot be given it]"}
    assert second["content"] == [note]
    assert third["content"] == [note]
    assert fourth["content"] == [{"text": USER_ONLY}]


def test_system_and_developer_messages_join_the_system_prompt() -> None:
    kind, brief = SystemMessage(id="s", content="Be kind."), DeveloperMessage(id="d", content="Be brief.")
    body = request_of(MODEL, BedrockOptions(), prompt(kind, user(), brief, system="Be good.")).body
    assert body["system"] == [{"text": "Be good."}, {"text": "Be kind."}, {"text": "Be brief."}]


seals = st.sampled_from([None, "", "foreign", sign_text(MODEL, "a", "s"), sign_redacted(MODEL, b"x")])


@given(histories(seals), st.lists(names, max_size=3), st.sets(st.sampled_from(CachePlace)))
def test_any_history_becomes_one_that_bedrock_takes(
    history: list[Message], tools: list[str], cache: set[CachePlace]
) -> None:
    options = BedrockOptions(cache=frozenset(cache))
    asked = prompt(*history, tools=tools)
    body = request_of(MODEL, options, asked).body
    assert broken_rules(body) == []
    assert body == request_of(MODEL, options, asked).body


LLAMA, MISTRAL = "us.meta.llama3-2-90b-instruct-v1:0", "mistral.mistral-large-2402-v1:0"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"


def sent_turns(model_id: str, *, split_turns: bool | None = None) -> list[tuple[str, list[Any]]]:
    """Return what a model is sent of a turn with text and a call, whose results are followed by the user's text."""
    conversation = prompt(user(), assistant("ok", "1"), result("1"), user("never mind"))
    body: Any = request_of(model_id, BedrockOptions(split_turns=split_turns), conversation).body
    assert broken_rules(body) == []
    return [(message["role"], message["content"]) for message in body["messages"]]


MIXED = [
    ("user", [{"text": "hi"}]),
    ("assistant", [{"text": "ok"}, use("1")]),
    ("user", [tool_result("1"), {"text": "never mind"}]),
]
SPLIT = [
    ("user", [{"text": "hi"}]),
    ("assistant", [{"text": "ok"}]),
    ("user", [{"text": "(Tools are called.)"}]),
    ("assistant", [use("1")]),
    ("user", [tool_result("1")]),
    ("assistant", [{"text": "(No answer was given.)"}]),
    ("user", [{"text": "never mind"}]),
]


@pytest.mark.parametrize("model_id", [LLAMA, MISTRAL, f"arn:aws:bedrock:us-east-1::foundation-model/{LLAMA[3:]}"])
def test_models_that_take_no_text_beside_calls_and_results_get_them_apart(model_id: str) -> None:
    assert sent_turns(model_id) == SPLIT
    assert sent_turns(model_id, split_turns=False) == MIXED


def test_other_models_get_text_beside_calls_and_results_unless_the_operator_says_otherwise() -> None:
    assert sent_turns(MODEL) == sent_turns(PROFILE) == MIXED
    assert sent_turns(PROFILE, split_turns=True) == SPLIT


def test_reasoning_stays_with_its_call_or_its_text() -> None:
    conversation = prompt(user(), thought(), assistant("ok"), user(), thought(), assistant("ok", "1"), result("1"))
    body: Any = request_of(MODEL, BedrockOptions(split_turns=True), conversation).body
    assert broken_rules(body) == []
    said = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    assert said == [[REASONING, {"text": "ok"}], [{"text": "ok"}], [REASONING, use("1")]]


SIGNATURE = "a.b/c+d==ü"


def test_a_signature_comes_back_with_its_text() -> None:
    sealed = sign_text(MODEL, "hm", SIGNATURE)
    assert verify_reasoning(MODEL, "hm", sealed) == {"reasoningText": {"text": "hm", "signature": SIGNATURE}}


def test_redacted_content_comes_back_whatever_the_text() -> None:
    sealed = sign_redacted(MODEL, bytes(range(256)))
    assert (
        verify_reasoning(MODEL, "", sealed)
        == verify_reasoning(MODEL, "hm", sealed)
        == {"redactedContent": bytes(range(256))}
    )


@pytest.mark.parametrize(
    ("model", "said", "sealed"),
    [
        (MODEL, "hm", None),
        (MODEL, "hm", ""),
        (MODEL, "hm", "gAAAAABfrom-another-provider"),
        (MODEL, "hm", "bedrock-text"),
        (MODEL, "hm", "bedrock-text.."),
        (MODEL, "hm", "bedrock-other." + sign_text(MODEL, "hm", "s").partition(".")[2]),
        (MODEL, "hm", sign_text(MODEL, "hm", "")),
        (MODEL, "hmm", sign_text(MODEL, "hm", "s")),
        ("another.model", "hm", sign_text(MODEL, "hm", "s")),
        ("another.model", "", sign_redacted(MODEL, b"x")),
        (MODEL, "", sign_redacted(MODEL, b"x") + "?"),
        (MODEL, "", sign_redacted(MODEL, b"")),
    ],
)
def test_foreign_altered_and_malformed_signatures_are_dropped(model: str, said: str, sealed: str | None) -> None:
    assert verify_reasoning(model, said, sealed) is None
