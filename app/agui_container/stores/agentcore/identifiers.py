"""Ids of owners and threads in AgentCore Memory.

Rule: a valid name is used unchanged, so that the AWS console shows it. Any other name is replaced by its SHA-256.
Different names never get the same id. The records of turns contain the original thread ids.

Source: the patterns of ``ActorId`` (255 characters) and ``SessionId`` (100) in botocore's ``bedrock-agentcore``.
Slashes are allowed there but hashed here, because ids are parts of URL paths.
"""

import hashlib
import re

MEMORY_ID = re.compile(
    r"(arn:(aws|aws-cn|aws-us-gov):bedrock-agentcore:(?P<region>[a-z0-9-]+):[0-9]{12}:memory/)?"
    r"[a-zA-Z][a-zA-Z0-9-_]{0,99}-[a-zA-Z0-9]{10}"
)
"""Pattern of a memory's id or ARN."""

HASHED = "sha256-"

_ACTOR = re.compile(r"(?=.{1,255}\Z)[a-zA-Z0-9][a-zA-Z0-9_-]*(:[a-zA-Z0-9_-]+)*")
_SESSION = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,99}")


def actor_id(owner: str) -> str:
    """Return the actor id of an owner."""
    return _named(owner, _ACTOR)


def session_id(thread_id: str) -> str:
    """Return the session id of a thread."""
    return _named(thread_id, _SESSION)


def digest(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal. Lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _named(name: str, fits: re.Pattern[str]) -> str:
    return name if fits.fullmatch(name) and not name.startswith(HASHED) else f"{HASHED}{digest(name)}"
