"""Add the readers of runs and the part of interrupts."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns.

    Interrupts of subagents that were stored before this step are no longer found. They expire within two hours.
    """
    op.add_column("runs", sa.Column("readers", sa.Integer, nullable=False, server_default="0"))
    op.add_column("interrupts", sa.Column("part", sa.Text, nullable=False, server_default=""))
