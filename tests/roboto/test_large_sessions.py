"""Large sessions are read in turns and within the bytes in flight, and polls that wait hold none of them."""

import asyncio
import json
import threading
from collections.abc import Mapping

import pytest
from ag_ui.core import Message

from agui_container.engine.admission.quota import IdentityQuota, Limit
from agui_container.ports.records import GoalStatus, StoredGoal, ThreadDelta
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.offload import LARGE_BYTES
from agui_container.transports.caller_middleware import SESSION_HEADER
from agui_container.transports.roboto import turn
from agui_container.transports.roboto.messages import ASSISTANT, SessionMessage
from agui_container.transports.roboto.records import SessionView, goal_records
from agui_container.transports.roboto.snapshot import parse_history
from agui_container.transports.roboto.views import SessionClient, SessionReader
from tests.counted_bytes import record_used_bytes
from tests.engine.conversations import QUESTION, store_conversation
from tests.engine.doubles import bytes_in_flight, caller, eventually, forever, make_service
from tests.requirements import requirement
from tests.roboto.conftest import Api, serving_api

ROOM = 10 * LARGE_BYTES


def client_of(quota: IdentityQuota) -> SessionClient:
    """A client that asks once."""
    return SessionClient(caller(), quota, knows_context=True, knows_reset=True, errors_as_text=False)


def used_bytes(quota: IdentityQuota) -> int:
    return quota.amounts(Limit.BYTES_IN_FLIGHT)[0].used


async def reader_of(size: int) -> SessionReader:
    """A reader of one session with a message of this size."""
    service = make_service(forever)
    await store_conversation(service.cluster.store, {**QUESTION, "content": "x" * size})
    return SessionReader(service)


@requirement("caller.loop")
@pytest.mark.parametrize(("size", "apart"), [(LARGE_BYTES // 2, False), (2 * LARGE_BYTES, True)])
async def test_a_large_session_is_built_and_written_off_the_event_loop(size: int, *, apart: bool) -> None:
    reader = await reader_of(size)
    thread = await reader.read(client_of(bytes_in_flight(ROOM)), "t1", lambda _: threading.get_ident())
    assert (thread != threading.get_ident()) == apart


@requirement("caller.loop")
async def test_a_session_for_which_there_is_no_room_is_refused_before_it_is_built() -> None:
    reader, built = await reader_of(ROOM), list[SessionView]()
    with pytest.raises(AppError) as refused:
        await reader.read(client_of(bytes_in_flight(ROOM)), "t1", built.append)
    assert (refused.value.code, built) == (ErrorCode.RATE_LIMIT_EXCEEDED, [])


@requirement("caller.loop")
async def test_a_session_counts_only_while_it_is_read() -> None:
    reader, quota = await reader_of(ROOM // 2), bytes_in_flight(ROOM)
    client = client_of(quota)
    used = [await reader.read(client, "t1", lambda _: used_bytes(quota)) for _ in range(3)]
    assert [size > ROOM // 2 for size in used] == [True] * 3
    assert used_bytes(quota) == 0


@requirement("caller.loop")
async def test_the_thread_before_a_run_that_is_followed_counts_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted, used = list[int](), record_used_bytes(monkeypatch)

    def recorded(delta: ThreadDelta) -> list[Message]:
        counted.append(used[-1])
        return parse_history(delta)

    async with serving_api() as api:
        held = await api.finished(await api.start(LARGE_BYTES * "x"))
        monkeypatch.setattr(turn, "parse_history", recorded)
        body = {"message": {"role": "user", "content": [{"text": "hello"}]}}
        await api.data("POST", f"/{held['thread_id']}/messages", body)
        await eventually(lambda: bool(counted))
        assert counted[0] > LARGE_BYTES
        await eventually(lambda: used[-1] == 0)


@requirement("caller.streams")
async def test_polls_that_wait_count_as_streams_of_their_caller() -> None:
    async with serving_api(caller_limits='{"streams": 2}', limit_by="session") as api:
        api.http.headers[SESSION_HEADER] = "session"
        seen = await api.start("wait 60")
        while "Waiting" not in json.dumps(seen.get("messages_by_idx")):  # behind it the agent is silent
            seen = {**seen, **await api.delta(seen)}
        polls = [asyncio.create_task(poll(api, seen)) for _ in range(2)]
        done, waiting = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in done] == [(429, "RobotoLimitExceededException")]
        for task in waiting:
            task.cancel()


async def poll(api: Api, record: Mapping[str, object]) -> tuple[int, str]:
    """The status of a poll, and the class of its error."""
    status, error, _ = await api.error("GET", f"/{record['thread_id']}/delta?next_token={record['continuation_token']}")
    return status, error


@requirement("roboto.goals")
def test_the_call_that_achieved_a_goal_is_found_whatever_the_order_of_its_members() -> None:
    def use(name: str, **data: object) -> dict[str, object]:
        return {"content_type": "tool_use", "tool_use_id": name, "input": data}

    earlier, later = use("earlier", a=1, b=2), use("later", b=2, a=1)
    messages = [SessionMessage(ASSISTANT, 1.0, [name], [block]) for name, block in (("m0", earlier), ("m1", later))]
    goal = StoredGoal("r", 0, "g", b"{}", 1.0, GoalStatus.ACHIEVED, b'{"a": 1, "b": 2}', 2.0)
    found = [goal_records([goal], messages, {"r": (name, [])})[0]["achieve_tool_use_id"] for name in ("m0", "m1")]
    assert found == ["earlier", "later"]
