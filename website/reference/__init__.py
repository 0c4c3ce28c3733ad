"""Pages of the reference, each made from the code that it describes."""

from collections.abc import Callable, Mapping

from website.reference.client_commands import client_commands
from website.reference.command_line import command_line
from website.reference.configuration_file import configuration_file
from website.reference.errors import errors
from website.reference.events import events
from website.reference.http_api import http_api
from website.reference.python_api import python_client, python_server
from website.reference.typescript_api import typescript_client

REFERENCE: Mapping[str, Callable[[], str]] = {
    "agui-toml.md": configuration_file,
    "errors.md": errors,
    "command-line.md": command_line,
    "client-commands.md": client_commands,
    "http.md": http_api,
    "events.md": events,
    "python-server.md": python_server,
    "python-client.md": python_client,
    "typescript-client.md": typescript_client,
}
"""The name of each page, below ``reference``, and the function that returns its text."""
