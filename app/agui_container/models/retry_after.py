"""Time that a model provider asks to wait, by the headers or the words of its error response.

Sources: RFC 9110, section 10.2.3; ``retry-after-ms`` of OpenAI and Azure; "try again in 20s" of OpenAI and Groq; "retry
in 20.5s" and ``RetryInfo.retryDelay`` of Google.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite

_WORDS = re.compile(
    r"(?:again in|retry in|retryDelay\W{1,8})\s*"
    r"(?:(?P<minutes>\d{1,4})m(?!s))?(?:(?P<number>\d{1,9}(?:\.\d{1,9})?)(?P<unit>ms|s))?"
)


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


def retry_after_words(text: str) -> float | None:
    """Return the seconds that the text of an error response asks to wait, such as ``1m2.5s`` or ``120ms``, or None."""
    found = _WORDS.search(text)
    if found is None or not (found["minutes"] or found["number"]):
        return None
    unit = 0.001 if found["unit"] == "ms" else 1.0
    return 60.0 * int(found["minutes"] or 0) + unit * float(found["number"] or 0)
