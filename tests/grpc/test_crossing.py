"""One thread, several protocols: it is begun over one, approved over another, and read over a third."""

import json
import urllib.parse
import urllib.request
from datetime import datetime

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from agui_container.transports.gen.roz.v1 import agent_pb2 as pb
from tests.grpc.client import WAIT, call_text
from tests.grpc.http_requests import Json, answer_approval, get_json, run_over_sse
from tests.grpc.kontekst_calls import RunTalk, start_run
from tests.grpc.roz_calls import RozTalk, schema, session_of, start_session, wait_for_approval, wait_for_turn
from tests.grpc.two_clients import APPROVED_ELSEWHERE, DENIED_ELSEWHERE
from tests.requirements import requirement
from tests.sockets.client import is_last
from tests.sockets.process import ServerProcess
from tests.websocket import blocking_receive_until, blocking_socket_to


def roboto(server: ServerProcess, method: str, path: str, body: Json | None = None) -> Json:
    """The data that a request of Roboto's gives."""
    url = f"http://127.0.0.1:{server.port}/v1/ai/threads{path}"
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, method=method)
    with urllib.request.urlopen(request, timeout=WAIT) as answer:  # noqa: S310 - a loopback address
        found: Json = json.load(answer)["data"]
        return found


def user_message(text: str) -> Json:
    """A message of a Roboto client."""
    return {"role": "user", "content": [{"text": text}]}


def session(server: ServerProcess, thread: str) -> Json:
    """A session as Roboto's clients see it once the agent has answered. Polls are held back by the server."""
    record = roboto(server, "GET", f"/{thread}")
    while record["status"] == "roboto_turn":
        token = urllib.parse.quote(record["continuation_token"])
        record = {**record, **roboto(server, "GET", f"/{thread}/delta?next_token={token}")}
    return roboto(server, "GET", f"/{thread}")


def conversation(session: Json) -> list[tuple[str, str]]:
    """Roles and texts of a Roboto session."""
    return [
        (message["role"], "".join(block.get("text", "") for block in message["content"]))
        for message in session["messages"]
    ]


def roles(run: RunTalk) -> list[str]:
    """Roles of the history that a run of kontekst has read."""
    context = next(event.context_snapshot for event in run.seen if event.HasField("context_snapshot")).context
    return [row.role for row in context.messages if row.source == "history"]


