"""How values are kept in columns.

Rule: whatever a caller sends can be stored and comes back as it was. PostgreSQL's text takes no NUL and no lone
surrogate, and its indexes take no long value: so words are escaped, and ids are found by their digests. JSON is bytes.

The tables as they are now. ``migrations`` makes them; a test says that both are the same.

Rule: the invariants are the database's: one active run per thread, one envelope per run and ``seq``, one message and
one interrupt per id. ``revision`` columns hold the thread's ``revision`` of when that part of it last changed.
"""

import hashlib
import re

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.types import TypeDecorator

_ESCAPED = re.compile(r"\\(\\|0|u[0-9a-f]{4})")


class EscapedText(TypeDecorator[str]):
    """Any string."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - as in the base
        """The string as it is stored."""
        return None if value is None else escape_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - as in the base
        """The string as it was."""
        return None if value is None else unescape_text(value)


def escape_text(value: str) -> str:
    """The string without NUL and lone surrogates; reads the same where there is neither, nor a backslash."""
    value = value.replace("\\", "\\\\").replace("\0", "\\0")
    return value.encode("utf-8", "backslashreplace").decode()


def unescape_text(value: str) -> str:
    """What ``escape_text`` was given."""
    return _ESCAPED.sub(_unescape, value) if "\\" in value else value


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code == "0":
        return "\0"
    return code if code == "\\" else chr(int(code[1:], 16))


def digest_of(*parts: str) -> bytes:
    """What stands for these strings, in this order, wherever they are looked for. 32 bytes."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(data))
        hashed.update(data)
    return hashed.digest()


NAMES = {
    "ix": "%(table_name)s_by_%(column_0_N_name)s",
    "uq": "%(table_name)s_one_per_%(column_0_N_name)s",
    "fk": "%(table_name)s_of_%(column_0_name)s",
    "pk": "%(table_name)s_pk",
}

METADATA = MetaData(naming_convention=NAMES)

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""A row's number. SQLite counts only what is called INTEGER."""


def _of(table: str) -> ForeignKey:
    """A part of that: gone with it."""
    return ForeignKey(f"{table}.number", ondelete="CASCADE")


THREADS = Table(
    "threads",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("owner", EscapedText, nullable=False),
    Column("thread_id", EscapedText, nullable=False),
    Column("title", EscapedText),
    Column("status", Text, nullable=False),
    Column("state", LargeBinary),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("forked_thread", EscapedText),
    Column("forked_message", EscapedText),
    Column("revision", BigInteger, nullable=False, server_default="0"),
    Column("state_revision", BigInteger, nullable=False, server_default="0"),
    Column("order_revision", BigInteger, nullable=False, server_default="0"),
    Column("goals_revision", BigInteger, nullable=False, server_default="0"),
    Column("metadata", LargeBinary),
    UniqueConstraint("digest"),
    Index(None, "owner", "changed_at", "number"),
    sqlite_autoincrement=True,  # a number is not given twice, because tokens name it
)

RUNS = Table(
    "runs",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("thread", BigInteger, _of("threads"), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("owner", EscapedText, nullable=False),
    Column("thread_id", EscapedText, nullable=False),
    Column("run_id", EscapedText, nullable=False),
    Column("replica", Text, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("status", Text, nullable=False),
    Column("input", LargeBinary),  # not written any more; it stays for older replicas, which write it
    Column("last_seq", Integer, nullable=False, server_default="0"),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("usage", LargeBinary),
    Column("error", LargeBinary),
    Column("kept", Boolean, nullable=False),
    Column("unwanted", Boolean, nullable=False, server_default=false()),
    Column("readers", Integer, nullable=False, server_default="0"),
    UniqueConstraint("digest"),
    Index(None, "owner", "number"),
    Index("runs_by_thread", "thread", "number"),
    Index(
        "runs_one_active_per_thread",
        "thread",
        unique=True,
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
    Index("runs_kept_by_ended_at", "ended_at", sqlite_where=text("kept"), postgresql_where=text("kept")),
    sqlite_autoincrement=True,
)

ENVELOPES = Table(
    "envelopes",
    METADATA,
    Column("run", BigInteger, _of("runs"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("type", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

MESSAGES = Table(
    "messages",
    METADATA,
    Column("thread", BigInteger, _of("threads"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
    Column("message_id", EscapedText, nullable=False),
    Column("run_id", EscapedText),
    Column("position", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("messages_by_revision", "thread", "revision"),
)

GOALS = Table(
    "goals",
    METADATA,
    Column("run", BigInteger, _of("runs"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("type", EscapedText, nullable=False),
    Column("schema", LargeBinary, nullable=False),
    Column("status", Text, nullable=False),
    Column("result", LargeBinary),
    Column("created_at", Double, nullable=False),
    Column("concluded_at", Double),
)

INTERRUPTS = Table(
    "interrupts",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("thread", LargeBinary, nullable=False),  # its digest: something may wait before the thread is stored
    Column("depth", Integer, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("interrupt_id", EscapedText, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("until", Double, nullable=False),
    Column("settled", Boolean, nullable=False),
    Column("part", EscapedText, nullable=False, server_default=""),
    UniqueConstraint("thread", "depth", "digest"),
    Index(None, "until"),
)

FEEDBACK = Table(
    "feedback",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("thread", BigInteger, _of("threads"), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("message_id", EscapedText, nullable=False),
    Column("sentiment", Text, nullable=False),
    Column("categories", Text, nullable=False),
    Column("notes", EscapedText),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("label", EscapedText),
    Column("note", EscapedText),
    Column("resolved_by", EscapedText),
    Column("resolved_at", Double),
    UniqueConstraint("thread", "digest"),
)
