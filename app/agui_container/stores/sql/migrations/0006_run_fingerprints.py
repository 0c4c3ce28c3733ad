"""Add fingerprints of the messages of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column. Existing runs have no fingerprint, so any retry joins them."""
    op.add_column("runs", sa.Column("fingerprint", sa.LargeBinary))
