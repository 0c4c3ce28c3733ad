"""The plain HTTP routes: health, capabilities, runs and their events, and how commands are answered."""

from urllib.parse import quote

import httpx
import pytest
from ag_ui.core import AgentCapabilities

from agui_container.main import build_app
from agui_container.ports.store import StoreUnavailable
from agui_container.settings import Settings
from tests.conftest import Serve
from tests.engine.doubles import START, ask, caller, forever, make_service
from tests.sse import frames_of, http_client
from tests.web.responses import brief, get, post, refusal_event


async def test_ping_says_how_the_server_is(serve: Serve) -> None:
    client, _ = await serve(forever)
    assert (await get(client, "/ping")).json() == {"status": "Healthy", "time_of_last_update": int(START)}
    client.clock.advance(5)
    await (await client.start(ask())).until("RUN_STARTED")
    answers = [await get(client, "/ping") for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    busy = {"status": "HealthyBusy", "time_of_last_update": int(START) + 5}
    assert [answer.json() for answer in answers] == [busy] * 3


async def test_before_it_is_ready_ping_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service(brief)

    async def fail() -> None:
        raise StoreUnavailable

    monkeypatch.setattr(service, "open", fail)
    transport = httpx.ASGITransport(build_app(Settings(), service))
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as http:
        assert (await http.get("/ping")).status_code == 503
        monkeypatch.undo()
        assert (await http.get("/ping")).status_code == 200


async def test_capabilities_are_official_and_the_same_as_the_commands(serve: Serve) -> None:
    client, _ = await serve(brief)
    told = (await get(client, "/capabilities")).json()
    assert told == (await client.command({"command": {"type": "capabilities"}}))["capabilities"]
    assert AgentCapabilities.model_validate(told).identity is not None


@pytest.mark.parametrize("run", ["q/events", "q/cancel", "a/b", "é?&#"])
async def test_every_run_id_has_one_address(serve: Serve, run: str) -> None:
    client, _ = await serve(brief)
    await client.run(ask(run="q"))
    client.clock.advance(1)
    await client.run(ask(run=run))
    address = f"/runs/{quote(run, safe='')}"
    assert (await get(client, address)).json()["runId"] == run
    assert (await get(client, f"{address}/events")).content.startswith(b'id: 1\ndata: {"type":"RUN_STARTED"')


async def test_the_callers_runs_are_listed_newest_first(serve: Serve) -> None:
    client, _ = await serve(brief)
    name = "x-amzn-bedrock-agentcore-runtime-session-id"
    await client.run(ask(run="r1"))
    client.clock.advance(2)
    await client.run(ask(run="r2"))
    await client.with_headers(**{name.replace("-", "_"): "other"}).run(ask(run="r3"))
    newest, oldest = (await get(client, "/runs")).json()["runs"]
    assert (newest["runId"], oldest["runId"]) == ("r2", "r1")
    assert {**newest, "readers": 0} == {
        "runId": "r2",
        "threadId": "t1",
        "status": "finished",
        "startedAt": START + 2,
        "endedAt": START + 2,
        "seconds": 0,
        "events": 3,
        "tokens": 0,
        "readers": 0,
    }
    assert (await get(client, "/runs/r1")).json()["runId"] == "r1"
    for path in ("/runs/r3", "/runs/r1?threadId=t2"):
        answer = await get(client, path)
        assert (answer.status_code, refusal_event(answer)["code"]) == (404, "RUN_NOT_FOUND")


async def test_cancel_by_route_is_idempotent(serve: Serve) -> None:
    client, _ = await serve(forever)
    stream = await client.start(ask())
    await stream.until("RUN_STARTED")
    async with http_client(client.url) as http:
        answers = [await http.post("/runs/r1/cancel") for _ in range(2)]
        missing = await http.post("/runs/nobody/cancel")
    assert [answer.json()["status"] for answer in answers] == ["cancelled", "cancelled"]
    assert (missing.status_code, refusal_event(missing)["code"]) == (404, "RUN_NOT_FOUND")
    assert (await stream.rest())[-1]["outcome"] == {"type": "cancelled"}


@pytest.mark.parametrize(
    ("query", "headers", "first"),
    [
        ("", {}, 1),
        ("?after=2", {}, 3),
        ("", {"last-event-id": "1"}, 2),
        ("?after=2", {"last-event-id": "1"}, 3),
        ("?threadId=t1&after=1", {}, 2),
    ],
)
async def test_a_runs_events_can_be_read_from_anywhere(
    serve: Serve, query: str, headers: dict[str, str], first: int
) -> None:
    client, _ = await serve(brief)
    whole = frames_of((await post(client, ask())).content)
    response = await get(client, f"/runs/r1/events{query}", headers)
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert frames_of(response.content) == whole[first - 1 :]


@pytest.mark.parametrize(("after", "first"), [({}, 2), ({"after": 0}, 2), ({"after": 2}, 3)])
async def test_the_command_attach_reads_on_from_last_event_id_unless_it_names_an_event_itself(
    serve: Serve, after: dict[str, int], first: int
) -> None:
    client, _ = await serve(brief)
    whole = frames_of((await post(client, ask())).content)
    attach = {"command": {"type": "attach", "runId": "r1", **after}}
    response = await post(client, attach, {"last-event-id": "1"})
    assert frames_of(response.content) == whole[first - 1 :]


@pytest.mark.parametrize(("query", "last"), [("", "3"), ("?after=3", "")])
async def test_a_reader_with_all_events_of_an_ended_run_gets_204(serve: Serve, query: str, last: str) -> None:
    client, _ = await serve(brief)
    await client.run(ask())
    headers = {"last-event-id": last, "x-request-id": "req-42"}
    response = await get(client, f"/runs/r1/events{query}", headers)
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["x-request-id"] == "req-42"
    assert "content-type" not in response.headers
    assert (await client.service.runs.list(caller()))[0]["readers"] == 0


@pytest.mark.parametrize(("query", "last"), [("?after=x", ""), ("?after=-1", ""), ("", "abc"), ("?after=9", "")])
async def test_a_bad_cursor_is_refused(serve: Serve, query: str, last: str) -> None:
    client, _ = await serve(brief)
    await client.run(ask())
    response = await get(client, f"/runs/r1/events{query}", {"last-event-id": last})
    assert response.status_code == 400
    assert refusal_event(response)["message"].startswith("after: ")
