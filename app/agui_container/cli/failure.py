"""What a person reads of a command that fails: one line on the standard error.

Rule: text of agents and servers passes ``without_controls`` before a terminal shows it. Otherwise a model could move
the cursor, hide an approval, or write to the clipboard.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from agui_container.imports import EXTRAS, advice_for
from agui_container.log_values import mask_passwords

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""All but tab and line feed, and the marks that change the direction of writing."""

BROUGHT_BY = {"botocore": "boto3"}
"""Packages that come with a package of an extra."""


class CommandFailed(click.ClickException):
    """The command could not do its work. The message is the line to show; passwords of URLs in it are masked."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(mask_passwords(self.message), file=file, err=True)


def without_controls(text: str) -> str:
    """Return the text with U+FFFD in place of each control character, and without carriage returns."""
    return CONTROLS.sub("\ufffd", text.replace("\r", ""))


def error_text(error: Exception) -> str:
    """Return an error for the person: of a file its name, of a server the code, and the id in the server's log."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}."
    code, request_id = getattr(error, "code", None), getattr(error, "request_id", None)
    text = f"{code}: {error}" if code else str(error)
    sentence, *traceback = text.split("\n", 1)  # `agui dev` sends one
    return without_controls("\n".join((f"{sentence} (request {request_id})", *traceback)) if request_id else text)


@contextmanager
def needs_extra(command: str) -> Iterator[None]:
    """Import modules that need an extra. Raises ``ClickException``, with what to install, if a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        package = BROUGHT_BY.get(package, package)
        extra = next((extra for extra, modules in EXTRAS.items() if package in modules), None)
        if extra is None:
            raise
        message = f"agui {command} needs the package {package}. {advice_for(extra)}"
        raise click.ClickException(message) from None
