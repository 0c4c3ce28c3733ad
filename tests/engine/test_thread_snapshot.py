"""The snapshot of a stored thread: its bytes, and its share of the memory."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    AssistantMessage,
    DataSource,
    FunctionCall,
    ImagePart,
    Message,
    MessagesSnapshotEvent,
    RunAgentInput,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from agui_container.engine.admission.quota import Limit
from agui_container.engine.engine import Engine
from agui_container.engine.policy import IdentityLimits
from agui_container.engine.threads.thread_snapshot import content_events, state_event
from agui_container.ports import Item
from agui_container.ports.records import StoredMessage, ThreadDelta, ThreadKey, ThreadRecord, ThreadStatus
from agui_container.protocol.conversation.merge import dump_message
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import ErrorCode
from tests.engine.doubles import START, asking, caller, envelopes, eventually, make_service, raises_code
from tests.requirements import requirement

PNG = DataSource(value="aGk=", mime_type="image/png")
MESSAGES: list[Message] = [
    UserMessage(
        id="u", content=[TextPart(text="é"), ImagePart(source=DataSource(value="aGk=", mime_type="image/png"))]
    ),
    UserMessage(id="n", content="hi", metadata={"count": 10**400, "ratio": float("inf"), "list": [1, None, 1e300]}),
    AssistantMessage(id="a", tool_calls=[ToolCall(id="c", function=FunctionCall(name="f", arguments="{}"))]),
    ToolMessage(id="t", tool_call_id="c", content=[TextPart(text="done")]),
]


async def short(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "short"


async def service_with_thread(characters: int, caller_limits: IdentityLimits | None = None) -> Engine:
    """Return an engine with a thread that has a message of so many characters."""
    service = make_service(short, caller_limits=caller_limits)
    message = {"id": "u1", "role": "user", "content": characters * "x"}
    reader = await service.admit(asking(messages=[message]), caller())
    await envelopes(reader)
    reader.close()
    await eventually(lambda: not service.registry.recorder_tasks)
    return service


@requirement("connect.shown")
def test_the_messages_of_a_snapshot_are_those_of_the_official_encoder() -> None:
    record = ThreadRecord(ThreadKey("everybody", "t1"), ThreadStatus.USER_TURN, START, START)
    stored = [StoredMessage(message.id, dump_message(message)) for message in MESSAGES]
    (_, messages), _ = content_events(ThreadDelta(record, stored, None, None, None, "next"))
    assert messages == encode(MessagesSnapshotEvent(messages=MESSAGES))


@requirement("connect.shown")
@pytest.mark.parametrize(
    ("state", "shown"), [(b'{"a":[1,"x"]}', b'{"a":[1,"x"]}'), (b'{"a":NaN,"b":-Infinity}', b'{"a":null,"b":null}')]
)
def test_a_state_is_shown_as_json(state: bytes, shown: bytes) -> None:
    assert state_event(state) == b'{"type":"STATE_SNAPSHOT","snapshot":%b}' % shown


@requirement("limit.kept")
async def test_threads_that_are_shown_count_until_their_readers_leave() -> None:
    service = await service_with_thread(20_000, IdentityLimits(log_bytes=35_000))
    before = service.quota.amounts[Limit.LOG_BYTES].used
    first = await service.admit(asking(run="r2", messages=[]), caller())
    with raises_code(ErrorCode.RATE_LIMIT_EXCEEDED):
        await service.admit(asking(run="r3", messages=[]), caller())
    first.close()
    first.close()
    assert service.quota.amounts[Limit.LOG_BYTES].used == before
    (await service.admit(asking(run="r3", messages=[]), caller())).close()
