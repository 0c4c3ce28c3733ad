"""The tables as they are now. ``migrations`` makes them; a test says that both are the same.

Rule: the invariants are the database's: one active run per thread, one envelope per run and ``seq``, one message and
one interrupt per id. ``revision`` columns hold the thread's ``revision`` of when that part of it last changed.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
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

from app.stores.sql.columns import Words

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
    Column("owner", Words, nullable=False),
    Column("thread_id", Words, nullable=False),
    Column("title", Words),
    Column("status", Text, nullable=False),
    Column("state", LargeBinary),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("forked_thread", Words),
    Column("forked_message", Words),
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
    Column("owner", Words, nullable=False),
    Column("thread_id", Words, nullable=False),
    Column("run_id", Words, nullable=False),
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
    Column("message_id", Words, nullable=False),
    Column("run_id", Words),
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
    Column("type", Words, nullable=False),
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
    Column("interrupt_id", Words, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("until", Double, nullable=False),
    Column("settled", Boolean, nullable=False),
    Column("part", Words, nullable=False, server_default=""),
    UniqueConstraint("thread", "depth", "digest"),
    Index(None, "until"),
)

FEEDBACK = Table(
    "feedback",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("thread", BigInteger, _of("threads"), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("message_id", Words, nullable=False),
    Column("sentiment", Text, nullable=False),
    Column("categories", Text, nullable=False),
    Column("notes", Words),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("label", Words),
    Column("note", Words),
    Column("resolved_by", Words),
    Column("resolved_at", Double),
    UniqueConstraint("thread", "digest"),
)
