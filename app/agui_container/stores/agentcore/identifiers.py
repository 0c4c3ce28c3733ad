"""Owners and threads as AgentCore Memory can name them.

Rule: a name that fits is taken as it is, so that a console shows it; any other is its SHA-256. No two have one name.
What was hashed is in the records of turns.

Source: the patterns of ``ActorId`` (255 characters) and ``SessionId`` (100) in botocore's ``bedrock-agentcore``. Less
than they allow is taken as it is: no slash, because names are parts of addresses.
"""

import hashlib
import re

MEMORY_ID = re.compile(
    r"(arn:(aws|aws-cn|aws-us-gov):bedrock-agentcore:(?P<region>[a-z0-9-]+):[0-9]{12}:memory/)?"
    r"[a-zA-Z][a-zA-Z0-9-_]{0,99}-[a-zA-Z0-9]{10}"
)
"""The id or the ARN of a memory."""

HASHED = "sha256-"

_ACTOR = re.compile(r"(?=.{1,255}\Z)[a-zA-Z0-9][a-zA-Z0-9_-]*(:[a-zA-Z0-9_-]+)*")
_SESSION = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,99}")


def actor_id(owner: str) -> str:
    """The actor that an owner is."""
    return _named(owner, _ACTOR)


def session_id(thread_id: str) -> str:
    """The session that a thread is."""
    return _named(thread_id, _SESSION)


def digest(text: str) -> str:
    """SHA-256 in hexadecimal; half a surrogate pair is a character like others."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _named(name: str, fits: re.Pattern[str]) -> str:
    return name if fits.fullmatch(name) and not name.startswith(HASHED) else f"{HASHED}{digest(name)}"
