"""The store of a database: its parts on one ``Database``."""

from collections.abc import Sequence

from sqlalchemy import URL

from app.ports.conversation import Lapse
from app.ports.records import ThreadKey
from app.stores.sql.database import PATIENCE, Database
from app.stores.sql.feedback import SqlFeedbacks
from app.stores.sql.goals import SqlGoals
from app.stores.sql.interrupts import SqlInterrupts
from app.stores.sql.migration import upgrade
from app.stores.sql.runs import SqlRuns
from app.stores.sql.threads import SqlThreads


class SqlStore:
    """A ``Store`` in SQLite or PostgreSQL.

    Args:
        url: which.
        patience: seconds that one call may take.
    """

    def __init__(self, url: URL, patience: float = PATIENCE) -> None:
        self._database = Database(url, patience)
        self.runs = SqlRuns(self._database)
        self.threads = SqlThreads(self._database)
        self.goals = SqlGoals(self._database)
        self.interrupts = SqlInterrupts(self._database)
        self.feedbacks = SqlFeedbacks(self._database)

    def lapses(self, thread: ThreadKey) -> Sequence[Lapse]:  # noqa: ARG002 - as in the port
        """None: what cannot be done fails."""
        return ()

    async def open(self) -> None:
        """Connect, and bring an older database up to date."""
        try:
            async with self._database.upgrading() as connection:
                await connection.run_sync(upgrade)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._database.aclose()
