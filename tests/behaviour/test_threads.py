"""Threads and feedback by commands: the same answers on every transport."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable

import pytest
from ag_ui.core import RunAgentInput, StateSnapshotEvent, TextMessageChunkEvent, ToolCallChunkEvent, ToolCallResultEvent

from agui_container.ports import Item
from agui_container.ports.records import ThreadStatus
from agui_container.ports.store import Store
from tests.behaviour.client import Client, Refused, begin_run
from tests.conftest import Connect
from tests.engine.conversations import ANSWER, QUESTION, TALK, store_active_run, store_conversation
from tests.engine.doubles import START, WAIT, Json, agent_of, ask, caller


async def silent(_: RunAgentInput) -> AsyncIterator[str]:
    """Say nothing: threads are put into the store by the tests."""
    return
    yield ""


def store_of(client: Client) -> Store:
    return client.service.cluster.store


async def send_command(client: Client, kind: str, **fields: object) -> Json:
    """Return the answer to a command of threads, without the command's name and a frame's id."""
    answer = await client.command({"command": {"type": f"threads.{kind}", **fields}})
    assert answer.pop("command") == f"threads.{kind}"
    return answer


def is_idle(thread: Json) -> bool:
    return bool(thread["status"] != "agent_turn")


async def wait_for_thread(client: Client, condition: Callable[[Json], bool] = is_idle, thread_id: str = "t1") -> Json:
    """Wait until the stored thread fulfils the condition, and return it. An end may be read before it is stored."""
    async with asyncio.timeout(WAIT):
        while True:
            with contextlib.suppress(Refused):
                if condition(thread := await send_command(client, "get", threadId=thread_id)):
                    return thread
            await asyncio.sleep(0)


async def run_and_wait(client: Client, body: Json) -> Json:
    """Run an input to its end, and return the stored thread."""
    await client.run(body)
    return await wait_for_thread(client)


async def refusal(client: Client, kind: str, **fields: object) -> Refused:
    with pytest.raises(Refused) as refused:
        await send_command(client, kind, **fields)
    return refused.value


@pytest.mark.wire
@pytest.mark.durable
async def test_threads_are_listed_page_by_page(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), thread="t1", title="Sums", now=START)
    await store_conversation(store_of(client), thread="t2", now=START + 5, turn=ThreadStatus.CLIENT_TOOL_TURN)
    await store_active_run(store_of(client), thread="t3")
    first = await send_command(client, "list", limit=2)
    rest = await send_command(client, "list", limit=2, page=first.pop("next"))
    assert [*first["threads"], *rest.pop("threads")] == [
        {
            "threadId": "t3",
            "status": "agent_turn",
            "createdAt": START + 10,
            "changedAt": START + 10,
            "activeRunId": "r2",
        },
        {"threadId": "t2", "status": "client_tool_turn", "createdAt": START + 5, "changedAt": START + 6},
        {"threadId": "t1", "status": "user_turn", "createdAt": START, "changedAt": START + 1, "title": "Sums"},
    ]
    assert rest == {}
    assert (await refusal(client, "list", page="x")).message == "page: must be a 'next' of this list."


@pytest.mark.durable
async def test_threads_are_searched_by_their_titles_and_messages(connect: Connect) -> None:
    client = await connect(silent)
    store = store_of(client)
    parts = [{"type": "text", "text": "A Café, please"}, {"type": "text", "text": "role"}]
    await store_conversation(store, {"id": "q", "role": "user", "content": "Which tram?"}, thread="t1", now=START + 9)
    await store_conversation(store, {"id": "q", "role": "user", "content": parts}, thread="t2")
    result = {"id": "q", "role": "tool", "toolCallId": "c", "content": "tram"}
    await store_conversation(store, result, thread="t3", title="Hammers")

    async def found(text: str) -> list[str]:
        return [thread["threadId"] for thread in (await send_command(client, "list", text=text))["threads"]]

    assert await found("TRAM") == ["t1"]
    assert await found("café") == ["t2"]
    assert await found("hammer") == ["t3"]
    assert await found("content") == []
    first = await send_command(client, "list", text="café", limit=1)
    assert first["threads"] == []
    second = await send_command(client, "list", text="café", limit=1, page=first["next"])
    assert len(second["threads"]) <= 1


@pytest.mark.wire
@pytest.mark.durable
async def test_a_thread_comes_with_its_messages(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), title="Sums", state={"n": 1})
    thread = await send_command(client, "get", threadId="t1")
    assert thread.pop("continuationToken")
    assert thread == {
        "threadId": "t1",
        "status": "user_turn",
        "title": "Sums",
        "createdAt": START,
        "changedAt": START + 1,
        "messages": list(TALK),
        "runs": dict.fromkeys(("m1", "m2", "m3", "m4"), "r1"),
        "state": {"n": 1},
        "feedback": [],
        "waiting": [],
        "answers": [],
        "notices": [],
    }


async def yield_metadata(_: RunAgentInput) -> AsyncIterator[Item]:
    yield TextMessageChunkEvent(message_id="a", delta="It rains", metadata={"source": "sky"})
    yield TextMessageChunkEvent(message_id="a", delta=".", metadata={"sure": True})
    yield ToolCallChunkEvent(tool_call_id="c", tool_call_name="look", delta="{}", metadata={"cost": 1})
    yield ToolCallResultEvent(message_id="r", tool_call_id="c", content="wet", metadata={"seconds": 0.5})


async def test_a_thread_keeps_what_was_said_beside_its_messages(connect: Connect) -> None:
    client = await connect(yield_metadata)
    thread = await run_and_wait(client, ask())
    said, called, result = thread["messages"][1:]
    assert said["metadata"] == {"source": "sky", "sure": True}
    assert called["toolCalls"][0]["metadata"] == {"cost": 1}
    assert result["metadata"] == {"seconds": 0.5}


async def test_a_title_is_given_and_taken_away(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    renamed = await send_command(client, "rename", threadId="t1", title=" Sums  and such")
    assert (renamed["title"], renamed["changedAt"]) == ("Sums and such", START + 1)
    assert "title" not in await send_command(client, "rename", threadId="t1", title=None)
    assert "title" not in (await send_command(client, "list"))["threads"][0]
    assert (await refusal(client, "rename", threadId="t1", title="x" * 201)).message.startswith("command.title: ")


@pytest.mark.durable
async def test_a_deleted_thread_is_gone(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    assert await send_command(client, "delete", threadId="t1") == {"threadId": "t1", "deleted": True}
    assert (await refusal(client, "delete", threadId="t1")).code == "THREAD_NOT_FOUND"
    assert await send_command(client, "list") == {"threads": []}


class ThreadOwner:
    """An agent that stores data of threads itself, and may fail to forget them."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.forgotten: list[tuple[str, str]] = []

    async def run(self, _: RunAgentInput) -> AsyncIterator[str]:
        yield "hi"

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        self.forgotten.append((owner, thread_id))
        if self.failure is not None:
            raise self.failure


