"""Reasoning comes back to Bedrock unchanged, or not at all."""

import pytest
from ag_ui.core import AssistantMessage, ReasoningMessage

from agui_container.models.bedrock.reasoning_signature import sign_redacted, sign_text, verify_reasoning
from agui_container.ports import EncryptedDelta, ReasoningDelta
from tests.models.bedrock.doubles import (
    ANSWER,
    END,
    METADATA,
    MODEL,
    START,
    BedrockModels,
    collect_deltas,
    prompt,
    text,
)
from tests.models.bedrock.server import BedrockServer

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


def test_a_sealed_value_does_not_name_the_model() -> None:
    assert MODEL not in sign_text(MODEL, "hm", "s") + sign_redacted(MODEL, b"x")


async def test_reasoning_goes_to_the_client_and_back_to_bedrock(wire: BedrockServer, bedrock: BedrockModels) -> None:
    pieces = [{"text": "Let me "}, {"text": "think."}, {"signature": SIGNATURE}]
    thinking = [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": one}}} for one in pieces]
    wire.will([START, *thinking, text("Yes.", 1), END, METADATA], ANSWER)
    model = bedrock()
    deltas = await collect_deltas(model.stream(prompt()))
    said = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    (value,) = [delta.value for delta in deltas if isinstance(delta, EncryptedDelta)]
    thought = ReasoningMessage(id="r", content=said, encrypted_value=value)
    await collect_deltas(model.stream(prompt("a", thought, _answer(), "b")))
    assert wire.requests[1]["messages"][1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "Let me think.", "signature": SIGNATURE}}},
        {"text": "Yes."},
    ]


def _answer() -> AssistantMessage:
    return AssistantMessage(id="a", content="Yes.")
