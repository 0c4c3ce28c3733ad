"""Polls of a session: a delta that waits for news, and sessions that rest."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agui_container.main import build_app
from agui_container.ports import Caller
from agui_container.ports.records import ThreadDelta
from agui_container.protocols.roboto import turns
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.protocols.roboto.conftest import SECONDS, Api, apply, serving_api
from tests.protocols.roboto.test_routes import LOOK, texts
from tests.sse import http_client

pytestmark = pytest.mark.wire

MOMENT = 0.2
"""Seconds that stand for the time that an answer is held back."""


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are held back for a moment only."""
    monkeypatch.setattr(turns, "HOLD_SECONDS", MOMENT)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are held back for longer than a slow machine takes for anything else."""
    monkeypatch.setattr(turns, "HOLD_SECONDS", SECONDS)


@pytest.mark.usefixtures("patient")
async def test_a_delta_waits_while_the_agent_says_nothing_and_answers_when_it_does(api: Api) -> None:
    record = await api.start("wait 1")
    held = {**record, "messages": list(record["messages"])}
    deltas = [await api.delta(held)]
    while deltas[-1]["status"] == "roboto_turn":
        deltas.append(await api.delta({**record, **deltas[-1]}))
    assert len(deltas) <= 5  # and not one for each fifth of a second
    assert all(delta["messages_by_idx"] for delta in deltas)


@pytest.mark.usefixtures("brief")
async def test_a_delta_without_news_says_so_in_the_end(api: Api) -> None:
    record = await api.start("wait 3")
    held = {**record, **await api.delta(record)}
    while (delta := await api.delta(held))["messages_by_idx"]:
        held = {**held, **delta}
    assert (delta["status"], delta["goals"], delta["messages_by_idx"]) == ("roboto_turn", None, {})


@pytest.mark.usefixtures("patient")
async def test_polls_of_a_session_that_rests_are_answered_at_once(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    async with asyncio.timeout(SECONDS / 2):
        once = {**held, **await api.delta(held)}
        again = await api.delta(once)
    assert once["messages_by_idx"] == again["messages_by_idx"] == {}
    await api.send(held, "stream 2")
    delta = await api.delta(again | once)
    assert (delta["messages_by_idx"]["2"]["content"][0]["text"], delta["reset_from_message_sequence_num"]) == (
        "stream 2",
        2,
    )


@pytest.mark.usefixtures("brief")
async def test_a_poll_of_a_session_that_rests_sees_what_others_have_done_before_it(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    await api.http.patch(f"/threads/{held['thread_id']}", json={"title": "Renamed"})
    assert (await api.delta(held))["title"] == "Renamed"


async def test_a_run_of_another_client_that_was_polled_goes_on_to_its_end() -> None:
    async with serving_api(on_disconnect="cancel") as api:
        message = {"id": "u", "role": "user", "content": "wait 0.5"}
        run = {"threadId": "t", "runId": "r", "messages": [message]}
        async with api.http.stream("POST", "/invocations", json=run) as stream:
            await anext(stream.aiter_lines())
            record = await api.data("GET", "/t")
        held = await api.finished(record)
    assert (held["status"], held["messages"][-1]["status"]) == ("user_turn", "completed")


async def test_the_answer_is_shown_before_the_store_has_its_end_and_only_polls_read_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = build_app(Settings(roboto=True))
    async with serving(app) as url, http_client(url) as http:
        api, store, threads = Api(http), app.state.service.cluster.store, app.state.service.threads
        may_end, reads, finish, delta_of = asyncio.Event(), list[str](), store.finish, threads.delta

        async def finish_late(*args: object) -> None:
            await may_end.wait()
            await finish(*args)

        async def counted(caller: Caller, thread_id: str, **options: Any) -> ThreadDelta:  # noqa: ANN401 - those of delta
            reads.append(thread_id)
            found: ThreadDelta = await delta_of(caller, thread_id, **options)
            return found

        monkeypatch.setattr(store, "finish", finish_late)
        held = await api.start("stream 2")
        while texts(held)[1:] != ["hello world, hello world, "]:
            apply(held, await api.delta(held))
        delta = await api.delta(held)
        assert (delta["status"], delta["messages_by_idx"]) == ("roboto_turn", {})
        monkeypatch.setattr(threads, "delta", counted)
        for _ in range(20):
            await http.get("/ping")
        assert reads == []
        may_end.set()
        assert (await api.finished(held))["status"] == "user_turn"


async def test_a_history_that_was_edited_elsewhere_is_sent_anew_to_clients_that_can_drop_it(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    thread = held["thread_id"]
    edited = [{"id": "new", "role": "user", "content": "stream 2"}]
    first = (await api.http.get(f"/threads/{thread}")).json()["messages"][0]["id"]
    run = {"threadId": thread, "runId": "r2", "messages": [{**edited[0], "id": first}]}
    await api.http.post("/invocations", json=run)
    new = await api.delta(held)
    assert (new["reset_from_message_sequence_num"], len(new["messages_by_idx"])) == (0, 2)
    old = await Api(api.http, "/v1/ai/chats").delta(held)
    assert (old["reset_from_message_sequence_num"], old["messages_by_idx"]) == (None, {})


async def test_sessions_are_there_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/sessions.db"
    async with serving_api(store=store) as api:
        held = await api.finished(await api.start("fail", client_tools=[LOOK]))
        await api.data("POST", f"/{held['thread_id']}/pin", {"pinned": True})
    async with serving_api(store=store) as api:
        record = await api.data("GET", f"/{held['thread_id']}")
        assert record["messages"][1]["status"] == "failed"
        assert record["pinned_at"] is not None
        assert (await api.delta(held))["messages_by_idx"] == {}
        assert (await api.say(held, "call client_look {}"))["status"] == "client_tool_turn"
