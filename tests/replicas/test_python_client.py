"""The Python client behind a proxy that sends each connection to another replica."""

import pytest
from ag_ui.core import BaseEvent, TextMessageContentEvent

from agui_client import Outcome, Retry, Session, client_tool
from tests.python_client.relay import relay_to
from tests.replicas.conftest import Start

FAST = Retry(initial_delay=0.02, max_delay=0.1)
PAGE = 1_000


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_conversation_goes_on_though_every_connection_meets_another_replica(
    replica: Start, transport: str
) -> None:
    @client_tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"sunny in {city}"

    here, there = (replica(AGUI_AGENT="assistant") for _ in range(2))
    async with relay_to(here.port, there.port) as relay:
        url = relay.http if transport == "sse" else relay.ws
        async with Session(url, retry=FAST, client_tools=[get_weather]) as session:
            relay.cuts = [1] * PAGE
            await session.send_text("think about rain").run()
            assert session.messages[-1].content == "I have thought about rain."
            await session.send_text('call get_weather {"city": "Berlin"}').run()
            assert session.messages[-1].content == "The result of get_weather is sunny in Berlin."
            assert relay.connections > 10
            relay.cuts = []

            async def stop(event: BaseEvent) -> None:
                if isinstance(event, TextMessageContentEvent):
                    await session.cancel()

            await session.send_text("wait 600").run(on_event=stop)
            assert session.outcome is Outcome.CANCELLED
            roles = [message.role for message in session.messages]
            kept = await Session.from_id(session.thread_id, url=url)
            assert [message.role for message in kept.messages] == roles
            await kept.aclose()
