"""The OpenAPI document as a page: operations by tag, then schemas.

Rule: every text of the document is escaped, because a program may add routes of its own.
"""

import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from agui_container.transports.openapi.schemas import PREFIX

Json = Mapping[str, Any]

REFERENCE = re.compile(rf"&quot;{re.escape(PREFIX)}([\w.-]+)&quot;")
"""A reference to a schema, in escaped JSON."""


def render(document: Json) -> str:
    """Return the body of the page, as HTML."""
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    names = [tag["name"] for tag in document.get("tags", ())]
    untagged = [each for each in operations if not {*each[2].get("tags", ())} & {*names}]
    groups = [
        _group(tag["name"], tag.get("description", ""), _tagged(operations, tag["name"]))
        for tag in document.get("tags", ())
    ]
    schemas = document.get("components", {}).get("schemas", {})
    return "".join(
        (
            f'<p class="small">Version {escape(document["info"]["version"])}. ',
            'The same as an <a href="openapi.json">OpenAPI document</a>.</p>',
            _paragraphs(document["info"].get("description", "")),
            *groups,
            _group("Other routes", "", untagged) if untagged else "",
            "<h2>Schemas</h2>",
            *(_schema(name, schema) for name, schema in sorted(schemas.items())),
        )
    )


Named = tuple[str, str, Json]
"""Method, path and operation."""


def _tagged(operations: Iterable[Named], tag: str) -> list[Named]:
    return [each for each in operations if tag in each[2].get("tags", ())]


def _group(title: str, description: str, operations: Iterable[Named]) -> str:
    return f"<h2>{escape(title)}</h2>{_paragraphs(description)}{''.join(_operation(*each) for each in operations)}"


def _operation(method: str, path: str, operation: Json) -> str:
    head = f'<span class="method">{escape(method.upper())}</span> <code>{escape(path)}</code>'
    parts = (
        _paragraphs(operation.get("description", "")),
        _parameters(operation.get("parameters", ())),
        _body(operation.get("requestBody", {}).get("content", {})),
        _responses(operation.get("responses", {})),
    )
    return f"<details><summary>{head} {escape(operation.get('summary', ''))}</summary>{''.join(parts)}</details>"


def _parameters(parameters: Iterable[Json]) -> str:
    rows = [
        (
            f"<code>{escape(each['name'])}</code>",
            escape(each["in"]),
            _text(each.get("description", "")),
            _inline(each.get("schema", {})),
        )
        for each in parameters
    ]
    return _table(("parameter", "in", "meaning", "schema"), rows) if rows else ""


def _body(content: Json) -> str:
    parts = []
    for media_type, value in content.items():
        parts.append(f"<p>Body, <code>{escape(media_type)}</code></p>{_json(value.get('schema', {}))}")
        parts.extend(f"<p>Example</p>{_json(example['value'])}" for example in value.get("examples", {}).values())
    return "".join(parts)


def _responses(responses: Json) -> str:
    rows = [
        (
            escape(status),
            _text(response.get("description", "")),
            "<br>".join(f"<code>{escape(name)}</code>" for name in response.get("content", {})),
            "<br>".join(_inline(value.get("schema", {})) for value in response.get("content", {}).values()),
        )
        for status, response in responses.items()
    ]
    return _table(("status", "meaning", "type", "schema"), rows)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _schema(name: str, schema: Json) -> str:
    """Return a schema that a link to its id opens. Browsers open ``details`` for the target of a link inside."""
    title = f'<code id="{escape(name)}">{escape(name)}</code>'
    return f"<details><summary>{title}</summary>{_json(schema)}</details>"


def _json(value: object) -> str:
    return f"<pre>{_linked(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _inline(schema: Json) -> str:
    return f"<code>{_linked(json.dumps(schema, ensure_ascii=False))}</code>" if schema else ""


def _linked(text: str) -> str:
    """Escape JSON, and make links of its references to schemas."""
    return REFERENCE.sub(r'<a href="#\1">\1</a>', escape(text))


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_text(part)}</p>" for part in text.strip().split("\n\n") if part)


def _text(text: str) -> str:
    """Escape a text, and format spans between backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
