"""The OpenAPI document matches the server, and its page shows the whole document."""

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel
from starlette.routing import Mount, Route, WebSocketRoute

from agui_container.main import build_app
from agui_container.settings import Settings
from tests.engine.doubles import Json, ask
from tests.requirements import requirement

NAMED = ["tea=assistant"]
"""Agents with paths of their own."""

PATHS = {
    "agent": "tea",
    "runId": "nobody",
    "threadId": "nowhere",
    "messageId": "nothing",
    "name": "app.js",
    "sessionId": "nowhere",
    "index": "0",
}
"""A value of each path parameter."""


def http_client_of(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8080")


@pytest.fixture
def app() -> FastAPI:
    return build_app(Settings(agents=NAMED))


@pytest.fixture
async def document(app: FastAPI) -> Json:
    async with http_client_of(app) as client:
        answer = await client.get("/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    found: Json = answer.json()
    return found


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Iterate over the methods, paths and operations."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def values(node: object, key: str) -> Iterator[Any]:
    """Yield the values of a key at any depth of a document."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from values(value, key)
    elif isinstance(node, list):
        for item in node:
            yield from values(item, key)


def routes_of(app: FastAPI) -> set[tuple[str, str]]:
    """Return the method and path of each route."""
    found = set()
    for route in app.routes:
        assert isinstance(route, Route | WebSocketRoute)
        methods = (route.methods or set()) - {"HEAD"} if isinstance(route, Route) else {"GET"}
        found |= {(method, route.path.replace(":path", "")) for method in methods}
    return found


# --- the document -----------------------------------------------------------------------------------------------------


@requirement("openapi.routes")
@pytest.mark.parametrize(
    "settings", [Settings(), Settings(console=False), Settings(roboto=False), Settings(agents=NAMED)]
)
def test_the_document_has_the_routes_of_the_application_and_no_others(settings: Settings) -> None:
    app = build_app(settings)
    assert {(method, path) for method, path, _ in operations(app.openapi())} == routes_of(app)


@requirement("openapi.valid")
def test_every_reference_leads_somewhere_and_every_name_is_unique(document: Json) -> None:
    schemas = document["components"]["schemas"]
    assert set(values(document["paths"], "$ref")) | set(values(schemas, "$ref")) == {
        f"#/components/schemas/{name}" for name in schemas
    }
    names = [operation["operationId"] for *_, operation in operations(document)]
    assert len(names) == len(set(names))


@requirement("openapi.valid")
def test_every_schema_is_one_of_json_schema(document: Json) -> None:
    for schema in [*values(document["paths"], "schema"), *document["components"]["schemas"].values()]:
        Draft202012Validator.check_schema(schema)
        assert not {"ge", "le"} & {*schema}  # names that pydantic gives what it cannot express


@requirement("openapi.valid")
def test_every_parameter_of_a_path_is_declared(document: Json) -> None:
    for _, path, operation in operations(document):
        declared = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]
        assert declared == re.findall(r"{(\w+)}", path)


@requirement("openapi.routes")
async def test_routes_that_a_program_adds_are_in_it(app: FastAPI) -> None:
    class Room(BaseModel):
        number: int

    @app.get("/rooms/{number}", tags=["Rooms"], summary="<b>Read</b> a room")
    def room(number: int) -> Room:
        return Room(number=number)

    async with http_client_of(app) as client:
        document = (await client.get("/openapi.json")).json()
        page = (await client.get("/docs")).text
    assert {"/rooms/{number}", "/ping"} <= document["paths"].keys()
    assert {"Room", "RunAgentInput"} <= document["components"]["schemas"].keys()
    assert "&lt;b&gt;Read&lt;/b&gt; a room" in page
    assert "<b>" not in page


# --- comparison with the server ---------------------------------------------------------------------------------------


def check(document: Json, method: str, path: str, answer: httpx.Response) -> None:
    """Check that the document has the status, the media type and the content of an answer."""
    responses = document["paths"][path][method.lower()]["responses"]
    assert str(answer.status_code) in responses, (method, path, answer.status_code, answer.text)
    content = responses[str(answer.status_code)].get("content", {})
    media_type = answer.headers["content-type"].partition(";")[0]
    assert media_type in content or "*/*" in content, (method, path, media_type)
    if media_type == "application/json":
        schema = {**content[media_type]["schema"], "components": close_schemas(document["components"])}
        Draft202012Validator(schema).validate(answer.json())


def close_schemas(node: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the schemas without properties that they do not name."""
    if isinstance(node, list):
        return [close_schemas(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {name: close_schemas(value) for name, value in node.items()}
    return {"additionalProperties": False, **made} if isinstance(made.get("properties"), dict) else made


def url(path: str) -> str:
    return re.sub(r"{(\w+)}", lambda found: PATHS[found[1]], path)


@requirement("openapi.answers")
async def test_every_operation_answers_with_what_it_declares(app: FastAPI, document: Json) -> None:
    async with http_client_of(app) as client:
        for method, path, _ in operations(document):
            if path.endswith("/ws"):
                continue
            check(document, method, path, await client.request(method, url(path)))
            foreign = {"origin": "http://evil.example"}
            check(document, method, path, await client.request(method, url(path), headers=foreign))
            long = {"x-amzn-bedrock-agentcore-runtime-session-id": 300 * "x"}
            check(document, method, path, await client.request(method, url(path), headers=long))


@requirement("openapi.answers")
async def test_threads_and_runs_are_what_their_schemas_say(document: Json) -> None:
    rules = '[{"tool_pattern": "calculate", "policy": "ask", "reason": "costly"}]'
    app = build_app(Settings.model_validate({"tool_policy": rules}))
    goal = {"goals": [{"type": "sum", "description": "a sum", "schema": {"type": "object"}}]}
    async with http_client_of(app) as client:

        async def says(method: str, path: str, template: str, body: object = None) -> Json:
            content = None if body is None else json.dumps(body).encode()
            answer = await client.request(method, path, content=content)
            check(document, method, template, answer)
            assert answer.status_code == 200, answer.text
            return answer.json() if answer.headers["content-type"] == "application/json" else {}

        talks = {"t1": "hello", "t2": "fail", "t3": "calculate 1+1"}
        for thread, text in talks.items():
            messages = [{"id": "u1", "role": "user", "content": text}]
            body = ask(thread, f"run-{thread}", messages=messages, forwardedProps=goal if thread == "t1" else {})
            await says("POST", "/invocations", "/invocations", body)
        runs = (await says("GET", "/runs", "/runs"))["runs"]
        assert {run["status"] for run in runs} >= {"error", "interrupted"}
        for thread in talks:
            await says("GET", f"/runs/run-{thread}", "/runs/{runId}")
            await says("POST", f"/runs/run-{thread}/cancel", "/runs/{runId}/cancel")
            await says("GET", f"/threads/{thread}/transcript", "/threads/{threadId}/transcript")
            await says("GET", f"/threads/{thread}/delta", "/threads/{threadId}/delta")
        assert (await says("GET", "/threads/t3", "/threads/{threadId}"))["waiting"]
        assert (await says("GET", "/threads/t1", "/threads/{threadId}"))["goals"]
        assert "messages" not in await says("GET", "/threads/t1?messages=false", "/threads/{threadId}")
        messages = (await says("GET", "/threads/t1", "/threads/{threadId}"))["messages"]
        spoken = next(message["id"] for message in messages if message["role"] == "assistant")
        await says("PATCH", "/threads/t1", "/threads/{threadId}", {"title": "Tea"})
        feedback = {"sentiment": "negative", "categories": ["other"], "notes": "cold"}
        path = "/threads/{threadId}/messages/{messageId}/feedback"
        await says("POST", f"/threads/t1/messages/{spoken}/feedback", path, feedback)
        assert (await says("GET", "/threads/t1", "/threads/{threadId}"))["feedback"]
        fork = await says("POST", "/threads/t1/fork", "/threads/{threadId}/fork", {"messageId": "u1"})
        assert fork["forkedFrom"]
        assert (await says("GET", "/threads?limit=1", "/threads"))["next"]
        await says("DELETE", "/threads/t1", "/threads/{threadId}")


@requirement("openapi.answers")
def test_bodies_and_parameters_are_the_fields_of_the_commands(document: Json) -> None:
    fork = document["paths"]["/threads/{threadId}/fork"]["post"]["requestBody"]["content"]["application/json"]
    assert (fork["schema"]["properties"].keys(), fork["schema"]["required"]) == (
        {"messageId", "newThreadId"},
        ["messageId"],
    )
    listing = document["paths"]["/threads"]["get"]["parameters"]
    limit = next(each["schema"] for each in listing if each["name"] == "limit")
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 100, 100)


@requirement("openapi.routes")
def test_the_paths_of_an_agent_take_what_those_of_all_agents_take(document: Json) -> None:
    for path, method in (("/invocations", "post"), ("/ws", "get")):
        common, named = (document["paths"][each][method] for each in (path, f"/agents/{{agent}}{path}"))
        assert [each["name"] for each in named["parameters"]] == [
            "agent",
            *(each["name"] for each in common["parameters"]),
        ]
        assert [named.get(part) for part in ("requestBody", "responses")] == [
            common.get(part) for part in ("requestBody", "responses")
        ]


@requirement("openapi.answers")
async def test_the_examples_work(app: FastAPI, document: Json) -> None:
    content = document["paths"]["/invocations"]["post"]["requestBody"]["content"]["application/json"]
    schema = {**content["schema"], "components": document["components"]}
    async with http_client_of(app) as client:
        for example in content["examples"].values():
            Draft202012Validator(schema).validate(example["value"])
            assert "RUN_FINISHED" in (await client.post("/invocations", json=example["value"])).text


# --- the page ---------------------------------------------------------------------------------------------------------


@requirement("openapi.page")
async def test_the_page_shows_every_operation_and_loads_nothing(app: FastAPI, document: Json) -> None:
    async with http_client_of(app) as client:
        page = await client.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert not re.search(r"<(?:script|link|img|iframe)|\bsrc=|https?://[^<]*cdn", page.text)
    for method, path, _ in operations(document):
        assert f'<span class="method">{method}</span> <code>{path}</code>' in unescape(page.text)
    targets, ids = set(re.findall(r'href="#([^"]*)"', page.text)), re.findall(r'id="([^"]*)"', page.text)
    assert targets <= {*ids}
    assert set(ids) == document["components"]["schemas"].keys()


@requirement("openapi.page")
async def test_page_and_document_work_under_a_prefix(app: FastAPI) -> None:
    async with http_client_of(FastAPI(routes=[Mount("/agents/tea", app)])) as client:
        assert 'href="openapi.json"' in (await client.get("/agents/tea/docs")).text
        document = (await client.get("/agents/tea/openapi.json")).json()
    assert document["servers"] == [{"url": "/agents/tea"}]


@requirement("openapi.page", "origin.foreign")
@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
async def test_web_pages_that_may_not_call_read_neither(app: FastAPI, path: str) -> None:
    async with http_client_of(app) as client:
        foreign = await client.get(path, headers={"origin": "http://evil.example"})
        rebound = await client.get(path, headers={"host": "evil.example", "sec-fetch-site": "same-origin"})
    assert (foreign.status_code, rebound.status_code) == (403, 403)
