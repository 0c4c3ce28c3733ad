"""The context that a kontekst client shows: ``total/size tokens``, and what remains of the budget."""

import grpc
import pytest

from agui_container.ports.tool import MAX_REASON
from agui_container.protocols.gen import kontekst_pb2 as pb
from tests.protocols.conftest import Dial
from tests.protocols.grpc.client import call_text
from tests.protocols.kontekst.calls import RunTalk, start_run
from tests.server.sockets.process import Servers

pytestmark = [pytest.mark.wire, pytest.mark.processes]

LARGEST_SIZE = 2**31 - 1


def contexts(talk: RunTalk) -> list[pb.ContextSnapshot]:
    """Read to the end of a run. Returns its snapshots, each of which keeps the sums of the page."""
    list(talk.rest())
    found = [event.context_snapshot.context for event in talk.seen if event.HasField("context_snapshot")]
    for context in found:
        fixed = context.system_tokens + context.tool_tokens + context.memory_tokens
        assert context.total_tokens == fixed + context.history_tokens
        assert context.remaining_tokens == context.context_size - context.total_tokens
        assert context.history_budget == context.context_size - fixed
        assert context.total_messages == 1 + context.history_messages + context.memory_messages
        for source, tokens in (
            ("system", context.system_tokens),
            ("history", context.history_tokens),
            ("memory", context.memory_tokens),
        ):
            assert sum(row.tokens for row in context.messages if row.source == source) == tokens
    return found


def test_the_window_of_the_model_is_the_size_of_the_context(servers: Servers, dial: Dial) -> None:
    with start_run(dial(servers(AGUI_AGENT="tests.protocols.grpc.tools:windowed")), "hello") as talk:
        (context,) = contexts(talk)
    assert context.context_size == 1_000


def test_the_context_of_an_agent_that_does_not_report_it_is_not_exhausted(servers: Servers, dial: Dial) -> None:
    with start_run(dial(servers(AGUI_AGENT="tests.protocols.grpc.tools:poet")), "a poem") as talk:
        (context,) = contexts(talk)
    assert (context.context_size, context.remaining_tokens, context.total_tokens) == (LARGEST_SIZE, LARGEST_SIZE, 0)


@pytest.mark.parametrize("length", [MAX_REASON, 100 * MAX_REASON])
def test_a_reason_of_any_length_denies_a_call(channel: grpc.Channel, length: int) -> None:
    with start_run(channel, call_text("echo", text="x")) as talk:
        (call,) = talk.until("tools_proposed").calls
        talk.send(deny_tool=pb.DenyToolCommand(call_id=call.call_id, reason="n" * length))
        failed = talk.until("tool_failed")
        assert failed.error.count("n" * MAX_REASON) == 1
        list(talk.rest())
    assert talk.kinds[-1] == "cancelled"
