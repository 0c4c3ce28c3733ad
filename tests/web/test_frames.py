"""Frames of SSE and of a WebSocket: cursors, sizes, adjacent deltas that merge without loss, and a browser's token."""

import base64
import json
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    ReasoningMessageContentEvent,
    RunAgentInput,
    TextMessageContentEvent,
    ToolCallArgsEvent,
)

from agui_container.ports import Item, RunContext
from agui_container.protocol.encoder import encode
from agui_container.protocol.envelope import Envelope, parse_cursor
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.web.caller_middleware import BEARER_PROTOCOL
from agui_container.web.websocket_output import MERGED_BYTES, make_frames
from tests.conftest import Serve
from tests.engine.doubles import Json, agent_of, ask
from tests.protocol.samples import TRICKY
from tests.secret_search import planted
from tests.web.sockets import begin_run
from tests.websocket import receive, send


def envelope(seq: int, event: BaseEvent) -> Envelope:
    return Envelope("r1", seq, event.type, encode(event))


def deltas(*texts: str, key: str = "m", start: int = 1) -> list[Envelope]:
    events = [TextMessageContentEvent(message_id=key, delta=text) for text in texts]
    return [envelope(seq, event) for seq, event in enumerate(events, start)]


def read(envelopes: list[Envelope], *, with_seq: bool = False) -> list[Json]:
    return [json.loads(frame) for frame in make_frames(envelopes, with_seq=with_seq)]


@pytest.mark.parametrize("text", ["x" * 5_000, "token ", "\N{GRINNING FACE}\n", "\x00" * 1_000])
def test_merging_stops_where_a_frame_would_grow_too_large_and_not_before(text: str) -> None:
    texts = [text] * (20 * 5_000 // len(text))
    merged = [frame.encode() for frame in make_frames(deltas(*texts), with_seq=False)]
    assert all(len(frame) <= MERGED_BYTES for frame in merged)
    assert all(len(frame) + len(json.dumps(text)) > MERGED_BYTES for frame in merged[:-1])
    assert "".join(json.loads(frame)["delta"] for frame in merged) == "".join(texts)


def text_event(delta: str, **fields: object) -> BaseEvent:
    return TextMessageContentEvent.model_validate({"messageId": "m", "delta": delta, **fields})


LOOK_LIKE_JSON = (
    '","delta":"x"}',
    '"}',
    "\\",
    'a\\"',
    '\\",',
    ',"metadata":{"a":1}',
    '{"delta":"x"}',
    '"rawEvent":',
    TRICKY,
)
STREAMS: dict[str, tuple[list[BaseEvent], list[str | None]]] = {
    "one stream": ([text_event("a"), text_event("b"), text_event("c")], ["abc"]),
    "texts that look like JSON": ([text_event(each) for each in LOOK_LIKE_JSON], ["".join(LOOK_LIKE_JSON)]),
    "other times": ([text_event("a", timestamp=1), text_event("b", timestamp=2), text_event("c")], ["abc"]),
    "a field of the agent's own": ([text_event("a", own={"delta": "x"}), text_event("b", own={"delta": "x"})], ["ab"]),
    "other values of that field": ([text_event("a", own="x"), text_event("b", own="y")], ["a", "b"]),
    "another message": ([text_event("a"), text_event("b", messageId='m","delta":"x')], ["a", "b"]),
    "another subagent": ([text_event("a", subagentRunId="s"), text_event("b")], ["a", "b"]),
    "metadata": ([text_event("a"), text_event("b", metadata={"k": 1}), text_event("c")], ["a", "b", "c"]),
    "an event of the provider": ([text_event("a", rawEvent="x"), text_event("b", rawEvent="x")], ["a", "b"]),
    "an event between": (
        [text_event("a"), CustomEvent(name="n", value={"delta": "x"}), text_event("b")],
        ["a", None, "b"],
    ),
    "another type": ([text_event("a"), ReasoningMessageContentEvent(message_id="m", delta="b")], ["a", "b"]),
    "arguments": ([ToolCallArgsEvent(tool_call_id="c", delta=each) for each in ("{", "}")], ["{}"]),
}


@pytest.mark.parametrize(("events", "deltas"), STREAMS.values(), ids=STREAMS)
def test_adjacent_deltas_of_one_stream_are_one_frame(events: list[BaseEvent], deltas: list[str | None]) -> None:
    envelopes = [envelope(seq, event) for seq, event in enumerate(events, 1)]
    frames = read(envelopes)
    assert [frame.get("delta") for frame in frames] == deltas
    assert frames[0] == {**json.loads(encode(events[0])), "delta": deltas[0]}
    assert read(envelopes, with_seq=True)[-1]["metadata"]["seq"] == len(events)


@pytest.mark.parametrize(
    ("text", "seq"), [(None, 0), ("", 0), ("0", 0), ("7", 7), ("007", 7), ("9" * 15, int("9" * 15))]
)
def test_a_cursor_is_a_whole_number(text: str | None, seq: int) -> None:
    assert parse_cursor(text) == seq


@pytest.mark.parametrize("text", ["x", "-1", "1.5", " 1", "+1", "1e3", "\N{ARABIC-INDIC DIGIT ONE}", "²", "9" * 16])
def test_any_other_cursor_is_refused(text: str) -> None:
    with pytest.raises(AppError) as refused:
        parse_cursor(text)
    assert refused.value.code is ErrorCode.VALIDATION_ERROR
    assert refused.value.message.startswith("after: ")


async def test_the_cursor_is_in_the_metadata(serve: Serve) -> None:
    _, client = await serve(agent_of(CustomEvent(name="n", value=1, metadata={"k": 1})))
    socket = await client.connect("?cursor=1")
    await send(socket, ask())
    assert [frame["metadata"] for frame in await receive(socket, 3)] == [{"seq": 1}, {"k": 1, "seq": 2}, {"seq": 3}]


async def test_deltas_merge_without_loss_when_the_reader_is_behind(serve: Serve) -> None:
    words = [f"{number} \N{GRINNING FACE}\n" for number in range(3_000)]

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for word in words:
            yield word

    _, client = await serve(agent)
    socket = await client.connect("?cursor=1")
    await send(socket, ask())
    text, frames, seqs = "", 0, []
    while True:
        [frame] = await receive(socket, 1)
        frames += 1
        seqs.append(frame["metadata"]["seq"])
        text += frame.get("delta", "")
        if frame["type"] == "RUN_FINISHED":
            break
    assert text == "".join(words)
    assert frames < 1_000
    assert seqs == sorted(set(seqs))
    assert seqs[-1] == len(words) + 4


async def test_a_browsers_token_and_query_reach_the_agent(serve: Serve) -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield CustomEvent(name="n", value=dict(ctx.caller.headers))

    _, client = await serve(agent)
    token = base64.urlsafe_b64encode(planted("browser-token").encode()).decode().rstrip("=")
    offered = [BEARER_PROTOCOL, f"{BEARER_PROTOCOL}.{token}"]
    socket = await client.connect("?X-Amzn-Bedrock-AgentCore-Runtime-Session-Id=s1", subprotocols=offered)
    assert socket.subprotocol == BEARER_PROTOCOL
    await send(socket, ask())
    assert (await receive(socket, 3))[1]["value"] == {
        "x-amzn-bedrock-agentcore-runtime-session-id": "s1",
        "authorization": f"Bearer {planted('browser-token')}",
    }


async def test_a_client_that_closes_in_order_gets_its_own_code_back(serve: Serve) -> None:
    _, _, socket = await begin_run(serve)
    await socket.close(4000, "enough")
    assert socket.close_code == 4000
