"""Feedback of users on messages, by commands: the same on every transport."""

from tests.behaviour.test_threads import refusal, send_command, silent, store_of
from tests.conftest import Connect
from tests.engine.conversations import store_conversation
from tests.engine.doubles import START


async def test_feedback_is_given_and_given_again(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    client.clock.advance(50)
    where = {"threadId": "t1", "messageId": "m4"}
    first = await send_command(
        client, "feedback", **where, sentiment="negative", categories=["slow", "other"], notes="hm"
    )
    said = {"sentiment": "negative", "categories": ["other", "slow"], "notes": "hm"}
    assert first == {**where, **said, "createdAt": START + 50, "changedAt": START + 50}
    client.clock.advance(50)
    second = await send_command(client, "feedback", **where, sentiment="positive")
    better = {"sentiment": "positive", "categories": [], "createdAt": START + 50, "changedAt": START + 100}
    assert second == {**where, **better}
    assert (await send_command(client, "get", threadId="t1"))["feedback"] == [{"messageId": "m4", **better}]


async def test_only_what_an_assistant_said_is_rated(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    for message, role in (("m1", "user"), ("m3", "tool")):
        refused = await refusal(client, "feedback", threadId="t1", messageId=message, sentiment="positive")
        assert (refused.code, refused.message) == (
            "VALIDATION_ERROR",
            f"messageId: is a message of role {role}, not assistant.",
        )
    refused = await refusal(client, "feedback", threadId="t1", messageId="m9", sentiment="positive")
    assert refused.code == "THREAD_NOT_FOUND"


async def test_categories_fit_and_other_is_explained(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    where = {"threadId": "t1", "messageId": "m4"}
    unfit = await refusal(client, "feedback", **where, sentiment="positive", categories=["slow"])
    assert unfit.message.startswith("command.categories: 'slow' does not fit the sentiment")
    silent_other = await refusal(client, "feedback", **where, sentiment="positive", categories=["other"])
    assert silent_other.message == "command.notes: are required with the category 'other'"
    assert (await send_command(client, "get", threadId="t1"))["feedback"] == []
