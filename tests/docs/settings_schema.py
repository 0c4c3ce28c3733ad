"""The JSON Schema of ``agui.toml``: made from the settings, the models of their tables, and the guide's table.

    make schema

writes it into the package. Editors read it (``#:schema``), and ``agui config --schema`` prints it.
"""

import json
import re
from typing import Any

import msgspec
from pydantic import SecretStr, TypeAdapter

from agui_container.auth.claim_rules import ClaimRule
from agui_container.aws.deploy.options import DeployOptions
from agui_container.engine.limits import IdentityLimits
from agui_container.models.bedrock import BedrockOptions
from agui_container.models.openai import OpenAIOptions
from agui_container.protocol.token_usage import ModelPrice
from agui_container.settings import JSON_SETTINGS, Settings
from agui_container.settings_sources import DEPLOY_TABLE
from agui_container.tools.mcp.servers import HttpServer, StdioServer
from agui_container.tools.policy import PolicyRule
from tests.docs.documents import GUIDES, ROOT
from tests.docs.markdown import code
from tests.engine.doubles import Json

FILE = ROOT / "app" / "agui_container" / "agui.schema.json"
TABLES: dict[str, TypeAdapter[object]] = {
    "model_options": TypeAdapter(BedrockOptions | OpenAIOptions),
    "tool_policy": TypeAdapter(tuple[PolicyRule, ...]),
    "mcp_servers": TypeAdapter(tuple[HttpServer | StdioServer, ...]),
    "auth_custom_claims": TypeAdapter(tuple[ClaimRule, ...]),
}
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
REFERENCE = re.compile(r"\(\[[^\]]*\]\(([\w-]+\.md)[^)]*\)\)")
"""A link in parentheses, which becomes the name of its file."""


def meanings() -> dict[str, str]:
    rows = GUIDES["configuration"].table("variable")
    return {code(name).removeprefix("AGUI_").lower(): without_markdown(text) for name, _, text in rows}


def without_markdown(text: str) -> str:
    text = REFERENCE.sub(r"(docs/\1)", text)
    return LINK.sub(r"\1", text).replace("`", "").replace("a JSON list", "a list").replace("a JSON object", "a table")


def settings_schema() -> Json:
    schema: Json = Settings.model_json_schema()
    definitions: Json = schema.pop("$defs")
    properties: Json = schema["properties"]
    for name, adapter in TABLES.items():
        table: Json = adapter.json_schema()
        definitions |= table.pop("$defs", {})
        properties[name] = table
    limits: Json = msgspec.json.schema(IdentityLimits)
    definitions |= limits.pop("$defs")
    properties["caller_limits"] = limits
    prices: Json = msgspec.json.schema(dict[str, ModelPrice])
    definitions |= prices.pop("$defs")
    properties["model_prices"] = prices
    texts = {"type": "string"}
    for name in ("models", "agents"):
        properties[name] = {
            "anyOf": [{"type": "object", "additionalProperties": texts}, {"type": "array", "items": texts}]
        }
    deploy: Json = msgspec.json.schema(DeployOptions)
    definitions |= deploy.pop("$defs")
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, SecretStr):
            properties[name]["default"] = field.default.get_secret_value()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agui.toml",
        "description": "Settings of agui-container.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **{name: {"description": text, **plain(properties[name])} for name, text in meanings().items()},
            DEPLOY_TABLE: {"description": "the options of agui deploy (docs/deploy.md)", **deploy},
        },
        "$defs": {name: plain(definition) for name, definition in definitions.items()},
    }


def plain(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {name for name in ("title", "description") if isinstance(schema.get(name), str)}
    return {name: plain(each) for name, each in schema.items() if name not in left_out}


def schema_text() -> str:
    return json.dumps(settings_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    assert set(TABLES) | {"caller_limits", "model_prices"} == set(JSON_SETTINGS)
    FILE.write_text(schema_text(), encoding="utf-8")
