"""Cache of an issuer's keys.

Rules:

- Keys are read again in the background once they are ``REFRESH_SECONDS`` old, and a token whose key is cached does not
  wait for that. If the issuer was not asked for ``UNCHECKED_SECONDS``, because no token came, the next tokens wait. The
  cached keys count after that only if the issuer does not answer.
- A token that no cached key has signed makes the server ask the issuer at most once in ``ASK_SECONDS``, because callers
  can invent ids. A wrong signature under the id of a cached key does not.
- One request to the issuer is under way at a time, and all callers share it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from jwt import PyJWK

from agui_container.auth.claim_rules import unauthorized
from agui_container.auth.issuer import IssuerFailure, IssuerKey, IssuerKeys
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.log_values import format_fields

REFRESH_SECONDS = 600.0
"""Age at which keys are read again in the background."""

UNCHECKED_SECONDS = REFRESH_SECONDS + 30.0
"""Seconds since the last answer or failure of the issuer from which on tokens wait for the next one. A key that a
reachable issuer has withdrawn is used so long at most."""

MAX_AGE_SECONDS = 86_400.0
"""Age from which on keys are not used, if the issuer cannot be reached for so long."""

ASK_SECONDS = 30.0
"""Seconds between two requests to the issuer while there are keys."""

RETRY_SECONDS = 1.0
"""Seconds between two requests to the issuer while there are no keys."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class KeyCache:
    """Keys of one issuer.

    Args:
        fetch: reads the keys. Raises ``IssuerFailure``.
        now: returns Unix seconds. A monotonic clock would not advance across a snapshot of the process.
    """

    def __init__(self, fetch: Callable[[], Awaitable[IssuerKeys]], now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now = now
        self._issuer_keys: IssuerKeys | None = None
        self._fetched_at = self._asked_at = self._checked_at = float("-inf")
        self._has_failed = False
        self._task: asyncio.Task[None] | None = None

    async def verify(self, key_id: str, algorithm: str, check: Callable[[PyJWK], T | None]) -> tuple[str, T]:
        """Return the issuer's name, and the result of ``check`` with the key that signed the token.

        Args:
            key_id: the id that the token names, empty if it names none.
            algorithm: the algorithm that the token names.
            check: returns the verified content, or None if the key has not signed the token.

        Raises:
            AppError: UNAUTHORIZED if no key of the issuer signed the token, AUTH_UNAVAILABLE if it cannot be asked.
        """
        found = self._find(key_id, algorithm, check)
        is_decided = found is not None or self._has(key_id, algorithm)
        if not is_decided or self._has_passed(UNCHECKED_SECONDS, self._checked_at):
            await self._ask()
            found = self._find(key_id, algorithm, check)
        elif self._has_passed(REFRESH_SECONDS, self._fetched_at):
            self._start()
        if found is not None:
            return found
        if self._has(key_id, algorithm):
            raise unauthorized("The token is not valid.")
        if self._has_failed:
            raise AppError(
                ErrorCode.AUTH_UNAVAILABLE, "The token cannot be verified right now: its issuer does not answer."
            )
        raise unauthorized("The token is signed with an unknown key.")

    def _find(self, key_id: str, algorithm: str, check: Callable[[PyJWK], T | None]) -> tuple[str, T] | None:
        """Return the result of the first cached key that fits and verifies the token."""
        for key in self._candidates(key_id, algorithm):
            content = check(key.jwk)
            if content is not None and self._issuer_keys is not None:
                return self._issuer_keys.issuer, content
        return None

    def _has(self, key_id: str, algorithm: str) -> bool:
        """Return True if a cached key has the id that a token names."""
        return bool(key_id) and any(key.id == key_id for key in self._candidates(key_id, algorithm))

    def _candidates(self, key_id: str, algorithm: str) -> Sequence[IssuerKey]:
        if self._issuer_keys is None or self._now() - self._fetched_at >= MAX_AGE_SECONDS:
            return ()
        return self._issuer_keys.candidates(key_id, algorithm)

    def _has_passed(self, seconds: float, since: float) -> bool:
        """Return True if the time has passed, or nobody knows because the clock was set back."""
        return not 0 <= self._now() - since < seconds

    async def _ask(self) -> None:
        """Read the keys, or wait for the reading that is under way. Return at once if it is too early to ask again."""
        self._start()
        if self._task is not None:
            await asyncio.wait([self._task])

    def _start(self) -> None:
        """Begin to read the keys, unless that is under way or was done a short while ago."""
        pause = RETRY_SECONDS if self._issuer_keys is None else ASK_SECONDS
        if self._task is None and self._has_passed(pause, self._asked_at):
            self._asked_at = self._now()
            self._task = asyncio.create_task(self._read(), name="issuer keys")

    async def _read(self) -> None:
        try:
            self._issuer_keys = await self._fetch()
            self._fetched_at, self._has_failed = self._now(), False
        except IssuerFailure as failure:
            self._has_failed = True
            logger.warning("issuer keys not read %s", format_fields({"error": failure}))
        except Exception:
            self._has_failed = True
            logger.exception("issuer keys not read")
        finally:
            self._checked_at = self._now()
            self._task = None

    async def aclose(self) -> None:
        """Stop reading."""
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
