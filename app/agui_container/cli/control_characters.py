"""Control characters in text of agents and servers, which a terminal would obey.

Rule: everything that comes from a server passes ``without_controls`` before a terminal shows it. Otherwise a model
could move the cursor, hide an approval, or write to the clipboard.
"""

import re

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""All but tab and line feed, and the marks that change the direction of writing."""


def without_controls(text: str) -> str:
    """Return the text with U+FFFD in place of each control character, and without carriage returns."""
    return CONTROLS.sub("\ufffd", text.replace("\r", ""))
