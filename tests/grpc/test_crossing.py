"""One thread, several protocols: it is begun over one, approved over another, and read over a third."""

import json
import urllib.request
from typing import Any

import grpc

from tests.grpc.client import WAIT
from tests.grpc.test_kontekst import started
from tests.grpc.test_roz import begun, calling, turned, waiting
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

Json = dict[str, Any]


def posted(server: ServerProcess, body: Json) -> list[Json]:
    """The events of a run over SSE."""
    url = f"http://127.0.0.1:{server.port}/invocations"
    request = urllib.request.Request(url, json.dumps({"protocolVersion": "1.0", **body}).encode())
    with urllib.request.urlopen(request, timeout=WAIT) as answer:  # noqa: S310 - a loopback address
        return [json.loads(line[5:]) for line in answer if line.startswith(b"data:")]


def fetched(server: ServerProcess, path: str) -> Json:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=WAIT) as answer:
        found: Json = json.load(answer)
        return found


def approval(server: ServerProcess, thread: str, run: str, *, approved: bool, **payload: object) -> list[Json]:
    """Answer the one approval of a thread over SSE."""
    (asked,) = fetched(server, f"/threads/{thread}")["waiting"]
    answer = {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": approved, **payload}}
    return posted(server, {"threadId": thread, "runId": run, "messages": [], "resume": [answer]})


@requirement("protocol.crossed")
def test_begun_in_roz_approved_over_sse_and_read_over_kontekst(server: ServerProcess, channel: grpc.Channel) -> None:
    with begun(channel) as talk:
        thread = talk.all("session_started")[0].session_id
        talk.say(calling("pay", amount=9), message_id="m1")
        waiting(talk)
        events = approval(server, thread, "over-sse", approved=True)
        assert "paid 9" in next(event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT")
        assert turned(talk).stop_reason == "end_turn"
        assert [kind for kind in talk.new if kind in {"tool_call_started", "tool_call_finished"}] == [
            "tool_call_started",
            "tool_call_finished",
        ]
        assert "paid 9" in "".join(delta.content for delta in talk.all("text_delta")), "the roz client has followed"
    with started(channel, "hello", session_id=thread) as run:
        list(run.rest())
    context = next(event.context_snapshot for event in run.seen if event.HasField("context_snapshot")).context
    assert [row.role for row in context.messages if row.source == "history"] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@requirement("protocol.crossed")
def test_proposed_in_kontekst_and_denied_over_sse(server: ServerProcess, channel: grpc.Channel) -> None:
    with started(channel, calling("echo", text="x")) as run:
        run.until("tools_proposed")
        thread = run.seen[0].started.session_id
        approval(server, thread, "over-sse-2", approved=False, reason="not now")
        list(run.rest())
    assert "not now" in next(event.tool_failed.error for event in run.seen if event.HasField("tool_failed"))
    assert run.kinds[-1] == "completed"


@requirement("protocol.crossed")
def test_proposed_in_kontekst_and_approved_over_sse(server: ServerProcess, channel: grpc.Channel) -> None:
    with started(channel, calling("pay", amount=9)) as run:
        run.until("tools_proposed")
        thread = run.seen[0].started.session_id
        approval(server, thread, "over-sse-3", approved=True)
        list(run.rest())
    tools = [kind for kind in run.kinds if kind.startswith("tool")]
    assert tools == ["tools_proposed", "tool_started", "tool_completed", "tools_completed"]
    assert run.kinds[-1] == "completed"


@requirement("protocol.crossed")
def test_begun_over_sse_and_continued_in_roz(server: ServerProcess, channel: grpc.Channel) -> None:
    message = {"id": "u1", "role": "user", "content": "one two three four five six seven"}
    posted(server, {"threadId": "from-sse", "runId": "r1", "messages": [message]})
    with begun(channel, metadata=[("agui-thread-id", "from-sse")]) as talk, begun(channel) as fresh:
        talk.say("hello")
        fresh.say("hello")
        assert turned(talk).usage.input_tokens >= turned(fresh).usage.input_tokens + 7
    assert len(fetched(server, "/threads/from-sse")["messages"]) == 4


@requirement("protocol.crossed")
def test_a_run_of_roz_is_cancelled_over_http(server: ServerProcess, channel: grpc.Channel) -> None:
    with begun(channel) as talk:
        thread = talk.all("session_started")[0].session_id
        talk.say("wait 30")
        talk.until("text_delta")
        posted_command = {"command": {"type": "cancel", "threadId": thread}}
        posted(server, posted_command)
        assert turned(talk).stop_reason == "cancelled"


@requirement("protocol.crossed")
def test_sessions_of_agentcore_keep_their_threads_apart(server: ServerProcess, channel: grpc.Channel) -> None:
    header = "x-amzn-bedrock-agentcore-runtime-session-id"
    with started(channel, "hello", session_id="mine", metadata=[(header, "a" * 33)]) as run:
        list(run.rest())
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/threads", headers={header: "a" * 33})
    with urllib.request.urlopen(request, timeout=WAIT) as answer:  # noqa: S310
        assert "mine" in {it["threadId"] for it in json.load(answer)["threads"]}
    assert "mine" not in {it["threadId"] for it in fetched(server, "/threads")["threads"]}
