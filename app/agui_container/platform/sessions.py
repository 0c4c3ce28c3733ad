"""All sessions: which there are, how many there may be, and the tasks in which their containers live.

Rule: one id, one container. A session that is starting or ending is busy, for everybody but the caller who started it.
"""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Mapping

from agui_container.platform.containers import ContainerFactory
from agui_container.platform.errors import PlatformError, PlatformRefusal
from agui_container.platform.headers import SESSION_ID
from agui_container.platform.session import ContainerSession, PlatformContext, SessionState
from agui_container.runtime.token_bucket import TokenBucket

ID = re.compile(r"[\x21-\x7e]{33,256}")
"""Form of a session id. Source: ``runtimeSessionId`` of InvokeAgentRuntime, which has a length and no pattern."""

logger = logging.getLogger(__name__)


class ContainerSessions:
    """The sessions of one runtime.

    Args:
        make_container: makes the container of a new session.
        context: surroundings of all sessions.
    """

    def __init__(self, make_container: ContainerFactory, context: PlatformContext) -> None:
        self._make_container = make_container
        self._context = context
        self._limits = context.limits
        self._sessions: dict[str, ContainerSession] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        rate = context.limits.new_sessions_per_second
        self._starts = TokenBucket(rate, rate, time.monotonic)

    async def open(self, session_id: str) -> ContainerSession:
        """Return a running session, which is started if there is none.

        Raises:
            PlatformRefusal: SESSION_BUSY, SERVICE_QUOTA_EXCEEDED, RATE_LIMIT_EXCEEDED, or AGENT_ERROR if the container
                does not start.
        """
        session = self._sessions.get(session_id)
        if session is None:
            session = self._start(session_id)
            await session.wait_until_ready()
        elif session.state not in (SessionState.RUNNING, SessionState.FROZEN):
            raise PlatformRefusal(PlatformError.SESSION_BUSY)
        return session

    def stop(self, session_id: str) -> None:
        """End a session.

        Raises:
            PlatformRefusal: NOT_FOUND if there is none, SESSION_BUSY if it is ending.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise PlatformRefusal(PlatformError.NOT_FOUND, f"There is no session {session_id}.")
        if session.state is SessionState.STOPPING:
            raise PlatformRefusal(PlatformError.SESSION_BUSY)
        session.request_stop("stopped: StopRuntimeSession")

    async def wait_until_gone(self, session_id: str) -> None:
        """Wait until the container of a session is gone."""
        if (task := self._tasks.get(session_id)) is not None:
            await asyncio.wait([task])

    def all(self) -> Mapping[str, ContainerSession]:
        """Return the sessions by their ids."""
        return dict(self._sessions)

    async def aclose(self) -> None:
        """End all sessions, and wait until their containers are gone."""
        for session in self._sessions.values():
            session.request_stop("stopped: the platform ends")
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    def _start(self, session_id: str) -> ContainerSession:
        if len(self._sessions) >= self._limits.sessions:
            message = f"The quota maxVms is exceeded: {self._limits.sessions} sessions are open."
            raise PlatformRefusal(PlatformError.SERVICE_QUOTA_EXCEEDED, message)
        if self._starts.delay():
            raise PlatformRefusal(PlatformError.RATE_LIMIT_EXCEEDED)
        session = ContainerSession(session_id, self._make_container(), self._context)
        self._sessions[session_id] = session
        self._tasks[session_id] = asyncio.create_task(self._live(session), name=f"session {session_id}")
        return session

    async def _live(self, session: ContainerSession) -> None:
        try:
            await session.run()
        except Exception:
            logger.exception("session %s failed in the platform itself", session.id)
        finally:
            del self._sessions[session.id], self._tasks[session.id]


def session_id_of(headers: Mapping[str, str]) -> str:
    """Return the id that a caller gives, or a new one.

    Raises:
        PlatformRefusal: VALIDATION_ERROR if the id is too short or too long.
    """
    given = headers.get(SESSION_ID)
    if given is None:
        return str(uuid.uuid4())
    if not ID.fullmatch(given):
        message = f"The runtimeSessionId must have 33 to 256 visible characters, and this one has {len(given)}."
        raise PlatformRefusal(PlatformError.VALIDATION_ERROR, message)
    return given
