"""The end of a command that could not do its work: one line on the standard error, and exit status 2."""

from typing import IO, Any

import click

from agui_container.cli.control_characters import without_controls
from agui_container.log_values import mask_passwords


class CommandFailed(click.ClickException):
    """The command could not do its work. The message is the line to show; passwords of URLs in it are masked."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(mask_passwords(self.message), file=file, err=True)


def error_text(error: Exception) -> str:
    """Return an error of ``agui_client`` for the person: its code, its message, and its id in the server's log."""
    code, request_id = getattr(error, "code", None), getattr(error, "request_id", None)
    text = f"{code}: {error}" if code else str(error)
    return without_controls(f"{text} (request {request_id})" if request_id else text)
