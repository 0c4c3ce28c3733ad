"""Turns as the engine makes them: a run begins, gets the client's messages, and ends."""

import json
from collections.abc import Sequence

from agui_container.ports.records import Change, RunKey, StoredMessage, ThreadKey
from agui_container.ports.store import Store
from tests.stores.doubles import THREAD, A, claim_run, ending, get_delta, run


def user(id: str, text: object) -> StoredMessage:  # noqa: A002 - as in the record
    return StoredMessage(id, json.dumps({"id": id, "role": "user", "content": text}).encode())


def answer(id: str, text: str, run_id: str = "r1") -> StoredMessage:  # noqa: A002
    return StoredMessage(id, json.dumps({"id": id, "role": "assistant", "content": text}).encode(), run_id)


def turn_messages(n: int) -> list[StoredMessage]:
    return [user(f"u{n}", f"question {n}"), answer(f"a{n}", f"answer {n}", f"r{n}")]


async def turn(store: Store, n: int = 1, change: Change | None = None, thread_id: str = "t1") -> RunKey:
    key = run(f"r{n}", thread_id)
    question, reply = turn_messages(n)
    await claim_run(store, key, now=1000.0 + n, change=Change([question]) if change is None else None)
    await store.finish(key, A, [], ending(change or Change([reply]), 1000.5 + n))
    return key


async def ids(store: Store, key: ThreadKey = THREAD) -> Sequence[str] | None:
    delta = await store.thread(key)
    return None if delta is None else [message.id for message in delta.messages]


async def stored_messages(store: Store, key: ThreadKey = THREAD) -> list[tuple[str, bytes]]:
    return [(message.id, message.data) for message in (await get_delta(store, key)).messages]
