"""Add the index of messages by position."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the index, for pages of a long thread."""
    op.create_index("messages_by_position", "messages", ["thread", "position"])
