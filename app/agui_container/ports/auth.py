"""Callers, and the port of authentication: a bearer token in, the principal that it names out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

EVERYBODY = "everybody"
"""Owner of the threads and runs of callers without a token and a session."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Identity that a verified token names. Threads and runs belong to the pair of ``issuer`` and ``subject``.

    Attributes:
        issuer: the token's ``iss``, a URL without spaces.
        subject: the token's ``sub``.
        expires_at: Unix seconds from which on the token is refused.
        claims: all claims of the token.
    """

    issuer: str
    subject: str
    expires_at: float
    claims: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)

    @property
    def owner(self) -> str:
        """The owner of the principal's threads and runs. Two principals never have the same one."""
        return f"principal:{self.issuer} {self.subject}"


class Caller(Struct, frozen=True):
    """Identity of a caller, as the transport determined it. It is never read from a request body.

    ``repr`` omits the attributes that may contain tokens or the session id.

    Attributes:
        owner: scope that threads and runs belong to. Callers with the same owner see the same runs.
        request_id: id of the request in the log.
        session_id: AgentCore's session, if there is one.
        principal: identity in the caller's verified token; None without authentication.
        headers: values by lower-case name, without cookies and transport headers.
        identity: name whose limits count: the owner for an authenticated caller, or the session where a gateway sets
            it. Empty without either.
    """

    owner: str
    request_id: str
    session_id: str | None = None
    principal: Principal | None = None
    headers: Mapping[str, str] = {}
    identity: str = ""

    def __repr__(self) -> str:
        return f"Caller(request_id={self.request_id!r}, principal={self.principal!r}, identity={self.identity!r})"


def session_label(session_id: str) -> str:
    """Return the name of a session in log lines: ``sha256-`` and the first 16 digits of its SHA-256 in hexadecimal.

    The id itself is a credential where no token is required.
    """
    return f"sha256-{hashlib.sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def thread_key(owner: str, thread_id: str) -> str:
    """Return a digest of both: two owners may use the same thread id, and neither shows in it."""
    return f"thread-{hashlib.sha256(json.dumps([owner, thread_id]).encode()).hexdigest()}"


class Authenticator(Protocol):
    """Verifier of bearer tokens."""

    async def authenticate(self, token: str | None) -> Principal:
        """Verify a token; None stands for a request without one.

        Raises:
            AppError: UNAUTHORIZED if the token is missing or invalid, ACCESS_DENIED if it lacks a scope or a claim,
                AUTH_UNAVAILABLE if it cannot be verified now.
        """

    def check_expiry(self, principal: Principal) -> None:
        """Check that a principal's token is still valid, for messages on a connection that was opened with it.

        Raises:
            AppError: UNAUTHORIZED if the token has expired.
        """
