"""Invocations: headers, bodies, folded errors, the platform's own errors, and streams that are cut."""

import asyncio
import json

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agui_container.platform.errors import PlatformError
from agui_container.platform.headers import check_allowlist
from agui_container.platform.session import ContainerSession
from tests.engine.doubles import eventually, wait_for_event
from tests.platform.conftest import AttachPlatform
from tests.platform.doubles import (
    HEADER,
    INVOCATIONS,
    RUNTIME,
    SESSION,
    STARTED,
    HeldRun,
    ScriptedContainer,
    events,
)


async def test_the_container_sees_agentcores_headers_and_no_others(attach: AttachPlatform) -> None:
    container = ScriptedContainer()
    site = await attach(
        container, allowed_headers=check_allowlist(["X-Tenant", "x-amzn-bedrock-agentcore-runtime-custom-a"])
    )
    await site.invoke(
        x_tenant="acme",
        x_other="no",
        cookie="no=1",
        user_agent="no",
        x_amzn_bedrock_agentcore_runtime_custom_a="yes",
        x_amzn_bedrock_agentcore_runtime_custom_b="no",
        traceparent="00-1-2-01",
        baggage="a=1",
        authorization="Bearer no",
    )
    [seen] = container.requests
    assert seen.pop("x-amzn-trace-id").startswith("Root=1-")
    assert len(seen.pop("x-amzn-requestid")) == 36
    assert seen.pop("host").startswith("127.0.0.1:")
    assert seen.pop("accept") == "*/*"  # httpx has sent it
    assert seen == {
        "x-tenant": "acme",
        "x-amzn-bedrock-agentcore-runtime-custom-a": "yes",
        "x-amzn-bedrock-agentcore-runtime-session-id": SESSION,
        "traceparent": "00-1-2-01",
        "baggage": "a=1",
        "content-length": "2",
    }


async def test_a_value_that_is_too_long_is_not_passed(attach: AttachPlatform) -> None:
    container = ScriptedContainer()
    site = await attach(container, allowed_headers=frozenset({"x-tenant"}))
    await site.invoke(x_tenant="a" * 4097)
    assert "x-tenant" not in container.requests[0]


async def test_a_user_brings_a_workload_token_and_is_not_named_to_the_container(attach: AttachPlatform) -> None:
    container = ScriptedContainer()
    site = await attach(container)
    await site.invoke(x_amzn_bedrock_agentcore_runtime_user_id="alice")
    assert container.requests[0]["workloadaccesstoken"]
    assert "alice" not in str(container.requests)


