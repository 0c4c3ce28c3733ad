"""How a run stands on its replica, and what waits in a part of a thread."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Let everybody see who reads a run, and let what subagents ask go with the thread.

    What subagents had asked before this is not found any more; it expires within two hours.
    """
    op.add_column("runs", sa.Column("readers", sa.Integer, nullable=False, server_default="0"))
    op.add_column("interrupts", sa.Column("part", sa.Text, nullable=False, server_default=""))
