"""Port of authentication: a bearer token in, the principal that it names out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


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

    async def aclose(self) -> None:
        """Close all connections."""
