"""Events within the service's bounds: large turns are several, which count together or not at all."""

import json

import pytest

from agui_container.ports.records import Change, StoredMessage
from agui_container.stores.agentcore import AgentCoreStore
from agui_container.stores.agentcore.turn_events import MAX_TEXT, conversation_item
from tests.stores.agentcore.conftest import Process
from tests.stores.agentcore.doubles import answer, ids, stored_messages, turn, user
from tests.stores.agentcore.server import Fault, Memory
from tests.stores.doubles import THREAD

PICTURE = [
    {"type": "text", "text": "See"},
    {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}},
    {"type": "text", "text": "this"},
]


@pytest.mark.parametrize(
    ("message", "role", "text"),
    [
        ({"role": "user", "content": "Hello"}, "USER", "Hello"),
        ({"role": "user", "content": PICTURE}, "USER", "See\nthis"),
        ({"role": "assistant", "content": "Hi", "toolCalls": []}, "ASSISTANT", "Hi"),
        ({"role": "tool", "toolCallId": "c", "content": "42"}, "TOOL", "42"),
        ({"role": "user", "content": "x" * (MAX_TEXT + 1)}, "USER", "x" * MAX_TEXT),
    ],
)
def test_strategies_see_what_was_said(message: object, role: str, text: str) -> None:
    item = conversation_item(StoredMessage("m", json.dumps(message).encode()))
    assert item == {"conversational": {"content": {"text": text}, "role": role}}


LARGE = [user("u1", "\u00fc" * 150_000), answer("a1", '"\\' * 800_000), answer("a2", "A" * 9_000_000), user("u2", "x")]


async def test_a_turn_that_one_event_cannot_take_is_several(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    await turn(store, 1, Change(LARGE))
    made = service.requested_events()
    assert [event["metadata"]["agui.part"]["stringValue"] for event in made] == [
        f"{n}/{len(made)}" for n in range(1, len(made) + 1)
    ]
    assert len({event["clientToken"] for event in made}) == len(made) > 1
    assert await stored_messages(process()) == [(message.id, message.data) for message in LARGE]


async def test_a_turn_that_was_not_written_in_whole_is_not_read_in_part(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    await turn(store, 1, Change([user("u0", "before")]))
    service.faults += [Fault(403, "AccessDeniedException", only="CreateEvent", passes=1)]
    await turn(store, 2, Change(LARGE))
    assert (len(service.stored_events()), [lapse.name for lapse in store.take_warnings(THREAD)]) == (
        2,
        ["history.unwritten"],
    )
    assert await ids(process()) == ["u0"]
    await turn(store, 3, Change([user("u3", "after")]))
    assert await ids(process()) == ["u0", "u1", "a1", "a2", "u2", "u3"]