async def test_a_thread_that_its_agent_fails_to_forget_stays_and_can_be_deleted_again(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    agent = ThreadOwner(RuntimeError("secret"))
    client = await connect(agent)
    await store_conversation(store_of(client))
    refused = await refusal(client, "delete", threadId="t1")
    assert (refused.code, "secret" in refused.message) == ("INTERNAL_ERROR", False)
    assert "RuntimeError: secret" in caplog.text
    agent.failure = None
    assert await send_command(client, "delete", threadId="t1") == {"threadId": "t1", "deleted": True}
    assert agent.forgotten == [(caller().owner, "t1")] * 2


@pytest.mark.durable
async def test_the_runs_of_a_deleted_thread_are_gone_and_their_ids_may_be_used_again(connect: Connect) -> None:
    begun: list[str] = []

    async def agent(asked_for: RunAgentInput) -> AsyncIterator[str]:
        begun.append(asked_for.run_id)
        yield "hi"

    client = await connect(agent)
    await run_and_wait(client, ask())
    await send_command(client, "delete", threadId="t1")
    assert await client.service.runs.list(caller()) == []
    with pytest.raises(Refused, match="RUN_NOT_FOUND"):
        await client.attach("t1", "r1")
    await client.run(ask())
    assert begun == ["r1", "r1"]


@pytest.mark.durable
async def test_a_run_leaves_a_thread(connect: Connect) -> None:
    client = await connect(agent_of(StateSnapshotEvent(snapshot={"n": 1}), "Hello."))
    thread = await run_and_wait(client, ask(text="Good  morning"))
    question, answer = thread["messages"]
    assert question == {"id": "u1", "role": "user", "content": "Good  morning"}
    assert (answer["role"], answer["content"]) == ("assistant", "Hello.")
    assert (thread["title"], thread["state"]) == ("Good morning", {"n": 1})
    where = {"threadId": "t1", "messageId": answer["id"]}
    assert (await send_command(client, "feedback", **where, sentiment="positive"))["sentiment"] == "positive"
    assert (await send_command(client, "fork", **where))["forkedFrom"] == where


@pytest.mark.durable
async def test_a_thread_has_its_title_while_its_first_run_is_open(connect: Connect) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[str]:
        yield "I wait."
        await asyncio.Event().wait()

    client = await connect(agent)
    run = await begin_run(client, text="Good  morning")
    (listed,) = (await send_command(client, "list"))["threads"]
    assert (listed["title"], listed["activeRunId"]) == ("Good morning", "r1")
    await run.leave()


@pytest.mark.durable
async def test_feedback_on_a_message_is_deleted_with_it(connect: Connect) -> None:
    client = await connect(agent_of("Hello."))
    question, answer = (await run_and_wait(client, ask()))["messages"]
    await send_command(client, "feedback", threadId="t1", messageId=answer["id"], sentiment="positive")
    thread = await run_and_wait(
        client, ask(run="r2", messages=[question, {"id": "u2", "role": "user", "content": "again"}])
    )
    assert answer["id"] not in [message["id"] for message in thread["messages"]]
    assert thread["feedback"] == []


@pytest.mark.durable
async def test_a_delta_has_what_is_new(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), QUESTION)
    whole = await send_command(client, "delta", threadId="t1")
    assert (whole["messages"], whole["order"], whole["state"]) == ([QUESTION], ["m1"], {})
    nothing = await send_command(client, "delta", threadId="t1", since=whole["continuationToken"])
    assert nothing["messages"] == []
    assert not {"order", "state"} & nothing.keys()
    await store_conversation(
        store_of(client), QUESTION, ANSWER, run="r2", state={"n": 2}, turn=ThreadStatus.CLIENT_TOOL_TURN
    )
    news = await send_command(client, "delta", threadId="t1", since=nothing["continuationToken"])
    assert (news["messages"], news["state"], news["status"]) == ([ANSWER], {"n": 2}, "client_tool_turn")
    assert news["continuationToken"] != nothing["continuationToken"]


