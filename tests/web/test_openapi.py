"""The OpenAPI document matches the server."""

import json
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agui_container.main import build_app
from agui_container.settings import Settings
from agui_container.web.requests import THREAD_ROUTES
from tests.engine.doubles import Json, ask

NAMED = ["tea=assistant"]


def http_client_of(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8080")


@pytest.fixture
def app() -> FastAPI:
    return build_app(Settings(agents=NAMED))


@pytest.fixture(scope="module")
def document() -> Json:
    return build_app(Settings(agents=NAMED)).openapi()


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


CONTRACT = {("POST", "/invocations"), ("GET", "/ws"), ("GET", "/ping")}


def test_the_contract_and_the_routes_of_runs_threads_and_files_are_in_it(document: Json) -> None:
    described = {(method, path) for method, path, _ in operations(document)}
    assert described > CONTRACT
    for method, path in CONTRACT - {("GET", "/ping")}:
        assert (method, f"/agents/{{agent}}{path}") in described
    assert described >= {(method, path) for path, method, _ in THREAD_ROUTES}
    assert described >= {("POST", "/files"), ("GET", "/files/{fileId}"), ("DELETE", "/files/{fileId}")}
    assert described >= {("GET", "/runs"), ("GET", "/runs/{runId}/events"), ("POST", "/runs/{runId}/cancel")}


def check(document: Json, method: str, path: str, answer: httpx.Response) -> None:
    content = document["paths"][path][method.lower()]["responses"]["200"]["content"]
    media_type = answer.headers["content-type"].partition(";")[0]
    assert media_type in content, (method, path, media_type)
    if media_type == "application/json":
        schema = {**content[media_type]["schema"], "components": document["components"]}
        Draft202012Validator(schema).validate(answer.json())


async def test_threads_runs_and_files_are_what_their_schemas_say(document: Json) -> None:
    rules = '[{"tool_pattern": "calculate", "policy": "ask", "reason": "costly"}]'
    app = build_app(Settings.model_validate({"tool_policy": rules}))
    async with app.router.lifespan_context(app), http_client_of(app) as client:

        async def says(method: str, path: str, template: str, body: object = None) -> Json:
            content = None if body is None else json.dumps(body).encode()
            answer = await client.request(method, path, content=content)
            check(document, method, template, answer)
            assert answer.status_code == 200, answer.text
            return answer.json() if answer.headers["content-type"] == "application/json" else {}

        talks = {"t1": "hello", "t2": "fail", "t3": "calculate 1+1"}
        for thread, text in talks.items():
            messages = [{"id": "u1", "role": "user", "content": text}]
            body = ask(thread, f"run-{thread}", messages=messages)
            await says("POST", "/invocations", "/invocations", body)
        runs = (await says("GET", "/runs", "/runs"))["runs"]
        assert {run["status"] for run in runs} >= {"error", "interrupted"}
        assert (await says("GET", "/threads/t3", "/threads/{threadId}"))["waiting"]
        for thread in talks:
            await says("GET", f"/runs/run-{thread}", "/runs/{runId}")
            await says("POST", f"/runs/run-{thread}/cancel", "/runs/{runId}/cancel")
            await says("GET", f"/threads/{thread}/transcript", "/threads/{threadId}/transcript")
            await says("GET", f"/threads/{thread}/delta", "/threads/{threadId}/delta")
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
        file_id = (await says("POST", "/files", "/files", {"any": "bytes"}))["id"]
        await says("DELETE", f"/files/{file_id}", "/files/{fileId}")


async def test_the_examples_work(app: FastAPI, document: Json) -> None:
    content = document["paths"]["/invocations"]["post"]["requestBody"]["content"]["application/json"]
    schema = {**content["schema"], "components": document["components"]}
    async with http_client_of(app) as client:
        for example in content["examples"].values():
            Draft202012Validator(schema).validate(example["value"])
            assert "RUN_FINISHED" in (await client.post("/invocations", json=example["value"])).text
