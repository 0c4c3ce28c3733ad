"""Files over HTTP and as commands: an upload, its owner, what a model and an agent read, and their end."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from ag_ui.core import RunAgentInput
from starlette.testclient import TestClient

from agui_container import Assistant
from agui_container.main import create_app
from agui_container.ports import RunContext
from agui_container.settings import Settings
from tests.agents.upstream.servers import Item, Server
from tests.engine.doubles import Json, ask
from tests.models.watched_model import WatchedModel, prompts_as_json
from tests.web.responses import brief

URL = "http://localhost:8080"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20)


@asynccontextmanager
async def client_of(agent: object = brief, **settings: object) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(agent, Settings.model_validate(settings))
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url=URL) as http:
        yield http


async def put(http: httpx.AsyncClient, data: bytes = PICTURE, **options: object) -> Json:
    answer = await http.post("/files?name=a.png", content=data, **options)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    stored: Json = answer.json()
    return stored


def naming(file_id: str, kind: str = "image", provider: str | None = "agui", run: str = "r1") -> Json:
    source = {"type": "file", "value": file_id, "provider": provider}
    return {**ask(run=run), "messages": [{"id": "u1", "role": "user", "content": [{"type": kind, "source": source}]}]}


async def events_of(http: httpx.AsyncClient, body: Json) -> list[Json]:
    answer = await http.post("/invocations", json=body)
    return [json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n") if line.startswith("data: ")]


async def command(http: httpx.AsyncClient, kind: str, **fields: object) -> Json:
    event = (await events_of(http, {"command": {"type": kind, **fields}}))[-2:][0]
    found: Json = event.get("value", event)
    return found


@pytest.mark.parametrize(
    ("sent", "name", "kind"),
    [
        (
            {"content": PICTURE, "params": {"name": "a.png"}, "headers": {"content-type": "image/PNG; x=1"}},
            "a.png",
            "image/png",
        ),
        ({"content": PICTURE, "params": {"name": "a.png"}}, "a.png", "image/png"),
        ({"content": PICTURE}, "", "application/octet-stream"),
        ({"files": {"file": ("../c\n.pdf", PICTURE, "application/pdf")}}, None, "application/pdf"),
        ({"data": {"note": "x"}, "files": {"any": ("d.txt", PICTURE, "text/plain")}}, "d.txt", "text/plain"),
    ],
    ids=["raw", "curl", "nameless", "form", "form with fields"],
)
async def test_a_file_is_uploaded_as_it_is_or_as_a_form_and_read_again(sent: Json, name: str | None, kind: str) -> None:
    async with client_of() as http:
        stored = (await http.post("/files", **sent)).json()
        assert stored["bytes"] == len(PICTURE)
        assert stored["mimeType"] == kind
        if name is not None:
            assert stored["name"] == name
        assert not {"/", "\n"} & set(stored["name"])
        read = await http.get(f"/files/{stored['id']}")
        assert read.content == PICTURE
        assert read.headers["content-type"] == kind
        assert read.headers["content-disposition"].startswith("attachment")
        assert read.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        ({"content": b""}, 400, "data: the file is empty."),
        ({"content": b"x", "headers": {"content-type": "nonsense"}}, 400, "mimeType: must be a type and a subtype"),
        ({"content": b"x" * 2_000}, 413, "The body has more than 1000 bytes."),
        ({"files": {"file": ("a", b"x" * 2_000)}}, 413, "The body has more than 1000 bytes."),
        ({"data": {"a": "b"}, "files": {}}, 200, ""),
        ({"content": b"--x", "headers": {"content-type": "multipart/form-data"}}, 400, 'boundary in multipart."'),
        (
            {"content": b"--x--\r\n", "headers": {"content-type": "multipart/form-data; boundary=x"}},
            400,
            "The form has no file.",
        ),
    ],
)
async def test_what_is_no_file_is_refused(sent: Json, status: int, message: str) -> None:
    async with client_of(max_body_bytes=1_000) as http:
        answer = await http.post("/files", **sent)
        assert answer.status_code == status
        assert message in answer.text


async def test_a_file_is_its_owners_alone() -> None:
    header = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
    mine, yours = {header: "m" * 40}, {header: "y" * 40}
    async with client_of(scope="session") as http:
        file_id = (await put(http, headers=mine))["id"]
        for method in ("GET", "DELETE"):
            answer = await http.request(method, f"/files/{file_id}", headers=yours)
            assert (answer.status_code, "FILE_NOT_FOUND" in answer.text) == (404, True)
        assert (await http.get(f"/files/{file_id}", headers=mine)).status_code == 200
        gone = {"id": file_id, "fileId": file_id, "deleted": True}
        assert (await http.delete(f"/files/{file_id}", headers=mine)).json() == gone
        assert (await http.get(f"/files/{file_id}", headers=mine)).status_code == 404


async def test_the_commands_do_the_same_for_clients_without_routes() -> None:
    data = base64.b64encode(PICTURE).decode()
    async with client_of() as http:
        stored = await command(http, "files.put", data=data, mimeType="image/png", name="a.png")
        assert stored.items() >= {"bytes": len(PICTURE), "mimeType": "image/png", "name": "a.png"}.items()
        assert (await command(http, "files.get", fileId=stored["id"]))["data"] == data
        assert (await command(http, "files.delete", fileId=stored["id"]))["deleted"] is True
        assert (await command(http, "files.get", fileId=stored["id"]))["code"] == "FILE_NOT_FOUND"
        assert (await command(http, "files.put", data="no base64!"))["message"].startswith("data: must be base64")


def test_an_answer_over_a_socket_has_the_id_of_its_request() -> None:
    with TestClient(create_app(brief, Settings())) as http, http.websocket_connect("/ws") as socket:
        socket.send_json({"command": {"type": "files.put", "data": "eA=="}, "id": 7})
        stored = socket.receive_json()
        assert (stored["id"], http.get(f"/files/{stored['fileId']}").content) == (7, b"x")


async def test_a_model_reads_the_bytes_and_the_thread_keeps_the_handle() -> None:
    model = WatchedModel()
    async with client_of(Assistant(model)) as http:
        file_id = (await put(http))["id"]
        assert (await events_of(http, naming(file_id)))[-1]["type"] == "RUN_FINISHED"
        (part,) = prompts_as_json(model.prompts)[0]["messages"][-1]["content"]
        data = base64.b64encode(PICTURE).decode()
        assert part == {"type": "image", "source": {"type": "data", "value": data, "mimeType": "image/png"}}
        thread = (await http.get("/threads/t1")).json()
        assert thread["messages"][0]["content"][0]["source"]["value"] == file_id


@pytest.mark.parametrize(("provider", "sent"), [("agui", "gone"), ("openai", "file-1"), (None, "file-1")])
async def test_a_handle_that_cannot_be_resolved_stays_one(provider: str | None, sent: str) -> None:
    model = WatchedModel()
    async with client_of(Assistant(model)) as http:
        body = naming(sent, provider=provider)
        body["messages"][0]["content"].append({"type": "text", "text": "look"})
        await events_of(http, body)
        assert prompts_as_json(model.prompts)[0]["messages"][-1]["content"][0]["source"]["value"] == sent


async def test_another_server_gets_the_bytes_and_the_thread_keeps_the_handle() -> None:
    async def answer(request: Json) -> AsyncIterator[Item]:
        yield {"type": "MESSAGES_SNAPSHOT", "messages": request["messages"]}

    server = Server(answer)
    async with client_of(server.app) as http:
        body = naming((await put(http))["id"])
        events = await events_of(http, body)
        sent: Any = server.requests[0]["messages"]
        assert base64.b64decode(sent[0]["content"][0]["source"]["value"]) == PICTURE
        assert events[1]["messages"] == body["messages"]
        assert (await http.get(f"/threads/{body['threadId']}")).json()["messages"] == body["messages"]


async def test_an_agent_reads_a_file_by_its_id() -> None:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[str]:
        for part in input.messages[-1].content or ():
            file = await ctx.file(part.source.value)  # type: ignore[union-attr]
            yield f"{file.name} {file.mime_type} {len(file.data)}" if file else "nothing"

    async with client_of(agent) as http:
        file_id = (await put(http))["id"]
        said = [event["delta"] for event in await events_of(http, naming(file_id)) if "delta" in event]
        assert said == [f"a.png image/png {len(PICTURE)}"]
        said = [event["delta"] for event in await events_of(http, naming("other", run="r2")) if "delta" in event]
        assert said == ["nothing"]


@pytest.mark.parametrize("first", ["t1", "f1", "f2"])
async def test_files_are_deleted_with_the_last_thread_that_names_them(first: str) -> None:
    async with client_of() as http:
        named, other = (await put(http))["id"], (await put(http))["id"]
        await events_of(http, naming(named))
        for thread, fork in (("t1", "f1"), ("f1", "f2")):
            assert await command(http, "threads.fork", threadId=thread, messageId="u1", newThreadId=fork)
        for thread in (first, *sorted({"f1", "f2", "t1"} - {first})):
            assert (await http.get(f"/files/{named}")).status_code == 200
            assert (await http.delete(f"/threads/{thread}")).status_code == 200
        assert (await http.get(f"/files/{named}")).status_code == 404
        assert (await http.get(f"/files/{other}")).status_code == 200


async def test_a_server_without_a_place_says_so() -> None:
    async with client_of(files="off") as http:
        answer = await http.post("/files", content=b"x")
        assert answer.status_code == 400
        assert "This server has no place for files (AGUI_FILES)." in answer.text
        assert (await http.get("/files/f1")).status_code == 404
        assert "files.put" not in (await http.get("/capabilities")).json()["custom"]["commands"]
