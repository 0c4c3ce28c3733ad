"""Handlers as people write them for ``AGUIApp``, and tools that use AgentCore Identity."""

import json
from collections.abc import AsyncIterator

from ag_ui.core import BaseEvent, RunAgentInput, TextMessageChunkEvent
from bedrock_agentcore import BedrockAgentCoreApp, BedrockAgentCoreContext, RequestContext
from bedrock_agentcore.identity import requires_access_token, requires_api_key
from bedrock_agentcore.runtime import AGUIApp

from agui_container import ask_for_consent

app = AGUIApp()
work = BedrockAgentCoreApp()
tasks: list[int] = []


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


@requires_access_token(provider_name="drive", scopes=["read"], auth_flow="USER_FEDERATION", on_auth_url=ask_for_consent)
async def read_drive(*, access_token: str) -> str:
    return f"drive with {access_token}"


async def identity(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    for result in (await read_calendar(), read_weather()):
        yield said(f"{result}; ")


async def consent(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    yield said(await read_drive())


async def tasks_handler(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    if tasks:
        work.complete_async_task(tasks.pop())
    else:
        tasks.append(work.add_async_task("report"))
    yield said("ok")


async def agent(input: RunAgentInput, context: RequestContext) -> AsyncIterator[BaseEvent]:
    """One agent for all of them, chosen by the message: one server is enough for the tests."""
    agents = {"identity": identity, "consent": consent, "task": tasks_handler}
    chosen = agents.get(str(input.messages[0].content))
    async for event in chosen(input) if chosen else handler(input, context):
        yield event
