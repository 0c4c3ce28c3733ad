"""Outgoing frames of a WebSocket: events of runs, and control frames, which answer requests.

Rule: a control frame has ``control`` in the place of an event's ``type``.

Rule: each event has a frame, but adjacent deltas of one stream are merged into one event, and no text is lost. Deltas
belong to one stream if all their fields but ``delta`` and ``timestamp`` are equal.

Rule: frames leave in the order in which they are given, at most 230 in any second, because AgentCore closes a
connection on which more than 250 arrive in one, and a network may bunch them. A single frame is never delayed: a
burst is free up to ``BURST`` frames, and then frames leave at ``RATE`` per second. No frame that can be smaller
exceeds 32 KB. Deltas that wait are merged.

Rule: the flusher pushes a single event to the connection if no other frame waits and both the pace and the connection
let it leave now. Otherwise the connection's own task sends it.

Source: AgentCore's limits, ``bedrock-agentcore-limits`` (docs/behind-agentcore.md).
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from ag_ui.core import EventType
from pydantic_core import from_json, to_json
from starlette.websockets import WebSocket, WebSocketDisconnect

from agui_container.protocol.envelope import Batch, Envelope
from agui_container.protocol.errors import AppError
from agui_container.protocol.parser import CommandRequest
from agui_container.web.caller_middleware import caller_of
from agui_container.web.direct_writes import direct_writer
from agui_container.web.requests import encode_result

RATE = 200.0
"""Frames per second after a burst."""

BURST = 29.0
"""Frames that may leave without delay."""

ONE_FRAME = 1 - 1e-6
"""Share of a frame that counts as a whole one. A sum of fractions can miss 1 by too little to sleep for."""

ABNORMAL_CLOSURE = 1006
"""Close code of a connection that ended without a close frame (RFC 6455, section 7.4.1)."""

MERGED_BYTES = 30_000
"""Maximum bytes of merged deltas: AgentCore's limit of 32 KB, with room for the cursor."""

DELTA_TYPES = frozenset(
    {EventType.TEXT_MESSAGE_CONTENT, EventType.TOOL_CALL_ARGS, EventType.REASONING_MESSAGE_CONTENT},
)
SIDE_FIELDS = {"metadata", "rawEvent"}
"""Fields that describe a single delta. A delta with one of them is not merged."""


class RateLimiter:
    """Token bucket for outgoing frames. ``BURST``, one second of ``RATE`` and one delayed frame add up to 230."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._allowed, self._counted_at = BURST, now()

    def delay(self) -> float:
        """Return the seconds until a frame may leave. If the result is 0, the frame is counted."""
        now = self._now()
        self._allowed = min(BURST, self._allowed + (now - self._counted_at) * RATE)
        self._counted_at = now
        if self._allowed < ONE_FRAME:
            return (1 - self._allowed) / RATE
        self._allowed -= 1
        return 0.0

    async def wait(self) -> None:
        """Wait until a frame may leave. It is counted only when the wait is over."""
        while (delay := self.delay()) > 0:  # noqa: ASYNC110 - this depends on the time alone, so no event can signal it
            await asyncio.sleep(delay)


class FrameWriter:
    """Sends frames to one client. ``has_left`` is True once the connection is closed; earlier frames may still wait."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket
        self._caller = caller_of(websocket)
        self._with_seq = websocket.query_params.get("cursor") == "1"
        self._rate_limiter, self._lock = RateLimiter(asyncio.get_running_loop().time), asyncio.Lock()
        self._write = direct_writer(websocket.scope)
        self._unsent = 0
        """Frames that wait or are being sent."""
        self.has_left = False

    def push(self, batch: Batch) -> bool:
        """Send an event at once. Return False if it must wait, or if there are several, because they may be merged."""
        if self._write is None or self._unsent or len(batch.data) > 1:
            return False
        data = _add_seq(batch.data[0], batch.first) if self._with_seq else batch.data[0]
        return self._rate_limiter.delay() == 0 and self._write(data)

    async def send_events(self, batch: Batch) -> None:
        for frame in make_frames(batch.envelopes(), with_seq=self._with_seq):
            await self._send(frame)

    async def send_control(self, kind: str, **fields: object) -> None:
        """Leave out fields that are None. Raises ``WebSocketDisconnect``."""
        await self._send(json.dumps(control_fields(kind, fields), ensure_ascii=False))

    async def send_result(self, request: CommandRequest, result: Mapping[str, object]) -> None:
        fields = {**result, "id": request.frame_id, "command": request.command.type}
        await self._send((await encode_result(control_fields("result", fields))).decode())

    async def send_error(self, error: AppError, **ids: object) -> None:
        """Send an error, unless the client has left. ``ids`` identify the request that the frame answers."""
        with contextlib.suppress(WebSocketDisconnect):
            await self.send_control(
                "error",
                **ids,
                code=error.code,
                message=error.message,
                retryable=error.code.is_retryable,
                retryAfter=error.wait_seconds,
                requestId=self._caller.request_id,
            )

    async def close(self, error: AppError) -> None:
        await self.send_error(error)
        if not self.has_left:
            await self._websocket.close(error.code.ws_close, error.code)

    async def _send(self, frame: str) -> None:
        self._unsent += 1
        try:
            async with self._lock:
                await self._rate_limiter.wait()
                await self._websocket.send_text(frame)
        except (RuntimeError, WebSocketDisconnect) as error:  # starlette and uvicorn raise one of them, once closed
            self.has_left = True
            raise WebSocketDisconnect(ABNORMAL_CLOSURE) from error
        finally:
            self._unsent -= 1


