"""Create the tables of runs, threads, messages, notes, tokens and files."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
RUNNING = sa.text("status = 'running'")
KEPT = sa.text("kept")
OPEN = sa.text("ended_at IS NULL")


def upgrade() -> None:
    """Create the tables."""
    threads()
    runs()
    envelopes()
    messages()
    notes()
    tokens()
    files()


def threads() -> None:
    """Create the table of threads."""
    op.create_table(
        "threads",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("thread_id", sa.Text, nullable=False),
        sa.Column("title", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("state", sa.LargeBinary),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("forked_thread", sa.Text),
        sa.Column("forked_message", sa.Text),
        sa.Column("revision", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("state_revision", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("order_revision", sa.BigInteger, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("number", name="threads_pk"),
        sa.UniqueConstraint("digest", name="threads_one_per_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("threads_by_owner_changed_at_number", "threads", ["owner", "changed_at", "number"])


def runs() -> None:
    """Create the table of runs. At most one run per thread is active."""
    op.create_table(
        "runs",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("thread", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("thread_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("replica", sa.Text, nullable=False),
        sa.Column("lease_until", sa.Double, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False, server_default="0"),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("usage", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.Column("kept", sa.Boolean, nullable=False),
        sa.Column("unwanted", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("readers", sa.Integer, nullable=False, server_default="0"),
        sa.Column("fingerprint", sa.LargeBinary),
        sa.PrimaryKeyConstraint("number", name="runs_pk"),
        sa.UniqueConstraint("digest", name="runs_one_per_digest"),
        sa.ForeignKeyConstraint(["thread"], ["threads.number"], ondelete="CASCADE", name="runs_of_thread"),
        sqlite_autoincrement=True,
    )
    op.create_index("runs_by_owner_number", "runs", ["owner", "number"])
    op.create_index("runs_by_thread", "runs", ["thread", "number"])
    op.create_index(
        "runs_one_active_per_thread",
        "runs",
        ["thread"],
        unique=True,
        sqlite_where=RUNNING,
        postgresql_where=RUNNING,
    )
    op.create_index("runs_open_by_replica", "runs", ["replica"], sqlite_where=OPEN, postgresql_where=OPEN)
    op.create_index("runs_kept_by_ended_at", "runs", ["ended_at"], sqlite_where=KEPT, postgresql_where=KEPT)


def envelopes() -> None:
    """Create the table of envelopes."""
    op.create_table(
        "envelopes",
        sa.Column("run", sa.BigInteger, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("run", "seq", name="envelopes_pk"),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], ondelete="CASCADE", name="envelopes_of_run"),
    )


def messages() -> None:
    """Create the table of messages."""
    op.create_table(
        "messages",
        sa.Column("thread", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("thread", "digest", name="messages_pk"),
        sa.ForeignKeyConstraint(["thread"], ["threads.number"], ondelete="CASCADE", name="messages_of_thread"),
    )
    op.create_index("messages_by_revision", "messages", ["thread", "revision"])
    op.create_index("messages_by_position", "messages", ["thread", "position"])


def notes() -> None:
    """Create the table of notes."""
    op.create_table(
        "notes",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("thread", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("note_id", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("until", sa.Double),
        sa.Column("settled", sa.Boolean, nullable=False),
        sa.Column("message_id", sa.Text),
        sa.Column("message_digest", sa.LargeBinary),
        sa.PrimaryKeyConstraint("number", name="notes_pk"),
        sa.UniqueConstraint("thread", "digest", name="notes_one_per_thread_digest"),
        sa.ForeignKeyConstraint(["thread"], ["threads.number"], ondelete="CASCADE", name="notes_of_thread"),
    )
    op.create_index("notes_by_until", "notes", ["until"])


def tokens() -> None:
    """Create the table of owners' tokens of a day."""
    op.create_table(
        "tokens",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("day", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="tokens_pk"),
    )


def files() -> None:
    """Create the table of files."""
    op.create_table(
        "files",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("file_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("mime_type", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="files_pk"),
    )
    op.create_index("files_by_created_at", "files", ["created_at"])
