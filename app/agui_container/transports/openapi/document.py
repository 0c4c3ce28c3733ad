"""The OpenAPI document: the routes of this server, added to those that a program has added by FastAPI's decorators.

Rule: only routes that the application has are described. The table of operations is written by hand, because the routes
are plain ones without FastAPI's types, and a test compares it with the routes.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from starlette.routing import BaseRoute

from agui_container.transports.openapi.operations import ROBOTO, ROBOTO_TAG, TAGS, operations
from agui_container.transports.openapi.schemas import schemas

Document = dict[str, Any]
"""An OpenAPI document, or a part of it."""

DESCRIPTION = """\
Any Python agent as an AG-UI server. Runs go to `POST /invocations`; everything else is a command there, too.

A refused request gets the status of its error code and one server-sent event, RUN_ERROR. With
`AGUI_ERROR_STATUS=stream`, `/invocations` sends the event with status 200. Browsers that open an unknown address get a
page.
"""


def add_own_routes(document: Document, routes: Iterable[BaseRoute]) -> Document:
    """Return a document with the routes of this server among ``routes`` added to it.

    Args:
        document: document that FastAPI has made of its own routes.
        routes: the routes of the application.
    """
    served = {template(getattr(route, "path", "")) for route in routes}
    own = {path: methods for path, methods in operations().items() if path in served}
    components = document.get("components", {})
    tags = (*TAGS, ROBOTO_TAG) if any(path.startswith(ROBOTO) for path in own) else TAGS
    return {
        **document,
        "info": {"description": DESCRIPTION, **document["info"]},
        "tags": [*tags, *document.get("tags", ())],
        "paths": {**own, **document.get("paths", {})},
        "components": {**components, "schemas": {**_schemas(), **components.get("schemas", {})}},
    }


def template(path: str) -> str:
    """Return a route's path in OpenAPI's form, which has no converters: ``/console/{name}``."""
    return path.replace(":path}", "}")


_schemas = cache(schemas)
