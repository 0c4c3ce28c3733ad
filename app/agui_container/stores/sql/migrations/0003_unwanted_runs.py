"""Runs whose end somebody has asked for."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Let a run's replica hear of it from the database."""
    op.add_column("runs", sa.Column("unwanted", sa.Boolean, nullable=False, server_default=sa.false()))
