"""What transports note of a thread."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Give threads a place for it. Threads that are there have none."""
    op.add_column("threads", sa.Column("metadata", sa.LargeBinary))
