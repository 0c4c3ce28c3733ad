"""Invocations: headers, bodies, folded errors, the platform's own errors, and streams that are cut."""

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agui_container.aws.platform.errors import PlatformError
from agui_container.aws.platform.headers import check_allowlist
from tests.aws.platform.conftest import AttachPlatform
from tests.aws.platform.doubles import (
    HEADER,
    INVOCATIONS,
    RUNTIME,
    SESSION,
    STARTED,
    HeldRun,
    ScriptedContainer,
    events,
)
from tests.engine.doubles import eventually, wait_for_event

pytestmark = pytest.mark.wire


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


async def test_the_body_of_a_request_that_offers_http2_arrives(attach: AttachPlatform) -> None:
    container = ScriptedContainer()
    site = await attach(container)
    offer = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2_settings": "AAMAAABkAAQAoAAAAAIAAAAA"}
    answered = await site.invoke(b'{"a": 1}', **offer)
    assert (answered.status_code, container.bodies) == (200, [b'{"a": 1}'])


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\x00", b"x" * 1_000_000])
async def test_a_body_arrives_as_it_was_sent(attach: AttachPlatform, body: bytes) -> None:
    container = ScriptedContainer()
    site = await attach(container)
    await site.invoke(body, content_type="text/x-own", accept="text/x-other")
    assert container.bodies == [body]
    seen = container.requests[0]
    assert (seen["content-type"], seen["accept"]) == ("text/x-own", "text/x-other")


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


async def test_an_error_may_be_asked_for_as_often_as_a_client_tries_again(attach: AttachPlatform) -> None:
    site = await attach()
    await site.http.post("/_platform/next-error", json={"code": "RATE_LIMIT_EXCEEDED", "count": 3})
    assert [(await site.invoke()).status_code for _ in range(4)] == [429, 429, 429, 200]


@pytest.mark.parametrize("body", [{"code": "WHATEVER"}, {}, [], {"code": "AGENT_ERROR", "count": 0}])
async def test_an_error_that_is_not_in_the_table_cannot_be_asked_for(attach: AttachPlatform, body: object) -> None:
    answered = await (await attach()).http.post("/_platform/next-error", json=body)
    assert answered.status_code == 400
    assert "RATE_LIMIT_EXCEEDED" in answered.json()["message"]


async def test_a_body_above_the_quota_is_refused(attach: AttachPlatform) -> None:
    site = await attach(limits={"payload_bytes": 10})
    refused = await site.invoke(b"x" * 11)
    assert (refused.status_code, events(refused)[0]["code"]) == (400, "VALIDATION_ERROR")


async def test_a_runtime_that_is_no_arn_is_refused(attach: AttachPlatform) -> None:
    refused = await (await attach()).http.post("/runtimes/arn%3Aaws%3Alambda/invocations", content=b"{}")
    assert (refused.status_code, events(refused)[0]["code"]) == (400, "VALIDATION_ERROR")


async def test_a_session_that_is_not_there_cannot_be_stopped(attach: AttachPlatform) -> None:
    refused = await (await attach()).http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
    assert (refused.status_code, refused.headers["x-amzn-errortype"]) == (404, "ResourceNotFoundException")


async def test_the_container_does_not_notice_that_its_caller_has_gone(attach: AttachPlatform) -> None:
    run = HeldRun()
    site = await attach(ScriptedContainer(answer=run.answer))
    async with site.http.stream("POST", INVOCATIONS, content=b"{}", headers={HEADER: SESSION}) as response:
        async for _ in response.aiter_raw():
            break
    assert not run.has_ended.is_set()
    run.ends.set()
    await wait_for_event(run.has_ended)
    assert not run.was_cancelled
    await eventually(lambda: site.session.open_uses == 0)


async def test_a_stream_ends_after_60_minutes(attach: AttachPlatform) -> None:
    run = HeldRun()
    site = await attach(ScriptedContainer(answer=run.answer), limits={"sync_seconds": 3.0, "stream_seconds": 0.3})
    with pytest.raises(httpx.RemoteProtocolError):
        await site.invoke()
    await wait_for_event(run.has_ended)
    assert run.was_cancelled


async def test_a_container_that_breaks_off_breaks_the_answer_off(attach: AttachPlatform) -> None:
    async def half(_: Request) -> Response:
        return Response(STARTED, headers={"content-length": "9999"}, media_type="text/event-stream")

    site = await attach(ScriptedContainer(answer=half))
    with pytest.raises(httpx.RemoteProtocolError):
        await site.invoke()
