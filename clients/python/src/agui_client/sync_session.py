"""The synchronous face of a session, for scripts, and for notebooks whose event loop runs already.

Rule: nothing is implemented here. Each method is one of ``Session``, run on an event loop in a thread of this module.
Handlers of ``run()`` are called in the caller's own thread, so that they may call the session, too.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from functools import cache, partial, wraps
from queue import SimpleQueue
from typing import Concatenate, ParamSpec, Self, TypeVar, Unpack

from ag_ui.core import BaseEvent
from anyio.from_thread import BlockingPortal

from agui_client.session import Session
from agui_client.session_options import LOCAL_URL, SessionOptions
from agui_client.session_state import SessionState
from agui_client.transport import Provided

P = ParamSpec("P")
T = TypeVar("T")
Inbox = SimpleQueue[Callable[[], None] | None]

STOP_SECONDS = 1.0


@cache
def _portal() -> BlockingPortal:
    """Start the event loop, in a daemon thread that ends with the program."""
    started: Future[BlockingPortal] = Future()

    async def serve() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="agui-client", daemon=True)
    thread.start()
    atexit.register(_stop, thread, started.result())
    return started.result()


def _stop(thread: threading.Thread, portal: BlockingPortal) -> None:
    """End the loop. Its tasks are cancelled, such as those of open sockets."""
    if thread.is_alive():  # not in a fork, which has no thread but its own
        portal.call(portal.stop, True)  # noqa: FBT003 - anyio's
        thread.join(STOP_SECONDS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_portal.cache_clear)


def _run(call: Callable[[], Awaitable[T]], inbox: Inbox | None = None) -> T:
    """Run a call on the loop, and the work of ``inbox`` in this thread until the call has ended.

    Raises ``RuntimeError`` in the thread of the loop, which would wait for itself.
    """
    work = inbox or Inbox()
    future = _portal().start_task_soon(call)
    future.add_done_callback(lambda _: work.put(None))
    try:
        while (task := work.get()) is not None:
            task()
    except BaseException:
        future.cancel()
        raise
    return future.result()


def _in_caller(inbox: Inbox, handler: Callable[..., object]) -> Callable[..., object]:
    """A handler for the loop that is called in the thread of the caller."""

    def call(reply: "Future[object]", arguments: tuple[object, ...]) -> None:
        try:
            reply.set_result(handler(*arguments))
        except Exception as error:  # noqa: BLE001 - raised where the handler was called
            reply.set_exception(error)

    async def ask(*arguments: object) -> object:
        reply: Future[object] = Future()
        inbox.put(partial(call, reply, arguments))
        result = await asyncio.wrap_future(reply)
        return await result if isinstance(result, Coroutine) else result

    return ask


def _blocking(
    method: Callable[Concatenate[Session, P], Coroutine[object, object, T]],
) -> Callable[Concatenate["SyncSession", P], T]:
    """The method of ``Session``, called from a thread without a loop."""

    @wraps(method)
    def call(self: "SyncSession", /, *args: P.args, **kwargs: P.kwargs) -> T:
        inbox = Inbox()
        for name, value in kwargs.items():
            if callable(value):
                kwargs[name] = _in_caller(inbox, value)
        return _run(partial(method, self._session, *args, **kwargs), inbox)

    return call


def _chained(
    method: Callable[Concatenate[Session, P], Coroutine[object, object, Session]],
) -> Callable[Concatenate["SyncSession", P], "SyncSession"]:
    blocking = _blocking(method)

    @wraps(method)
    def call(self: "SyncSession", /, *args: P.args, **kwargs: P.kwargs) -> "SyncSession":
        session = blocking(self, *args, **kwargs)
        return self if session is self._session else SyncSession.of(session)

    return call


def _made(make: Callable[P, Session | Coroutine[object, object, Session]]) -> Callable[P, "SyncSession"]:
    @wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> "SyncSession":
        made = make(*args, **kwargs)
        return SyncSession.of(made if isinstance(made, Session) else _run(lambda: made))

    return call


class SyncSession(SessionState):
    """A ``Session`` without ``await``. Its methods and arguments are those of ``Session``.

    Close it with ``close()``, or use it as a context manager.
    """

    def __init__(
        self, url: Provided = LOCAL_URL, *, thread_id: str | None = None, **options: Unpack[SessionOptions]
    ) -> None:
        session = Session(url, thread_id=thread_id, **options)
        self.__dict__ = session.__dict__  # two faces of one state
        self._session = session

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return the synchronous face of a session that no event loop uses."""
        made = cls.__new__(cls)
        made.__dict__ = session.__dict__
        made._session = session  # noqa: SLF001 - its own
        return made

    start = staticmethod(_made(Session.start))
    from_id = staticmethod(_made(Session.from_id))

    run = _chained(Session.run)
    cancel = _blocking(Session.cancel)
    capabilities = _blocking(Session.capabilities)
    command = _blocking(Session.command)
    refresh = _chained(Session.refresh)
    fork = _chained(Session.fork)
    submit_feedback = _blocking(Session.submit_feedback)
    rename = _chained(Session.rename)
    delete = _blocking(Session.delete)
    close = _blocking(Session.aclose)

    def events(self, timeout: float | None = None) -> Iterator[BaseEvent]:
        """Yield the events of the agent's turn, as ``Session.events`` does."""
        events = self._session.events(timeout)
        try:
            while (event := _run(lambda: anext(events, None))) is not None:
                yield event
        finally:
            _run(events.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
