"""The synchronous face of a session, for scripts, and for notebooks whose event loop runs already.

Rule: nothing is implemented here. Each method is one of ``Session``, run on an event loop in a thread of this module.
Handlers of ``run()`` are called in the caller's own thread, so that they may call the session, too.
"""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from functools import partial, wraps
from queue import SimpleQueue
from typing import Concatenate, ParamSpec, Self, TypeVar, Unpack

from ag_ui.core import BaseEvent

from agui_client.session import Session
from agui_client.session_options import LOCAL_URL, SessionOptions
from agui_client.session_view import SessionView
from agui_client.transport import Provided

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[], None]


STOP_SECONDS = 1.0


class LoopThread:
    """An event loop in a daemon thread, which starts with the first call and ends with the program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[object, object, T], inbox: "SimpleQueue[Work | None] | None" = None) -> T:
        """Run a coroutine on the loop, and do the work of ``inbox`` in this thread until the coroutine has ended.

        Raises:
            RuntimeError: this is the thread of the loop, which would wait for itself.
        """
        loop = self._start()
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("An async function called a SyncSession, which would wait for itself: use Session.")
        work = inbox or SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        future.add_done_callback(lambda _: work.put(None))
        try:
            while (task := work.get()) is not None:
                task()
        except BaseException:
            future.cancel()
            raise
        return future.result()

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
                self._thread = threading.Thread(
                    target=asyncio.run, args=(_until_stopped(started),), name="agui-client", daemon=True
                )
                self._thread.start()
                self._loop, stopped = started.result()
                atexit.register(_stop, self._thread, self._loop, stopped)
            return self._loop


async def _until_stopped(started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
    stopped = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stopped))
    await stopped.wait()


def _stop(thread: threading.Thread, loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    """End the loop. Its tasks are cancelled, such as those of open sockets."""
    if thread.is_alive():
        loop.call_soon_threadsafe(stopped.set)
        thread.join(STOP_SECONDS)


_loop_thread = LoopThread()


def _in_caller(inbox: "SimpleQueue[Work | None]", handler: Callable[..., object]) -> Callable[..., object]:
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
        inbox: SimpleQueue[Work | None] = SimpleQueue()
        for name, value in kwargs.items():
            if callable(value):
                kwargs[name] = _in_caller(inbox, value)
        return _loop_thread.run(method(self._session, *args, **kwargs), inbox)

    return call


def _chained(
    method: Callable[Concatenate[Session, P], Coroutine[object, object, Session]],
) -> Callable[Concatenate["SyncSession", P], "SyncSession"]:
    """The same for a method that returns its session."""
    blocking = _blocking(method)

    @wraps(method)
    def call(self: "SyncSession", /, *args: P.args, **kwargs: P.kwargs) -> "SyncSession":
        session = blocking(self, *args, **kwargs)
        return self if session is self._session else SyncSession.of(session)

    return call


def _made(make: Callable[P, Session]) -> Callable[P, "SyncSession"]:
    """The synchronous face of a function that makes a session."""

    @wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> "SyncSession":
        return SyncSession.of(make(*args, **kwargs))

    return call


def _awaited(make: Callable[P, Coroutine[object, object, Session]]) -> Callable[P, Session]:
    @wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> Session:
        return _loop_thread.run(make(*args, **kwargs))

    return call


class SyncSession(SessionView):
    """A ``Session`` without ``await``. Its methods and arguments are those of ``Session``.

    Close it with ``close()``, or use it as a context manager.
    """

    def __init__(
        self, url: Provided = LOCAL_URL, *, thread_id: str | None = None, **options: Unpack[SessionOptions]
    ) -> None:
        self._session = Session(url, thread_id=thread_id, **options)
        self._record = self._session._record  # noqa: SLF001 - two faces of one record

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return the synchronous face of a session that no event loop uses."""
        made = cls.__new__(cls)
        made._session, made._record = session, session._record  # noqa: SLF001 - two faces of one record
        return made

    start = staticmethod(_made(Session.start))
    from_id = staticmethod(_made(_awaited(Session.from_id)))

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

        async def following() -> BaseEvent | None:
            return await anext(events, None)

        try:
            while (event := _loop_thread.run(following())) is not None:
                yield event
        finally:
            _loop_thread.run(events.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
