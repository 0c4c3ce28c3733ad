"""Ids of threads and runs that clients choose over gRPC have the same length as over HTTP."""

import grpc
import pytest

from agui_container.protocol.commands import MAX_ID
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.grpc.http_requests import get_json
from tests.grpc.kontekst_calls import start_run
from tests.grpc.roz_calls import RozTalk, start_session, wait_for_turn, watch_team
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

LONGEST, TOO_LONG = "x" * MAX_ID, "x" * (MAX_ID + 1)
REFUSAL = "must have 1 to 512 characters."


@requirement("grpc.messages", "protocol.crossed")
def test_a_thread_of_kontekst_has_an_id_that_every_protocol_accepts(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    with start_run(channel, "hello", session_id=TOO_LONG) as refused:
        kind, failed = refused.next()
    assert (kind, failed.error) == ("failed", f"session_id: {REFUSAL}")
    with start_run(channel, "hello", session_id=LONGEST) as run:
        list(run.rest())
    assert len(get_json(server, f"/threads/{LONGEST}")["messages"]) == 2


@requirement("grpc.messages", "protocol.crossed")
def test_a_thread_of_roz_has_an_id_that_every_protocol_accepts(channel: grpc.Channel) -> None:
    with RozTalk(channel, metadata=[("agui-thread-id", TOO_LONG)]) as refused:
        refused.send(start=roz.StartSession())
        assert refused.until("error").message == f"agui-thread-id: {REFUSAL}"
    with start_session(channel, [("agui-thread-id", LONGEST)]) as talk:
        talk.say("hello")
        assert wait_for_turn(talk).stop_reason == "end_turn"


@requirement("grpc.messages", "roz.team")
@pytest.mark.parametrize("task_id", ["", TOO_LONG])
def test_a_task_that_cannot_be_is_not_searched_for(channel: grpc.Channel, task_id: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        next(watch_team(channel, task_id))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.details() == f"task_id: {REFUSAL}"
