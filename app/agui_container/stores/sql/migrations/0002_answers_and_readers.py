"""The time of the last reader on another replica, and the digest of answers that begins the fingerprint of a run."""

from alembic import op
from sqlalchemy import Column, Double

revision = "0002"
down_revision = "0001"

WITHOUT_ANSWERS = {
    "sqlite": "UPDATE runs SET fingerprint = CAST(x'000000000000' || fingerprint AS BLOB)",
    "postgresql": "UPDATE runs SET fingerprint = decode('000000000000', 'hex') || fingerprint",
}


def upgrade() -> None:
    op.add_column("runs", Column("read_at", Double, nullable=False, server_default="0"))
    op.execute(WITHOUT_ANSWERS[op.get_context().dialect.name])