@pytest.mark.parametrize(
    "name", ["Accept", "Content-Type", "Cookie", "x-amz-date", "X-Forwarded-For", "x-amzn-foo", "1a"]
)
def test_restricted_headers_cannot_be_allowed(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        check_allowlist([name])


def test_an_allow_list_has_at_most_20_headers() -> None:
    assert len(check_allowlist([f"x-{number}" for number in range(20)])) == 20
    with pytest.raises(ValueError, match="20"):
        check_allowlist([f"x-{number}" for number in range(21)])


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\x00", b"x" * 1_000_000])
async def test_a_body_arrives_as_it_was_sent(attach: AttachPlatform, body: bytes) -> None:
    container = ScriptedContainer()
    site = await attach(container)
    await site.invoke(body, content_type="text/x-own", accept="text/x-other")
    assert container.bodies == [body]
    seen = container.requests[0]
    assert (seen["content-type"], seen["accept"]) == ("text/x-own", "text/x-other")


async def test_a_body_without_a_type_arrives_without_one(attach: AttachPlatform) -> None:
    container = ScriptedContainer()
    await (await attach(container)).invoke(b"{}")
    assert "content-type" not in container.requests[0]


@pytest.mark.parametrize("status", [400, 401, 404, 415, 422, 429, 500, 503])
async def test_every_error_of_the_container_becomes_the_same_event(attach: AttachPlatform, status: int) -> None:
    async def fail(_: Request) -> Response:
        return JSONResponse({"detail": "what the caller never sees"}, status)

    answered = await (await attach(ScriptedContainer(answer=fail))).invoke()
    assert (answered.status_code, answered.headers["content-type"]) == (200, "text/event-stream")
    [event] = events(answered)
    assert (event["type"], event["code"]) == ("RUN_ERROR", "AGENT_ERROR")
    assert "never sees" not in answered.text
    assert answered.headers["x-amzn-errortype"] == "RuntimeClientError"


async def test_other_answers_pass_with_their_status_and_type_alone(attach: AttachPlatform) -> None:
    async def answer(_: Request) -> Response:
        return JSONResponse({"a": 1}, 202, {"x-own": "1", "traceparent": "00-3-4-01", "set-cookie": "a=1"})

    answered = await (await attach(ScriptedContainer(answer=answer))).invoke()
    assert (answered.status_code, answered.json()) == (202, {"a": 1})
    assert answered.headers["content-type"] == "application/json"
    assert answered.headers["traceparent"] == "00-3-4-01"
    assert answered.headers[HEADER] == SESSION
    assert not {"x-own", "set-cookie"} & {*answered.headers}


@pytest.mark.parametrize("error", PlatformError)
async def test_the_next_request_gets_the_error_that_a_test_has_asked_for(
    attach: AttachPlatform, error: PlatformError
) -> None:
    site = await attach()
    await site.http.post("/_platform/next-error", json={"code": error.name})
    answered = await site.invoke()
    row = error.value
    assert (answered.status_code, events(answered)[0]["code"]) == (row.status, error.name)
    assert answered.headers["x-amzn-errortype"] == row.exception
    assert events(await site.invoke())[-1]["type"] == "RUN_FINISHED"


async def test_a_failure_of_the_platform_itself_is_an_internal_error(
    attach: AttachPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> ContainerSession:
        raise RuntimeError

    site = await attach()
    monkeypatch.setattr("agui_container.platform.sessions.ContainerSession", fail)
    answered = await site.invoke()
    assert (answered.status_code, events(answered)[0]["code"]) == (500, "INTERNAL_ERROR")


async def test_an_error_that_is_not_in_the_table_cannot_be_asked_for(attach: AttachPlatform) -> None:
    answered = await (await attach()).http.post("/_platform/next-error", json={"code": "WHATEVER"})
    assert answered.status_code == 400
    assert "RATE_LIMIT_EXCEEDED" in answered.json()["message"]


async def test_requests_above_the_rate_are_throttled(attach: AttachPlatform) -> None:
    site = await attach(limits={"requests_per_second": 1})
    answers = await asyncio.gather(*(site.invoke() for _ in range(5)))
    assert 429 in {answer.status_code for answer in answers}


async def test_a_body_above_the_quota_is_refused(attach: AttachPlatform) -> None:
    site = await attach(limits={"payload_bytes": 10})
    refused = await site.invoke(b"x" * 11)
    assert (refused.status_code, events(refused)[0]["code"]) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", f"{INVOCATIONS}/.well-known/agent-card.json", "GetAgentCard"),
        ("POST", f"{RUNTIME}/commands", "InvokeAgentRuntimeCommand"),
    ],
)
async def test_operations_that_are_not_here_say_so(attach: AttachPlatform, method: str, path: str, name: str) -> None:
    refused = await (await attach()).http.request(method, path, content=b"{}" if method == "POST" else b"")
    assert (refused.status_code, refused.headers["x-amzn-errortype"]) == (400, "ValidationException")
    assert name in refused.json()["message"]


async def test_a_runtime_that_is_no_arn_is_refused(attach: AttachPlatform) -> None:
    refused = await (await attach()).http.post("/runtimes/arn%3Aaws%3Alambda/invocations", content=b"{}")
    assert (refused.status_code, events(refused)[0]["code"]) == (400, "VALIDATION_ERROR")