async def test_a_thread_of_somebody_else_is_not_there(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), owner="session:ann")
    ann, bob = (client.session(name) for name in ("ann", "bob"))
    assert [thread["threadId"] for thread in (await send_command(ann, "list"))["threads"]] == ["t1"]
    for stranger in (bob, client):
        assert await send_command(stranger, "list") == {"threads": []}
        for kind, fields in {
            "get": {},
            "delta": {},
            "transcript": {},
            "rename": {"title": "Mine"},
            "delete": {},
            "fork": {"messageId": "m1"},
            "feedback": {"messageId": "m4", "sentiment": "positive"},
        }.items():
            refused = await refusal(stranger, kind, threadId="t1", **fields)
            assert refused.code == "THREAD_NOT_FOUND"
            assert refused.message == (await refusal(stranger, kind, threadId="nowhere", **fields)).message
    assert (await send_command(ann, "get", threadId="t1"))["messages"] == list(TALK)


@pytest.mark.wire
async def test_a_thread_that_no_event_can_hold_is_refused_or_sent_whole(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(
        store_of(client), *({"id": f"m{n}", "role": "user", "content": "x" * 900_000} for n in range(10))
    )
    if client.transport == "sse":
        assert (await refusal(client, "get", threadId="t1")).code == "PAYLOAD_TOO_LARGE"
    else:
        assert len(json.dumps(await send_command(client, "get", threadId="t1"))) > 9_000_000
    assert (await send_command(client, "list"))["threads"][0]["threadId"] == "t1"


async def test_feedback_is_given_and_given_again(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    client.clock.advance(50)
    where = {"threadId": "t1", "messageId": "m4"}
    first = await send_command(
        client, "feedback", **where, sentiment="negative", categories=["slow", "other"], notes="hm"
    )
    said = {"sentiment": "negative", "categories": ["other", "slow"], "notes": "hm"}
    assert first == {**where, **said, "createdAt": START + 50, "changedAt": START + 50}
    client.clock.advance(50)
    second = await send_command(client, "feedback", **where, sentiment="positive")
    better = {"sentiment": "positive", "categories": [], "createdAt": START + 50, "changedAt": START + 100}
    assert second == {**where, **better}
    assert (await send_command(client, "get", threadId="t1"))["feedback"] == [{"messageId": "m4", **better}]


async def test_only_what_an_assistant_said_is_rated(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    for message, role in (("m1", "user"), ("m3", "tool")):
        refused = await refusal(client, "feedback", threadId="t1", messageId=message, sentiment="positive")
        assert (refused.code, refused.message) == (
            "VALIDATION_ERROR",
            f"messageId: is a message of role {role}, not assistant.",
        )
    refused = await refusal(client, "feedback", threadId="t1", messageId="m9", sentiment="positive")
    assert refused.code == "THREAD_NOT_FOUND"
