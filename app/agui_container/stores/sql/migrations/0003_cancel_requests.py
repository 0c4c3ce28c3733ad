"""Add the cancellation request to runs."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column that a run's replica reads when it renews the lease."""
    op.add_column("runs", sa.Column("unwanted", sa.Boolean, nullable=False, server_default=sa.false()))
