"""Every history becomes one that servers of the chat completions API take."""

import json
from typing import Any

import pytest
from ag_ui import core as ag
from hypothesis import given
from hypothesis import strategies as st

from agui_container.models.openai import OpenAIOptions
from agui_container.models.openai.opaque_fields import OpaqueFields
from agui_container.models.openai.request import PICTURES_TEXT, RequestFormat, request_of
from agui_container.ports import Prompt
from agui_container.ports.tool import USER_ONLY
from tests.models.histories import FOR_USER, IMAGE, PNG, URL, assistant, histories, result, user
from tests.models.openai.rules import broken_rules

OPAQUE = OpaqueFields("server model")
SILENCE = {"role": "assistant", "content": "(No answer was given.)"}
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}


def sent(*messages: ag.Message, reasoning_field: str | None = None) -> list[dict[str, Any]]:
    body = request_of("m", Prompt("", messages), OpenAIOptions(), RequestFormat(reasoning_field, OPAQUE)).body
    found: list[dict[str, Any]] = json.loads(body)["messages"]
    return found


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(number: int, arguments: str = "{}") -> dict[str, Any]:
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": "now", "arguments": arguments}}


def calls(*numbers: int, content: str | None = None, **fields: object) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields, "tool_calls": [call(number) for number in numbers]}


