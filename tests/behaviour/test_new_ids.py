"""A client that makes new message ids for each request: the same conversation on every transport."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
from ag_ui.core import RunAgentInput

from tests.behaviour.client import Client, text
from tests.conftest import Connect
from tests.engine.doubles import Json, ask
from tests.requirements import requirement

pytestmark = pytest.mark.durable


async def counting(asked: RunAgentInput) -> AsyncIterator[str]:
    """Say how many messages there are."""
    yield f"{len(asked.messages)} messages"


class Forgetful:
    """A client that keeps roles and text, and makes ids when it sends."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = count(1)
        self.talk: list[Json] = []

    async def say(self, words: str) -> str:
        """Add a message of the user's, send everything, and keep the answer."""
        self.talk.append({"role": "user", "content": words})
        number = next(self._numbers)
        messages = [{**message, "id": f"{number}-{n}"} for n, message in enumerate(self.talk)]
        answer = text(await self._client.run(ask(run=f"r{number}", messages=messages)))
        self.talk.append({"role": "assistant", "content": answer})
        return answer


@requirement("thread.new-ids")
async def test_the_agent_sees_a_conversation_once(connect: Connect) -> None:
    client = Forgetful(await connect(counting))
    assert [await client.say("hi") for _ in range(4)] == ["1 messages", "3 messages", "5 messages", "7 messages"]


@requirement("thread.new-ids")
async def test_an_edit_takes_the_place_of_what_followed(connect: Connect) -> None:
    client = Forgetful(await connect(counting))
    for words in ("one", "two", "three"):
        await client.say(words)
    client.talk = client.talk[:2]
    assert await client.say("zwei") == "3 messages"
    assert await client.say("drei") == "5 messages"


@requirement("thread.new-ids")
async def test_a_lone_message_is_always_new(connect: Connect) -> None:
    client = Forgetful(await connect(counting))
    await client.say("one")
    client.talk = []
    assert await client.say("one") == "3 messages"
