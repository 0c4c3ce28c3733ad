"""Handlers as people write them for ``AGUIApp``, and tools that use AgentCore Identity."""

import asyncio
import json
from collections.abc import AsyncIterator

from ag_ui.core import BaseEvent, RunAgentInput, TextMessageChunkEvent
from bedrock_agentcore import BedrockAgentCoreApp, BedrockAgentCoreContext, RequestContext
from bedrock_agentcore.identity import requires_access_token, requires_api_key
from bedrock_agentcore.identity.auth import requires_iam_access_token, requires_wat
from bedrock_agentcore.runtime import AGUIApp, PingStatus

from agui_container import ask_for_consent, tool

app = AGUIApp()
work = BedrockAgentCoreApp()
pinged = BedrockAgentCoreApp()
tasks: list[int] = []
reports: list[asyncio.Task[None]] = []
is_report_due = asyncio.Event()


def said(text: str) -> BaseEvent:
    return TextMessageChunkEvent(message_id="m", role="assistant", delta=text)


@app.entrypoint  # type: ignore[untyped-decorator]
async def handler(input: RunAgentInput, context: RequestContext) -> AsyncIterator[BaseEvent]:
    facts = {
        "session": context.session_id,
        "sameSession": BedrockAgentCoreContext.get_session_id(),
        "request": BedrockAgentCoreContext.get_request_id(),
        "authorization": (context.request_headers or {}).get("Authorization"),
        "custom": (BedrockAgentCoreContext.get_request_headers() or {}).get("x-mine"),
        "workload": BedrockAgentCoreContext.get_workload_access_token(),
        "callback": BedrockAgentCoreContext.get_oauth2_callback_url(),
    }
    yield said(json.dumps(facts))


@requires_access_token(provider_name="calendar", scopes=["read"], auth_flow="M2M")
async def read_calendar(*, access_token: str) -> str:
    return f"calendar with {access_token}"


@requires_api_key(provider_name="weather")
def read_weather(*, api_key: str) -> str:
    return f"weather with {api_key}"


@requires_wat()
def read_identity(*, identity_wat: str) -> str:
    return f"identity of {identity_wat}"


@requires_iam_access_token(audience=["https://api.example"])
async def read_api(*, access_token: str) -> str:
    return f"api with {access_token}"


@tool
async def calendar() -> str:
    """Read the calendar of the caller."""
    return str(await read_calendar())


@requires_access_token(provider_name="drive", scopes=["read"], auth_flow="USER_FEDERATION", on_auth_url=ask_for_consent)
async def read_drive(*, access_token: str) -> str:
    return f"drive with {access_token}"


async def identity(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    for result in (await read_calendar(), read_weather(), read_identity(), await read_api()):
        yield said(f"{result}; ")


async def consent(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    yield said(await read_drive())


async def tasks_handler(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    if tasks:
        work.complete_async_task(tasks.pop())
    else:
        tasks.append(work.add_async_task("report"))
    yield said("ok")


@work.async_task
async def report() -> None:
    await is_report_due.wait()


async def async_task_handler(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    if reports:
        is_report_due.set()
        await reports.pop()
    else:
        reports.append(asyncio.create_task(report()))
    yield said("ok")


@pinged.ping
def ping() -> PingStatus:
    return PingStatus.HEALTHY_BUSY if is_ping_busy else PingStatus.HEALTHY


is_ping_busy = False


async def ping_handler(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    global is_ping_busy  # noqa: PLW0603 - state of the server's process
    is_ping_busy = not is_ping_busy
    yield said("ok")


async def forcing_handler(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    is_busy = work.get_current_ping_status() == PingStatus.HEALTHY_BUSY
    work.force_ping_status(PingStatus.HEALTHY if is_busy else PingStatus.HEALTHY_BUSY)
    yield said("ok")


BUSY_WAYS = {
    "task": tasks_handler,
    "async_task": async_task_handler,
    "ping": ping_handler,
    "force_ping_status": forcing_handler,
}
"""Handlers that make an application of the SDK busy, and at their next run idle."""


async def agent(input: RunAgentInput, context: RequestContext) -> AsyncIterator[BaseEvent]:
    """One agent for all of them, chosen by the message: one server is enough for the tests."""
    agents = {"identity": identity, "consent": consent, **BUSY_WAYS}
    chosen = agents.get(str(input.messages[0].content))
    async for event in chosen(input) if chosen else handler(input, context):
        yield event
