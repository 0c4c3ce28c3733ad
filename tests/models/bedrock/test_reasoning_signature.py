"""Reasoning comes back to Bedrock unchanged, or not at all."""

import pytest

from agui_container.models.bedrock.reasoning_signature import sign_redacted, sign_text, verify_reasoning
from tests.models.bedrock.doubles import MODEL

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
