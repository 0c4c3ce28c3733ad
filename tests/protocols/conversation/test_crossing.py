"""One thread, several protocols: it is begun over one, approved over another, and read over a third."""

import pytest

from tests.engine.doubles import Json
from tests.protocols.clients import Clients, serving_clients
from tests.protocols.grpc.client import Run
from tests.websocket import receive_until, send, socket_to

pytestmark = pytest.mark.wire

SESSIONS = "/v1/ai/threads"


async def conversation(clients: Clients, thread: str) -> list[tuple[str, str]]:
    """Return a session as Roboto's clients see it once the agent has answered."""
    record = (await clients.get(f"{SESSIONS}/{thread}"))["data"]
    while record["status"] == "roboto_turn":
        token = {"next_token": record["continuation_token"]}
        record = (await clients.http.get(f"{SESSIONS}/{thread}/delta", params=token)).json()["data"]
    session = (await clients.get(f"{SESSIONS}/{thread}"))["data"]
    return [
        (message["role"], "".join(block.get("text", "") for block in message["content"]))
        for message in session["messages"]
    ]


def roles(run: Run) -> list[str]:
    context = run.all("context_snapshot")[0].context
    return [row.role for row in context.messages if row.source == "history"]


async def test_begun_in_roz_read_over_a_socket_continued_in_roboto_and_read_over_kontekst() -> None:
    async with serving_clients(roboto=True) as clients:
        session = await clients.start_session()
        await session.ask("stream 1")
        thread, first = session.thread, [("user", "stream 1"), ("assistant", "hello world, ")]
        async with socket_to(clients.port, additional_headers=clients.headers) as socket:
            look: Json = {"threadId": thread, "runId": "look", "messages": [], "protocolVersion": "1.0"}
            await send(socket, look)
            events = await receive_until(socket, lambda event: event["type"] == "RUN_FINISHED")
        (shown,) = [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
        assert [(message["role"], message["content"]) for message in shown] == first
        assert await conversation(clients, thread) == first
        body = {"message": {"role": "user", "content": [{"text": "stream 2"}]}}
        (await clients.http.post(f"{SESSIONS}/{thread}/messages", json=body)).raise_for_status()
        both = [*first, ("user", "stream 2"), ("assistant", "hello world, hello world, ")]
        assert await conversation(clients, thread) == both
        run = await clients.start_run("stream 1", thread)
        await run.rest()
        assert roles(run) == ["user", "assistant", "user", "assistant"]
