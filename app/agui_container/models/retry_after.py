"""Time that a model provider asks to wait, by the headers of its error response.

Source: RFC 9110, section 10.2.3, and ``retry-after-ms`` of OpenAI and Azure.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider asks to wait, or None. The names of the headers are in lower case.

    The header has milliseconds, seconds or a date. A date is compared with the provider's own ``date``, because the
    clocks may differ.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        until, now = (parsedate_to_datetime(headers.get(name, "")) for name in ("retry-after", "date"))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):
        return None
