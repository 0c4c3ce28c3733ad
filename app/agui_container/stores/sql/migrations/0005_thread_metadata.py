"""Add metadata to threads."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column. Existing threads have no metadata."""
    op.add_column("threads", sa.Column("metadata", sa.LargeBinary))
