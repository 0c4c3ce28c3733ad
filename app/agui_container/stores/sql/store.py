"""The store in a database. All its parts share one ``Database``."""

from collections.abc import Sequence

from sqlalchemy import URL

from agui_container.ports.records import StoreWarning, ThreadKey
from agui_container.stores.sql.database import TIMEOUT_SECONDS, Database
from agui_container.stores.sql.feedback import SqlFeedbacks
from agui_container.stores.sql.interrupts import SqlInterrupts
from agui_container.stores.sql.migration import upgrade
from agui_container.stores.sql.runs import SqlRuns
from agui_container.stores.sql.threads import SqlGoals, SqlThreads


class SqlStore:
    """A ``Store`` in SQLite or PostgreSQL.

    Args:
        url: URL of the database.
        timeout: limit of one call, in seconds.
    """

    def __init__(self, url: URL, timeout: float = TIMEOUT_SECONDS) -> None:
        self._database = Database(url, timeout)
        self.runs = SqlRuns(self._database)
        self.threads = SqlThreads(self._database)
        self.goals = SqlGoals(self._database)
        self.interrupts = SqlInterrupts(self._database)
        self.feedbacks = SqlFeedbacks(self._database)

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:  # noqa: ARG002 - as in the port
        """Return nothing, because a failed call raises."""
        return ()

    async def open(self) -> None:
        """Connect, and migrate an older database. Raises ``StoreUnavailable``."""
        try:
            async with self._database.migration_transaction() as connection:
                await connection.run_sync(upgrade)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close all connections."""
        await self._database.aclose()