async def test_a_session_that_is_not_there_cannot_be_stopped(attach: AttachPlatform) -> None:
    refused = await (await attach()).http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
    assert (refused.status_code, refused.headers["x-amzn-errortype"]) == (404, "ResourceNotFoundException")


# --- streams ----------------------------------------------------------------------------------------------------------


async def test_the_container_does_not_notice_that_its_caller_has_gone(attach: AttachPlatform) -> None:
    run = HeldRun()
    site = await attach(ScriptedContainer(answer=run.answer))
    async with site.http.stream("POST", INVOCATIONS, content=b"{}", headers={HEADER: SESSION}) as response:
        async for _ in response.aiter_raw():
            break
    await eventually(lambda: not site.session.open_sockets)
    assert not run.has_ended.is_set()
    run.ends.set()
    await wait_for_event(run.has_ended)
    assert not run.was_cancelled
    await eventually(lambda: site.session.open_requests == 0)


async def test_a_stream_ends_after_60_minutes(attach: AttachPlatform) -> None:
    run = HeldRun()
    site = await attach(ScriptedContainer(answer=run.answer), limits={"sync_seconds": 300.0, "stream_seconds": 310.0})
    with pytest.raises(httpx.RemoteProtocolError):
        await site.invoke()
    await wait_for_event(run.has_ended)
    assert run.was_cancelled


async def test_an_answer_that_is_no_stream_ends_after_15_minutes(attach: AttachPlatform) -> None:
    never = asyncio.Event()

    async def answer(_: Request) -> Response:
        await never.wait()
        return JSONResponse({})

    site = await attach(ScriptedContainer(answer=answer), limits={"sync_seconds": 5.0})
    assert events(await site.invoke())[0]["code"] == "AGENT_ERROR"
    never.set()


async def test_a_container_that_breaks_off_breaks_the_answer_off(attach: AttachPlatform) -> None:
    async def half(_: Request) -> Response:
        return Response(STARTED, headers={"content-length": "9999"}, media_type="text/event-stream")

    site = await attach(ScriptedContainer(answer=half))
    with pytest.raises(httpx.RemoteProtocolError):
        await site.invoke()


async def test_two_requests_of_a_session_are_served_at_the_same_time(attach: AttachPlatform) -> None:
    run = HeldRun()
    container = ScriptedContainer(answer=run.answer)
    site = await attach(container)
    answering = asyncio.create_task(site.invoke())
    await wait_for_event(run.has_begun)
    second = asyncio.create_task(site.invoke())
    await eventually(lambda: len(container.bodies) == 2)
    run.ends.set()
    for task in (answering, second):
        assert events(await task)[-1]["type"] == "RUN_FINISHED"


# --- strictness -------------------------------------------------------------------------------------------------------


async def test_a_strict_platform_answers_no_request_once_a_rule_was_broken(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(ping={"status": "ok"}), is_strict=True)
    await site.invoke()
    await eventually(site.plane.findings.broken)
    refused = await site.invoke()
    [event] = events(refused)
    assert (refused.status_code, event["code"]) == (500, "INTERNAL_ERROR")
    assert "ping.status" in event["message"]
    assert "'ok'" in event["message"]


# --- what people see --------------------------------------------------------------------------------------------------


async def test_the_state_is_json_for_programs_and_a_page_for_browsers(attach: AttachPlatform) -> None:
    site = await attach()
    await site.invoke()
    state = (await site.http.get("/_platform")).json()
    [session] = state["sessions"]
    assert session["sessionId"] == SESSION
    assert session["state"] in {"running", "frozen"}
    assert any("cold start" in line for line in [*state["decisions"], session["reason"]])
    assert {rule["rule"] for rule in state["rules"] if rule["state"] == "held"} >= {"ping.status", "run.order"}
    page = await site.http.get("/_platform", headers={"accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert SESSION in page.text
    assert json.loads(page.headers["refresh"]) == 2
