"""Values in log lines: quoted if they could pass for another field, and without the passwords of URLs."""

import re
from collections.abc import Mapping

FACTS = "facts"
"""Attribute of a log record with further fields for JSON: ``logger.info(…, extra={FACTS: {…}})``."""

PLAIN_VALUE = re.compile(r"[^\s\"'=\\]+")
URL_PASSWORD = re.compile(r"(://[^/\s:@]*):(?!PASSWORD@)[^/\s\"']*@")  # PASSWORD stands for one in messages
QUERY_PASSWORD = re.compile(r"([?&](?:ssl)?password=)[^&\s\"']+", re.IGNORECASE)


def format_fields(fields: Mapping[str, object]) -> str:
    return " ".join([f"{name}={value if type(value) is int else quote_value(value)}" for name, value in fields.items()])


def quote_value(value: object) -> str:
    """Return the text of a value. Callers choose some texts, so spaces, quotes, ``=`` and invisible ones are quoted."""
    text = str(value)
    return text if text.isprintable() and PLAIN_VALUE.fullmatch(text) else repr(text)


def mask_passwords(text: str) -> str:
    """Return a text with ``***`` in place of the passwords in its URLs."""
    if "://" not in text:
        return text
    return QUERY_PASSWORD.sub(r"\1***", URL_PASSWORD.sub(r"\1:***@", text))