@requirement("protocol.crossed")
def test_begun_in_roz_approved_over_sse_and_read_over_kontekst(server: ServerProcess, channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        thread = talk.all("session_started")[0].session_id
        talk.say(call_text("pay", amount=9), message_id="m1")
        wait_for_approval(talk)
        events = answer_approval(server, thread, "over-sse", approved=True)
        assert "paid 9" in next(event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT")
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert [kind for kind in talk.new if kind in {"tool_call_started", "tool_call_finished"}] == [
            "tool_call_started",
            "tool_call_finished",
        ]
        assert "paid 9" in "".join(delta.content for delta in talk.all("text_delta")), "the roz client has followed"
        assert outcomes(talk) == [APPROVED_ELSEWHERE]
    with start_run(channel, "hello", session_id=thread) as run:
        list(run.rest())
    assert roles(run) == ["user", "assistant", "tool", "assistant"]


@requirement("protocol.crossed")
@pytest.mark.parametrize("call", [call_text("pay", amount=9), "delegate " + call_text("pay", amount=9)])
def test_begun_in_roz_and_denied_over_sse(server: ServerProcess, channel: grpc.Channel, call: str) -> None:
    with start_session(channel) as talk:
        talk.say(call)
        wait_for_approval(talk)
        answer_approval(server, session_of(talk), "denied", approved=False, reason="not now")
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert outcomes(talk) == [DENIED_ELSEWHERE]


def outcomes(talk: RozTalk) -> list[Json]:
    """The outcomes of the approvals that a client of release 1.0 has been told of."""
    events = [it.approval_resolved for it in talk.all("session_event") if it.HasField("approval_resolved")]
    return [MessageToDict(event.outcome) for event in events]


@requirement("protocol.crossed")
def test_proposed_in_kontekst_and_denied_over_sse(server: ServerProcess, channel: grpc.Channel) -> None:
    with start_run(channel, call_text("echo", text="x")) as run:
        run.until("tools_proposed")
        thread = run.seen[0].started.session_id
        answer_approval(server, thread, "over-sse-2", approved=False, reason="not now")
        list(run.rest())
    assert "not now" in next(event.tool_failed.error for event in run.seen if event.HasField("tool_failed"))
    assert run.kinds[-1] == "cancelled"


@requirement("protocol.crossed", "sub.asks")
def test_every_call_of_a_kontekst_run_is_proposed_where_another_client_approves(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    with start_run(channel, "delegate " + call_text("echo", text="x")) as run:
        run.until("tools_proposed")
        thread = run.seen[0].started.session_id
        answer_approval(server, thread, "over-sse", approved=True)
        (inner,) = run.until("tools_proposed").calls
        assert inner.name == "echo"
        run.send(approve_tool={"call_id": inner.call_id})
        list(run.rest())
    assert run.kinds[-1] == "completed"


@requirement("protocol.crossed")
def test_begun_over_sse_and_continued_in_roz(server: ServerProcess, channel: grpc.Channel) -> None:
    message = {"id": "u1", "role": "user", "content": "one two three four five six seven"}
    run_over_sse(server, {"threadId": "from-sse", "runId": "r1", "messages": [message]})
    with start_session(channel, metadata=[("agui-thread-id", "from-sse")]) as talk, start_session(channel) as fresh:
        talk.say("hello")
        fresh.say("hello")
        assert wait_for_turn(talk).usage.input_tokens >= wait_for_turn(fresh).usage.input_tokens + 7
    assert len(get_json(server, "/threads/from-sse")["messages"]) == 4


@requirement("protocol.crossed")
def test_a_run_of_roz_is_cancelled_over_http(server: ServerProcess, channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        thread = talk.all("session_started")[0].session_id
        talk.say("wait 30")
        talk.until("text_delta")
        posted_command = {"command": {"type": "cancel", "threadId": thread}}
        run_over_sse(server, posted_command)
        assert wait_for_turn(talk).stop_reason == "cancelled"


@requirement("protocol.crossed")
def test_begun_in_roz_read_over_a_socket_continued_in_roboto_and_read_over_kontekst(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    with start_session(channel) as talk:
        thread = session_of(talk)
        talk.say("stream 1")
        wait_for_turn(talk)
    first = [("user", "stream 1"), ("assistant", "hello world, ")]
    with blocking_socket_to(server.ws) as socket:
        socket.send(json.dumps({"threadId": thread, "runId": "look", "messages": [], "protocolVersion": "1.0"}))
        events = blocking_receive_until(socket, is_last)
    (shown,) = [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
    assert [(message["role"], message["content"]) for message in shown] == first
    assert conversation(session(server, thread)) == first
    roboto(server, "POST", f"/{thread}/messages", {"message": user_message("stream 2")})
    both = [*first, ("user", "stream 2"), ("assistant", "hello world, hello world, ")]
    assert conversation(session(server, thread)) == both
    with start_run(channel, "stream 1", session_id=thread) as run:
        list(run.rest())
    assert roles(run) == ["user", "assistant", "user", "assistant"]


@requirement("protocol.crossed")
def test_begun_in_roboto_and_continued_in_roz_and_over_sse(server: ServerProcess, channel: grpc.Channel) -> None:
    thread = roboto(server, "POST", "", {"messages": [user_message("stream 1")]})["thread_id"]
    session(server, thread)
    with start_session(channel, metadata=[("agui-thread-id", thread)]) as talk:
        talk.say("stream 2")
        assert wait_for_turn(talk).stop_reason == "end_turn"
    message = {"id": "over-sse", "role": "user", "content": "stream 3"}
    run_over_sse(server, {"threadId": thread, "runId": "third", "messages": [message]})
    assert conversation(session(server, thread)) == [
        turn for count in (1, 2, 3) for turn in (("user", f"stream {count}"), ("assistant", "hello world, " * count))
    ]
    assert [message["role"] for message in get_json(server, f"/threads/{thread}")["messages"]] == [
        *("user", "assistant") * 3
    ]


@requirement("protocol.crossed")
def test_a_client_tool_of_roz_stays_open_while_another_client_approves_and_is_then_answered_in_roz(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    with start_session(channel, tools=[schema("move")]) as talk:
        talk.say(f"{call_text('pay', amount=7)}\n{call_text('move', x=1)}")
        request = talk.until("tool_request")
        talk.until("1.0 approval_requested")
        answer_approval(server, session_of(talk), "beside", approved=True)
        talk.until("1.0 approval_resolved")
        talk.until("1.0 tool_call_finished")
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="moved"))
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert [asked.tool_name for asked in talk.all("tool_request")] == ["move"]
        assert "moved" in "".join(delta.content for delta in talk.all("text_delta"))


@requirement("protocol.crossed", "roz.control")
@pytest.mark.parametrize("rating", ["positive", "negative"])
def test_feedback_of_roz_is_read_over_http_and_replaced_in_roboto(
    server: ServerProcess, channel: grpc.Channel, rating: str
) -> None:
    with start_session(channel) as talk:
        thread = session_of(talk)
        talk.say("stream 1", message_id="m1")
        wait_for_turn(talk)
        talk.send(feedback=pb.MessageFeedback(session_id=thread, message_id="m1", rating=rating))
        talk.send(ping=pb.Ping()).until("pong")
    read = get_json(server, f"/threads/{thread}")
    (given,) = read["feedback"]
    assert (given["messageId"], given["sentiment"]) == (read["messages"][1]["id"], rating)
    other = {"sentiment": "negative", "categories": ["other"], "notes": "on second thoughts"}
    record = roboto(server, "POST", f"/{thread}/messages/1/feedback", other)
    assert datetime.fromisoformat(record["created"]).timestamp() == pytest.approx(given["createdAt"], abs=0.01)
    assert record["modified"] > record["created"]
    (replaced,) = get_json(server, f"/threads/{thread}")["feedback"]
    assert (replaced["sentiment"], replaced["notes"]) == ("negative", "on second thoughts")
