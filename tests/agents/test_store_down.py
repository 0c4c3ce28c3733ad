"""A store that does not answer: no call is run without it, and results of finished calls are still sent."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence

import pytest

from agui_container.agents.gate.gate import GONE
from agui_container.agents.gate.journal import MemoryNotes
from agui_container.conversation.stored_parts import CUT_OFF
from agui_container.ports import store as store_port
from agui_container.ports.records import ThreadKey, ThreadNote
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.stores.memory import MemoryStore
from tests.agents.approval_helpers import START, ApprovalFixture, answer, ask_for_payments, interrupts, results, text_of
from tests.contexts import run_context
from tests.engine.doubles import WAIT, raises_code

THREAD = ThreadKey("anonymous", "thread")


class FlakyStore(MemoryStore):
    """A store whose operations in ``down`` fail, and whose writes wait for ``go`` if it is ``stuck``.

    Any thread exists.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known = MemoryNotes()
        self.down: set[str] = set()
        self.stuck = False
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    def _answer(self, asked: str) -> None:
        if asked in self.down:
            raise StoreUnavailable(asked)

    async def put_notes(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        self._answer("put")
        if self.stuck:
            self.begun.set()
            await self.go.wait()
        return await self.known.put_notes(thread, notes)

    async def notes(self, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        self._answer("read")
        return await self.known.notes(thread, *kinds)

    async def settle_note(self, thread: ThreadKey, note: ThreadNote) -> bool:
        self._answer("settle")
        return await self.known.settle_note(thread, note)


class BrieflyFlaky(FlakyStore):
    def __init__(self) -> None:
        super().__init__()
        self.attempts = Counter[str]()

    def _answer(self, asked: str) -> None:
        self.attempts[asked] += 1
        if self.attempts[asked] <= FAILURES:
            raise StoreUnavailable(asked)


FAILURES = 3


@pytest.fixture(autouse=True)
def short_outages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_port, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(store_port, "GIVE_UP_SECONDS", 0.05)


def flaky_desk() -> tuple[ApprovalFixture, FlakyStore]:
    fixture, store = ApprovalFixture(), FlakyStore()
    fixture.assistant = fixture.assistant.with_store(store)
    return fixture, store


async def test_a_run_waits_for_a_store_that_does_not_answer_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_port, "GIVE_UP_SECONDS", WAIT)
    fixture, store = ApprovalFixture(), BrieflyFlaky()
    fixture.assistant = fixture.assistant.with_store(store)
    (interrupt,) = await ask_for_payments(fixture, 5)
    store.attempts.clear()
    items = await fixture.start(resume=[answer(interrupt, approved=True)])
    assert (text_of(items), fixture.paid) == ("The result of pay is paid 5.", [5])
    assert min(store.attempts[asked] for asked in ("put", "read", "settle")) > FAILURES
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == ["paid 5"]


@pytest.mark.parametrize("down", ["read", "settle"])
async def test_a_call_is_not_run_while_the_store_does_not_answer(down: str) -> None:
    fixture, store = flaky_desk()
    (interrupt,) = await ask_for_payments(fixture, 5)
    store.down = {down}
    with pytest.raises(AppError) as caught:
        await fixture.start(resume=[answer(interrupt, approved=True)])
    assert (caught.value.code, fixture.paid) == (ErrorCode.STORE_UNAVAILABLE, [])
    store.down = set()
    await fixture.start(resume=[answer(interrupt, approved=True)])
    assert fixture.paid == [5]


async def test_a_run_that_cannot_ask_fails_and_asks_nothing() -> None:
    fixture, store = flaky_desk()
    store.down = {"put", "settle"}
    later: list[Awaitable[object]] = []
    with raises_code(ErrorCode.STORE_UNAVAILABLE):
        await fixture.start('call pay {"amount": 5}', ctx=run_context(background=later.append))
    for work in later:
        await work
    assert list(await store.notes(THREAD, "journal")) == []


async def test_a_result_that_cannot_be_remembered_is_told_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    fixture, store = flaky_desk()
    (interrupt,) = await ask_for_payments(fixture, 5)
    store.down = {"put"}
    items = await fixture.start(resume=[answer(interrupt, approved=True)])
    assert text_of(items) == "The result of pay is paid 5."
    assert "results not stored, their calls count as cut off" in caplog.text
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [CUT_OFF]
    assert fixture.paid == [5]


async def test_a_result_is_remembered_though_the_run_is_cancelled_while_it_is_written() -> None:
    fixture, store = flaky_desk()
    (interrupt,) = await ask_for_payments(fixture, 5)
    store.stuck = True
    later: list[Awaitable[object]] = []
    ctx = run_context(background=later.append)
    run = asyncio.create_task(fixture.start(resume=[answer(interrupt, approved=True)], ctx=ctx))
    async with asyncio.timeout(WAIT):
        await store.begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        store.go.set()
        for work in later:
            await work
    store.stuck = False
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == ["paid 5"]


async def test_a_call_that_was_forgotten_meanwhile_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture, store = flaky_desk()
    (interrupt,) = await ask_for_payments(fixture, 5)
    settle = store.settle_note

    async def late(thread: ThreadKey, note: ThreadNote) -> bool:
        store.known = MemoryNotes()
        return await settle(thread, note)

    monkeypatch.setattr(store, "settle_note", late)
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [GONE]
    assert fixture.paid == []


async def test_stored_approvals_of_another_version_do_not_run(caplog: pytest.LogCaptureFixture) -> None:
    fixture, store = flaky_desk()
    asked = await ask_for_payments(fixture, 5)
    await store.put_notes(THREAD, [ThreadNote("journal", "new", b'{"call": 5}', START + 9)])
    assert interrupts(await fixture.start()) == asked
    assert "stored note unreadable, call will not run call=new" in caplog.text