def answer(number: int, text: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call{number:05d}", "content": text}


def thought(text: str, sealed: str | None = None) -> ag.ReasoningMessage:
    return ag.ReasoningMessage(id="r", content=text, encrypted_value=sealed)


def shown(*pictures: object) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": PICTURES_TEXT}, *pictures]}


CONVERSATIONS: dict[str, tuple[list[ag.Message], list[dict[str, Any]]]] = {
    "a call without a result has an error": (
        [assistant(None, "x"), user()],
        [calls(1), answer(1, "Error: there is no result; the call was interrupted."), SILENCE, said("hi")],
    ),
    "the last result counts": (
        [assistant(None, "x"), result("x", "old"), result("x", "new")],
        [calls(1), answer(1, "new")],
    ),
    "system and developer messages stand where they are": (
        [ag.SystemMessage(id="s", content="One."), ag.DeveloperMessage(id="d", content="Two."), user()],
        [{"role": "system", "content": "One."}, {"role": "system", "content": "Two."}, said("hi")],
    ),
    "pictures of results come behind them": (
        [assistant(None, "x", "y"), result("x", [ag.TextPart(text="a"), IMAGE]), result("y", [IMAGE])],
        [calls(1, 2), answer(1, "a\n[picture 1]"), answer(2, "[picture 2]"), SILENCE, shown(PICTURE, PICTURE)],
    ),
    "what is for the user alone is left out": (
        [assistant(None, "x", "y"), result("x", [FOR_USER, ag.TextPart(text="a")]), result("y", [FOR_USER])],
        [calls(1, 2), answer(1, "a"), answer(2, USER_ONLY)],
    ),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation(name: str) -> None:
    messages, expected = CONVERSATIONS[name]
    assert sent(*messages) == expected


BLOCKS = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
EXTRA = {"google": {"thought_signature": "t"}}


def test_reasoning_and_opaque_fields_go_back_with_the_message_they_led_to() -> None:
    sealed = OPAQUE.seal({"thinking_blocks": BLOCKS})
    message = assistant(None, "x")
    assert message.tool_calls
    message.tool_calls[0].encrypted_value = OPAQUE.seal({"extra_content": EXTRA, "reasoning_details": [{"a": 1}]})
    asked, _ = sent(thought("Hm"), thought("So", sealed), message, result("x"), reasoning_field="reasoning")[:2]
    fields = {"reasoning": "Hm\nSo", "thinking_blocks": BLOCKS, "reasoning_details": [{"a": 1}]}
    assert asked == {**calls(1), **fields, "tool_calls": [{**call(1), "extra_content": EXTRA}]}


@pytest.mark.parametrize(
    "sealed",
    [None, "", "foreign", "openai..", OpaqueFields("other").seal({"thinking_blocks": BLOCKS}), OPAQUE.seal({"a": 1})],
)
def test_foreign_altered_and_malformed_values_are_not_sent(sealed: str | None) -> None:
    message = assistant(None, "x")
    assert message.tool_calls
    message.tool_calls[0].encrypted_value = sealed
    assert sent(thought("Hm", sealed), message, result("x"))[0] == calls(1)


@pytest.mark.parametrize(
    ("content", "error", "metadata", "text"),
    [
        ("half", "it broke", {}, "Error: half"),
        ("Error: it broke.", None, {"failed": True}, "Error: it broke."),
        ("it broke", None, {"failed": True}, "Error: it broke"),
        ("", "", {}, "Error: The tool failed."),
        ("it broke", None, {"failed": "no"}, "it broke"),
    ],
)
def test_a_failed_result_says_so_once(content: str, error: str | None, metadata: dict[str, Any], text: str) -> None:
    assert sent(assistant(None, "x"), result("x", content, error, **metadata))[1] == answer(1, text)


@pytest.mark.parametrize(
    ("arguments", "wire"),
    [("", "{}"), ('{"a":1}', '{"a":1}'), ("{", '{"invalid": "{"}'), ("[1]", '{"invalid": "[1]"}')],
)
def test_arguments_are_an_object(arguments: str, wire: str) -> None:
    (asked, _) = sent(assistant(None, "x", arguments=arguments), result("x"))
    assert asked["tool_calls"] == [call(1, wire)]


def data(value: str, mime_type: str) -> ag.DataSource:
    return ag.DataSource(value=value, mime_type=mime_type)


@pytest.mark.parametrize(
    ("part", "media"),
    [
        (ag.ImagePart(source=data("iVBORw0KGgo=", "image/PNG")), ("image_url", "data:image/png;base64,iVBORw0KGgo=")),
        (ag.AudioPart(source=data("c25k", "audio/mpeg")), ("input_audio", "mp3")),
        (ag.AudioPart(source=data("c25k", "audio/x-wav; rate=8000")), ("input_audio", "wav")),
        (ag.DocumentPart(source=data("cGRm", "application/pdf")), ("file", "data:application/pdf;base64,cGRm")),
        (ag.DocumentPart(source=data("77u/YnV5IG1pbGs=", "text/plain; charset=utf-8")), "buy milk"),
        (ag.DocumentPart(source=data("//4=", "text/plain")), None),
        (ag.DocumentPart(source=data("dA==", "application/zip")), None),
        (ag.DocumentPart(source=ag.FileSource(value="file-1")), None),
        (ag.ImagePart(source=data("dA==", "text/html")), None),
        (ag.AudioPart(source=data("b2dn", "audio/ogg")), None),
        (ag.VideoPart(source=data("dg==", "video/mp4")), None),
        (URL, None),
    ],
)
def test_media_of_a_user_are_sent_inline_or_named_as_left_out(
    part: ag.ContentPart, media: tuple[str, str] | str | None, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = sent(user([ag.TextPart(text="Look"), part]))
    if isinstance(media, tuple):
        kind, value = media
        assert message["content"][1]["type"] == kind
        assert value in json.dumps(message["content"][1])
    else:
        note = f"[{part.type} left out: this model cannot be given it]"
        assert message == said(f"Look\n{media or note}")
        assert len(caplog.records) == (media is None)


def test_text_that_is_no_unicode_is_sent_all_the_same() -> None:
    body = request_of("m", Prompt("a\ud800b", []), OpenAIOptions()).body
    assert json.loads(body)["messages"] == [{"role": "system", "content": "a?b"}]


seals = st.sampled_from([None, "", "foreign", OPAQUE.seal({"thinking_blocks": BLOCKS})])


@given(histories(seals), st.sampled_from([None, "reasoning_content"]))
def test_any_history_becomes_one_that_servers_take(history: list[ag.Message], reasoning_field: str | None) -> None:
    assert broken_rules({"messages": sent(*history, reasoning_field=reasoning_field)}) == []
