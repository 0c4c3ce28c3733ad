"""Routes and their bodies, from the OpenAPI document that the server shows at ``/openapi.json``."""

from collections.abc import Iterator

from agui_container.main import build_app
from agui_container.settings import Settings
from website.json_schema import Schema, default_text, field_table, member, members, type_text
from website.tables import code, page, table

OPENING = (
    "Made from `GET /openapi.json`, with the routes of a server that has the chat page and\n"
    "[several agents](../agents.md#several-agents), and not the [Roboto API](../roboto.md).\n"
    "[HTTP API](../http-api.md) explains runs, commands and errors by example."
)
METHODS = ("get", "post", "patch", "put", "delete")


def http_api() -> str:
    """Return the page."""
    document: Schema = build_app(Settings(roboto=False, agents=["helper=assistant"])).openapi()
    routes = [
        section(method, path, member(operations, method))
        for path, operations in member(document, "paths").items()
        if isinstance(operations, dict)
        for method in METHODS
        if method in operations
    ]
    schemas = member(member(document, "components"), "schemas")
    types = [
        f"### {name}\n\n{described(schema)}" for name, schema in sorted(schemas.items()) if isinstance(schema, dict)
    ]
    return page("HTTP API", OPENING, "## Routes", *routes, "## Types", *types)


def described(schema: Schema) -> str:
    """Return a named type: its sentence, and its fields or its alternatives."""
    text = str(schema.get("description", ""))
    return f"{text}\n\n{field_table(schema) if 'properties' in schema else type_text(schema)}".strip()


def section(method: str, path: str, operation: Schema) -> str:
    """Return the section of one route."""
    return "\n\n".join([f"### {method.upper()} {path}", *parts(operation)])


def parts(operation: Schema) -> Iterator[str]:
    """Iterate over the paragraphs of a route: purpose, parameters, body, answers."""
    yield f"{operation['summary']}."
    if text := operation.get("description"):
        yield str(text)
    if parameters := members(operation, "parameters"):
        rows = [
            [
                code(each["name"]),
                str(each["in"]),
                type_text(member(each, "schema")),
                "required" if each.get("required") else default_text(member(each, "schema")),
                str(each.get("description", "")),
            ]
            for each in parameters
        ]
        yield table(["parameter", "in", "type", "default", "meaning"], rows)
    if body := member(operation, "requestBody"):
        yield f"Body: {contents(body)}."
    answers = member(operation, "responses")
    yield table(
        ["status", "answer", "body"],
        [
            [status, str(answer.get("description", "")), contents(answer)]
            for status, answer in answers.items()
            if isinstance(answer, dict)
        ],
    )


def contents(body: Schema) -> str:
    """Return the media types of a body, each with its type."""
    return ", ".join(
        f"{code(media)} {type_text(member(content, 'schema'))}"
        for media, content in member(body, "content").items()
        if isinstance(content, dict)
    )