def control_fields(kind: str, fields: Mapping[str, object]) -> dict[str, object]:
    return {"control": kind, **{name: value for name, value in fields.items() if value is not None}}


# --- merged deltas ----------------------------------------------------------------------------------------------------

Stream = list[tuple[str, object]]
"""The fields that the deltas of one stream have in common."""


def make_frames(envelopes: Sequence[Envelope], *, with_seq: bool) -> list[str]:
    """Return the frames, in order. A merged event gets the ``seq`` of its last delta."""
    merged = _merge(envelopes) if len(envelopes) > 1 else ((each.data, each.seq) for each in envelopes)
    return [(_add_seq(data, seq) if with_seq else data).decode() for data, seq in merged]


def _merge(envelopes: Sequence[Envelope]) -> Iterator[tuple[bytes, int]]:
    group: list[Envelope] = []
    texts: list[str] = []
    stream: Stream | None = None
    size = 0
    for envelope in envelopes:
        next_stream, text = _read_delta(envelope)
        added = len(to_json(text)) - len(b'""')
        if next_stream is None or next_stream != stream or size + added > MERGED_BYTES:
            if group:
                yield _join(group, texts)
            group, texts, stream, size = [], [], next_stream, len(envelope.data) - added
        group.append(envelope)
        texts.append(text)
        size += added
    yield _join(group, texts)


def _read_delta(envelope: Envelope) -> tuple[Stream | None, str]:
    """Return the stream and the text of a delta. The stream of an event that cannot be merged is None."""
    if envelope.type not in DELTA_TYPES:
        return None, ""
    event: dict[str, object] = from_json(envelope.data)
    text = str(event.pop("delta"))
    event.pop("timestamp", None)
    return None if event.keys() & SIDE_FIELDS else list(event.items()), text


def _join(group: Sequence[Envelope], texts: Sequence[str]) -> tuple[bytes, int]:
    first, last = group[0], group[-1]
    return first.data if first is last else to_json({**from_json(first.data), "delta": "".join(texts)}), last.seq


def _add_seq(data: bytes, seq: int) -> bytes:
    if b'"metadata":' not in data:
        return b'%b,"metadata":{"seq":%d}}' % (data[:-1], seq)
    event: dict[str, object] = from_json(data)
    metadata = event.get("metadata")
    return to_json(event | {"metadata": {**(metadata if isinstance(metadata, dict) else {}), "seq": seq}})
