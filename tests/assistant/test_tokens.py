"""Texts, messages and tools are counted as the model counts, or by an estimate that pictures cannot fool."""

import pytest
from ag_ui import core as ag
from hypothesis import given
from hypothesis import strategies as st

from agui_container.assistant.context_window.tokens import (
    MEDIA_TOKENS,
    CountedMessage,
    MessageTokenCounter,
    estimate_tokens,
)
from agui_container.assistant.context_window.window import counter_for
from agui_container.models.offline import OfflineModel

WORDS = MessageTokenCounter(lambda text: len(text.split()), per_message=0)
CALL = ag.ToolCall(id="c", function=ag.FunctionCall(name="add up", arguments='{"a": 1}'))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本", 2), ("\ud800", 1)])
def test_the_estimate_is_a_quarter_of_the_bytes(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_model_that_counts_is_taken_at_its_word() -> None:
    assert counter_for(OfflineModel()).count_message(ag.UserMessage(id="u", content="one two three")).tokens == 3


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (ag.UserMessage(id="m", content="one two"), 2),
        (ag.UserMessage(id="m", content=[ag.TextPart(text="one"), ag.TextPart(text="two")]), 2),
        (ag.SystemMessage(id="m", content="one two"), 2),
        (ag.AssistantMessage(id="m", content="one", tool_calls=[CALL]), 5),
        (ag.AssistantMessage(id="m"), 0),
        (ag.ReasoningMessage(id="m", content="one two", encrypted_value="three"), 2),
        (ag.ToolMessage(id="m", tool_call_id="c", content="one two"), 2),
        (ag.ActivityMessage(id="m", activity_type="x", content={"one": "two"}), 0),
    ],
)
def test_every_text_of_a_message_counts(message: ag.Message, tokens: int) -> None:
    assert WORDS.count_message(message) == CountedMessage(message, tokens)


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_a_picture_costs_the_same_whatever_its_size(size: int) -> None:
    picture = ag.ImagePart(source=ag.DataSource(value="A" * size, mime_type="image/png"))
    message = ag.UserMessage(id="m", content=[ag.TextPart(text="one"), picture])
    assert WORDS.count_message(message).tokens == 1 + MEDIA_TOKENS


@given(st.text(), st.integers(-2, 20))
def test_a_clipped_text_is_a_beginning_that_is_not_too_long(text: str, tokens: int) -> None:
    for counter in (MessageTokenCounter(), WORDS):
        clipped = counter.clip(text, tokens)
        assert text.startswith(clipped)
        assert counter.count(clipped) <= max(tokens, 0)
        assert clipped == text or counter.count(text) > tokens
