"""Refusals by the limits of the process and of identities: their metric and their log lines."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

from agui_container.log_values import format_fields
from agui_container.telemetry.instruments import LIMIT, LIMIT_SCOPE, REFUSALS

REPORT_SECONDS = 60.0
"""Seconds between two log lines about the same limit of the same identity."""

logger = logging.getLogger(__name__)


class RefusalLog:
    """Refusals by limits: all in the metric, and in the log one in ``REPORT_SECONDS`` for each limit of an identity.

    Args:
        now: returns seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._reported_at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def report(self, name: str, identity: str = "", scope: str = "process") -> None:
        """Count a refusal, and log it unless the same limit was logged a short while ago.

        ``identity`` is the one that was refused, empty without one. ``scope`` is ``identity`` or ``process``.
        """
        REFUSALS.add(1, {LIMIT: name, LIMIT_SCOPE: scope})
        now = self._now()
        while self._reported_at and now - next(iter(self._reported_at.values())) >= REPORT_SECONDS:
            self._reported_at.popitem(last=False)
        if (name, identity) not in self._reported_at:
            self._reported_at[name, identity] = now
            fields = {"limit": name, "identity": identity} if identity else {"limit": name}
            logger.warning("limit reached %s", format_fields(fields))
