"""The routes of threads: the answers of the commands, on addresses that are exact."""

import json
from urllib.parse import quote

import httpx
import pytest

from tests.behaviour.over_sse import OverSse
from tests.conftest import Serve
from tests.engine.conversations import ANSWER, QUESTION, TALK, store_conversation
from tests.engine.doubles import Json
from tests.sse import http_client
from tests.web.responses import brief, refusal_event

ODD = ["a/transcript", "transcript", "a%2Fb", "?x=1#ä ö", "\0\n\\", "..x+😀"]


async def ask_for(
    client: OverSse, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    async with http_client(client.url) as http:
        return await http.request(method, path, content=content, headers=headers)


async def get_json(client: OverSse, method: str, path: str, body: object = None) -> Json:
    answer = await ask_for(client, method, path, body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    found: Json = answer.json()
    return found


async def test_every_route_answers_as_its_command(serve: Serve) -> None:
    client, _ = await serve(brief)
    store = client.service.cluster.store
    await store_conversation(store, title="Sums")
    said = {"sentiment": "negative", "categories": ["slow"]}
    routes: list[tuple[str, str, object, Json]] = [
        ("GET", "/threads", None, {"type": "threads.list"}),
        ("GET", "/threads?limit=1", None, {"type": "threads.list", "limit": 1}),
        ("GET", "/threads/t1", None, {"type": "threads.get", "threadId": "t1"}),
        ("GET", "/threads/t1?messages=true", None, {"type": "threads.get", "threadId": "t1"}),
        (
            *("GET", "/threads/t1?messages=false", None),
            {"type": "threads.get", "threadId": "t1", "messages": False},
        ),
        ("GET", "/threads/t1?limit=2", None, {"type": "threads.get", "threadId": "t1", "limit": 2}),
        (
            *("GET", "/threads/t1?limit=2&before=m3", None),
            {"type": "threads.get", "threadId": "t1", "limit": 2, "before": "m3"},
        ),
        ("GET", "/threads/t1/delta", None, {"type": "threads.delta", "threadId": "t1"}),
        ("GET", "/threads/t1/delta?since=1.1", None, {"type": "threads.delta", "threadId": "t1", "since": "1.1"}),
        ("PATCH", "/threads/t1", {"title": "X"}, {"type": "threads.rename", "threadId": "t1", "title": "X"}),
        (
            "POST",
            "/threads/t1/messages/m4/feedback",
            said,
            {"type": "threads.feedback", "threadId": "t1", "messageId": "m4", **said},
        ),
    ]
    for method, path, body, command in routes:
        answer = await get_json(client, method, path, body)
        assert {"command": command["type"], **answer} == await client.command({"command": command}), path
    fork = await get_json(client, "POST", "/threads/t1/fork", {"messageId": "m1"})
    assert (await get_json(client, "GET", f"/threads/{fork['threadId']}"))["messages"] == [QUESTION]
    assert await get_json(client, "DELETE", "/threads/t1") == {"threadId": "t1", "deleted": True}
    assert [thread["threadId"] for thread in (await get_json(client, "GET", "/threads"))["threads"]] == [
        fork["threadId"]
    ]


@pytest.mark.parametrize("name", ODD)
async def test_an_id_of_any_characters_has_its_own_address(serve: Serve, name: str) -> None:
    client, _ = await serve(brief)
    store = client.service.cluster.store
    await store_conversation(store, {**ANSWER, "id": name}, thread=name)
    await store_conversation(store, thread="a")
    address = f"/threads/{quote(name, safe='')}"
    assert (await get_json(client, "GET", address))["threadId"] == name
    assert (await get_json(client, "PATCH", address, {"title": "X"}))["threadId"] == name
    assert (await ask_for(client, "GET", f"{address}/transcript")).text.startswith("X\n")
    said = await get_json(
        client, "POST", f"{address}/messages/{quote(name, safe='')}/feedback", {"sentiment": "positive"}
    )
    assert (said["threadId"], said["messageId"]) == (name, name)
    assert (await get_json(client, "DELETE", address))["threadId"] == name
    assert (await get_json(client, "GET", "/threads/a"))["messages"] == list(TALK)


@pytest.mark.parametrize("path", ["/threads/a/b", "/threads/", "/threads/a/b/transcript", "/threads/a/", "/threads//"])
async def test_a_plain_slash_is_never_part_of_an_id(serve: Serve, path: str) -> None:
    client, _ = await serve(brief)
    for name in ("a/b", "a", "/", "b"):
        await store_conversation(client.service.cluster.store, thread=name)
    answer = await ask_for(client, "GET", path)
    assert (answer.status_code, refusal_event(answer)["message"]) == (404, "Not Found.")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "/threads?limit=x", None, 400, "limit: Input should be a valid integer"),
        ("PATCH", "/threads/t1", b"", 400, "title: Field required"),
        ("PATCH", "/threads/t1", [], 400, "The body must be a JSON object."),
        ("PATCH", "/threads/t1", {"title": "x" * 3_000}, 413, "The body has more than"),
        ("POST", "/threads/t1/fork", {"messageId": "m9"}, 404, "There is no such thread, or no such message in it."),
        ("POST", "/threads/t1/fork", {"messageId": "m1", "threadId": "theirs"}, 200, ""),
        ("GET", "/threads/theirs", None, 404, "There is no such thread."),
        ("GET", "/threads/t1?threadId=theirs", None, 200, ""),
        ("GET", "/threads/%ff", None, 404, "There is no such thread."),
        ("PUT", "/threads/t1", {}, 405, "Method Not Allowed."),
    ],
)
async def test_an_impossible_request_is_refused_like_any_other(  # noqa: PLR0913, PLR0917 - the table
    serve: Serve, method: str, path: str, body: object, status: int, message: str
) -> None:
    client, _ = await serve(brief, max_body_bytes=2_000, error_status="stream")
    await store_conversation(client.service.cluster.store)
    await store_conversation(client.service.cluster.store, thread="theirs", owner="session:other")
    answer = await ask_for(client, method, path, body)
    assert answer.status_code == status
    if message:
        assert refusal_event(answer)["message"].startswith(message)
