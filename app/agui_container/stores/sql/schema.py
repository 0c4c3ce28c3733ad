"""Current tables of the database, and the encoding of strings in their columns.

Rule: every string that a caller sends can be stored and is returned unchanged. PostgreSQL's text has no NUL and no lone
surrogates, and its indexes have a size limit. Therefore strings are escaped, and ids are looked up by their digests.
JSON is stored as bytes.

Rule: the database enforces the invariants: one active run per thread, one envelope per run and ``seq``, one message and
one note per id. A ``*_revision`` column stores the thread's ``revision`` at which that part of it last changed.
The scripts in ``migrations`` change the tables of older databases to these.
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
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeDecorator

_ESCAPED = re.compile(r"\\(\\|0|u[0-9a-f]{4})")


class EscapedText(TypeDecorator[str]):
    """Column type for any string, including NUL and lone surrogates."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - as in the base
        if value is None:
            return None
        return value.replace("\\", "\\\\").replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - as in the base
        return value if value is None or "\\" not in value else _ESCAPED.sub(_unescape, value)


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code == "0":
        return "\0"
    return code if code == "\\" else chr(int(code[1:], 16))


def digest_of(*parts: str) -> bytes:
    """Return the SHA-256 (32 bytes) of these strings in this order. Lookups use it in place of the strings."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(data))
        hashed.update(data)
    return hashed.digest()


def insert(dialect: str, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return the dialect's INSERT, which supports ON CONFLICT."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


NAMES = {
    "ix": "%(table_name)s_by_%(column_0_N_name)s",
    "uq": "%(table_name)s_one_per_%(column_0_N_name)s",
    "fk": "%(table_name)s_of_%(column_0_name)s",
    "pk": "%(table_name)s_pk",
}

METADATA = MetaData(naming_convention=NAMES)

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""Type of a row's number. SQLite numbers rows only in a column of the type INTEGER."""


def _of(table: str) -> ForeignKey:
    """Return a foreign key to ``table`` that deletes the row together with its parent."""
    return ForeignKey(f"{table}.number", ondelete="CASCADE")


def _index_where(condition: str, name: str, column: str, *, unique: bool = False) -> Index:
    return Index(name, column, unique=unique, sqlite_where=text(condition), postgresql_where=text(condition))


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
    UniqueConstraint("digest"),
    Index(None, "owner", "changed_at", "number"),
    sqlite_autoincrement=True,  # numbers are never reused, because tokens contain them
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
    Column("last_seq", Integer, nullable=False, server_default="0"),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("usage", LargeBinary),
    Column("error", LargeBinary),
    Column("kept", Boolean, nullable=False),
    Column("unwanted", Boolean, nullable=False, server_default=false()),
    Column("readers", Integer, nullable=False, server_default="0"),
    Column("read_at", Double, nullable=False, server_default="0"),
    Column("fingerprint", LargeBinary),
    UniqueConstraint("digest"),
    Index(None, "owner", "number"),
    Index("runs_by_thread", "thread", "number"),
    _index_where("status = 'running'", "runs_one_active_per_thread", "thread", unique=True),
    _index_where("ended_at IS NULL", "runs_open_by_replica", "replica"),
    _index_where("kept", "runs_kept_by_ended_at", "ended_at"),
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
    Index("messages_by_position", "thread", "position"),
)

NOTES = Table(
    "notes",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("thread", BigInteger, _of("threads"), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("kind", EscapedText, nullable=False),
    Column("note_id", EscapedText, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("until", Double),
    Column("settled", Boolean, nullable=False),
    Column("message_id", EscapedText),
    Column("message_digest", LargeBinary),
    UniqueConstraint("thread", "digest"),
    Index(None, "until"),
)

TOKENS = Table(
    "tokens",
    METADATA,
    Column("digest", LargeBinary, primary_key=True),
    Column("day", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)
"""Tokens of an owner's ended runs on the last day on which one of them had any. Days are counted from 1970."""

FILES = Table(
    "files",
    METADATA,
    Column("digest", LargeBinary, primary_key=True),
    Column("file_id", EscapedText, nullable=False),
    Column("name", EscapedText, nullable=False),
    Column("mime_type", EscapedText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index(None, "created_at"),
)
