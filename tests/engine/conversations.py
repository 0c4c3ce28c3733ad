"""Threads with AG-UI messages in a store, as runs leave them."""

import json

from agui_container.ports.records import Change, RunKey, StoredMessage, ThreadStatus
from agui_container.ports.store import Store
from tests.engine.doubles import START, Json
from tests.stores.doubles import A, claim_run, ending

QUESTION: Json = {"id": "m1", "role": "user", "content": "calculate 6*7"}
CALL: Json = {"id": "c1", "type": "function", "function": {"name": "calculate", "arguments": '{"expression": "6*7"}'}}
CALLS: Json = {"id": "m2", "role": "assistant", "toolCalls": [CALL]}
RESULT: Json = {"id": "m3", "role": "tool", "toolCallId": "c1", "content": "42"}
ANSWER: Json = {"id": "m4", "role": "assistant", "content": "The result is 42."}
TALK = (QUESTION, CALLS, RESULT, ANSWER)


def stored_message(message: Json, run_id: str | None = "r1") -> StoredMessage:
    return StoredMessage(message["id"], json.dumps(message).encode(), run_id)


def change(*messages: Json, run_id: str | None = "r1", title: str | None = None, state: Json | None = None) -> Change:
    kept = None if state is None else json.dumps(state).encode()
    return Change([stored_message(message, run_id) for message in messages], state=kept, title=title)


async def store_conversation(  # noqa: PLR0913 - each has a default
    store: Store,
    *messages: Json,
    thread: str = "t1",
    owner: str = "everybody",
    run: str = "r1",
    title: str | None = None,
    state: Json | None = None,
    turn: ThreadStatus = ThreadStatus.USER_TURN,
    now: float = START,
) -> None:
    """Store a run that has ended and its messages. Without ``messages`` it is a usual conversation."""
    key = RunKey(owner, thread, run)
    await claim_run(store, key, now=now)
    said = change(*(messages or TALK), run_id=run, title=title, state=state)
    await store.finish(key, A, [], ending(said, now + 1, turn=turn))


async def store_active_run(
    store: Store, *messages: Json, thread: str = "t1", owner: str = "everybody", run: str = "r2"
) -> None:
    key = RunKey(owner, thread, run)
    await claim_run(store, key, now=START + 10, change=change(*messages, run_id=run))
