"""The tables of the first release, which ``schema`` creates. Later steps change them."""

revision = "0001_tables"
down_revision = None


def upgrade() -> None:
    """Do nothing: a database without tables gets those of ``schema``, and no step."""
