"""Create the tables of goals and feedback."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables, and add the revision of goals to threads."""
    op.add_column("threads", sa.Column("goals_revision", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "goals",
        sa.Column("run", sa.BigInteger, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("schema", sa.LargeBinary, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("concluded_at", sa.Double),
        sa.PrimaryKeyConstraint("run", "place", name="goals_pk"),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], ondelete="CASCADE", name="goals_of_run"),
    )
    op.create_table(
        "feedback",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("thread", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("sentiment", sa.Text, nullable=False),
        sa.Column("categories", sa.Text, nullable=False),
        sa.Column("notes", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("label", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("resolved_by", sa.Text),
        sa.Column("resolved_at", sa.Double),
        sa.PrimaryKeyConstraint("number", name="feedback_pk"),
        sa.UniqueConstraint("thread", "digest", name="feedback_one_per_thread_digest"),
        sa.ForeignKeyConstraint(["thread"], ["threads.number"], ondelete="CASCADE", name="feedback_of_thread"),
    )
