"""The official client against an agent that does something wrong, or something that a wire could spoil.

Whatever happens, the client sees a legal run with one end, no warning, and nothing of what the exception said.
"""

import pytest

from tests.official.agents import SCRIPTS
from tests.official.conversations import Ask, ClientTransport, Sse, check
from tests.official.judge import Judge
from tests.protocol.samples import FINISHED, INNER, STARTED
from tests.server.sockets.process import ServerProcess

pytestmark = pytest.mark.other_language


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_ends_as_it_should_on_every_wire(name: str, own_transport: ClientTransport, judge: Judge) -> None:
    ask = Ask(name)
    turn = own_transport.ask(ask)
    assert check(judge, turn) == SCRIPTS[name].end
    last = turn.events[-1]
    if last["type"] == "RUN_FINISHED":
        assert (last["threadId"], last["runId"]) == (ask.thread, ask.run)
    assert "secret" not in str(turn.events)


def test_a_cancel_closes_whatever_is_open(own_agent: ServerProcess, judge: Judge) -> None:
    ask = Ask("waits with much open", thread="cancelled", run="cancelled")
    cancel = {"command": {"type": "cancel", "threadId": ask.thread, "runId": ask.run}}
    turn = Sse(judge, own_agent).ask(Ask(ask.said, ask.thread, ask.run, meanwhile=(9, cancel)))
    assert check(judge, turn) == "RUN_FINISHED"
    assert turn.events[-1]["outcome"] == {"type": "cancelled"}


def test_all_event_types_pass_through(own_transport: ClientTransport, judge: Judge) -> None:
    turn = own_transport.ask(Ask("yields all event types"))
    assert set(turn.types) == {event.type.value for event in (STARTED, *INNER, FINISHED)}
    assert judge.verify(turn.events, enforce=True, chunks=True).clean


def test_an_unknown_field_is_passed_on_and_the_client_strips_it(own_transport: ClientTransport) -> None:
    turn = own_transport.ask(Ask("adds an unknown field"))
    assert turn.error is None
    assert turn.types[-1] == "RUN_FINISHED"
    assert all("/surprise" in line for line in turn.printed)
    assert turn.printed
