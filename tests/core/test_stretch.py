"""Deltas held as a stretch: each is given back as it was, from anywhere, and what they say is what was said."""

import pytest
from ag_ui.core import EventType
from hypothesis import given
from hypothesis import strategies as st
from orjson import dumps

from app.core.stretch import END, LONG, Stretch, joined
from tests.requirements import requirement

HEAD = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":'
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n}{,'), max_size=40)
LARGE = st.integers(0, 3 * LONG).map("x".__mul__)


def stretch_of(bursts: list[list[str]]) -> Stretch:
    made = Stretch(0, HEAD, EventType.TEXT_MESSAGE_CONTENT)
    for burst in bursts:
        made.fresh += burst
        assert made.take() == [HEAD + dumps(text) + END for text in burst]
        assert made.fresh == []
    return made


@requirement("attach.same", "speed.memory")
@given(st.data(), st.lists(st.lists(TEXTS | LARGE, min_size=1), min_size=1))
def test_each_is_given_back_as_it_was_from_anywhere(data: st.DataObject, bursts: list[list[str]]) -> None:
    made, texts = stretch_of(bursts), [text for burst in bursts for text in burst]
    whole = [HEAD + dumps(text) + END for text in texts]
    assert (made.count, made.text(), joined(["a", made, "b"])) == (len(texts), "".join(texts), f"a{''.join(texts)}b")
    for _ in range(3):
        after = data.draw(st.integers(0, len(texts) - 1))
        last = data.draw(st.integers(after + 1, len(texts) + 2))
        assert made.read(after, last) == whole[after:last]
        assert made.types(after, last) == [EventType.TEXT_MESSAGE_CONTENT] * len(whole[after:last])
    kept = data.draw(st.integers(1, len(texts)))
    made.cut(kept)
    assert (made.count, made.text(), made.read(0, kept)) == (kept, "".join(texts[:kept]), whole[:kept])


@requirement("attach.same", "speed.memory")
@pytest.mark.parametrize(
    "texts",
    [
        ['",', "x"],
        [",", ",", ","],
        ['"', ",", '"'],
        ["\\", "x"],
        ['\\",', '"'],
        ['","', '","'],
        ['{"a":', ' "b",', ' "c"', "}"],
        ["", "", ""],
        ["\u2028", "\U0001f600", "\x00"],
    ],
)
def test_what_looks_like_the_end_of_a_text_is_none(texts: list[str]) -> None:
    assert stretch_of([texts, texts[1:], texts]).text() == "".join([*texts, *texts[1:], *texts])


@requirement("speed.memory")
def test_what_was_not_gone_on_with_says_nothing() -> None:
    assert joined(["a", Stretch(0, HEAD, EventType.TEXT_MESSAGE_CONTENT), "b"]) == "ab"
