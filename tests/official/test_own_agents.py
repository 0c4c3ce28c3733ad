"""The official client against an agent that does everything wrong, and everything right, one script at a time.

Whatever happens, the client sees a legal run with one end, no warning, and nothing of what the exception said.
"""

import itertools
from dataclasses import replace

import pytest
from ag_ui.core import EventType

from agui_container.ports import Item
from agui_container.protocol.expander import Expander
from tests.official.conversations import TERMINAL, Ask, ClientTransport, Protobuf, check
from tests.official.judge import Judge
from tests.official.scripts import WAITING, Pause
from tests.official.scripts_values import ALL_TYPES, SCRIPTS, WARNED

CHUNK_TYPES = {"TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK", "REASONING_MESSAGE_CHUNK"}


ROWS = [name for name in SCRIPTS if name not in (*WAITING, *WARNED)]


@pytest.mark.parametrize("name", ROWS)
def test_every_script_ends_as_it_should(name: str, own_transport: ClientTransport, judge: Judge) -> None:
    end = SCRIPTS[name].end
    ends = TERMINAL if end is None else (end,)
    ask = Ask(name)
    turn = own_transport.ask(ask)
    assert check(judge, turn) in ends
    last = turn.events[-1]
    if last["type"] == "RUN_FINISHED":
        assert (last["threadId"], last["runId"]) == (ask.thread, ask.run)
    assert "secret" not in str(turn.events)


@pytest.mark.parametrize("name", WAITING)
def test_a_cancel_closes_whatever_is_open(name: str, own_transport: ClientTransport, judge: Judge) -> None:
    numbers = itertools.count()
    expander = Expander(lambda: f"{next(numbers)}")
    items: list[Item] = [item for item in WAITING[name].items if not isinstance(item, Pause)]  # type: ignore[misc]
    shown = 1 + sum(len(expander.expand(item)) for item in items)
    ask = Ask(name)
    cancel = {"command": {"type": "cancel", "threadId": ask.thread, "runId": ask.run}}
    turn = own_transport.ask(replace(ask, meanwhile=(shown, cancel)))
    assert check(judge, turn) == "RUN_FINISHED"
    assert turn.events[-1]["outcome"] == {"type": "cancelled"}


def test_all_31_event_types_pass_through(own_transport: ClientTransport) -> None:
    yielded = {str(item.type.value) for item in ALL_TYPES if hasattr(item, "type")}
    assert yielded | {"RUN_ERROR"} == {kind.value for kind in EventType}
    turn = own_transport.ask(Ask("is fine with all event types"))
    assert set(turn.types) == yielded - CHUNK_TYPES
    errors = own_transport.ask(Ask("errs after nothing"))
    assert errors.types == ["RUN_STARTED", "RUN_ERROR"]
    assert errors.events[-1]["message"] == "sorry"


def test_an_unknown_field_is_passed_on_where_the_wire_has_room_and_the_client_strips_it(
    own_transport: ClientTransport,
) -> None:
    turn = own_transport.ask(Ask("adds an unknown field"))
    assert turn.error is None
    assert turn.types[-1] == "RUN_FINISHED"
    assert all("/surprise" in line for line in turn.printed)
    assert bool(turn.printed) is not isinstance(own_transport, Protobuf)
