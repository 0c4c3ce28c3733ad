"""``agui config``: print the settings and the origin of each one.

Rule: no secret is printed. The text is a valid ``agui.toml``.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import click
from pydantic import SecretStr

import agui_container
from agui_container.cli.failure import CommandFailed
from agui_container.cli.options import config_option
from agui_container.log_values import mask_passwords
from agui_container.settings import JSON_SETTINGS, Settings, SettingsError
from agui_container.settings_sources import load_with_origins

SCHEMA = Path(agui_container.__file__).with_name("agui.schema.json")
MASK = "********"
SECRET_NAME = re.compile(r"(?i)[\w-]*(?:key|token|secret|password|passwd|credentials?|authorization|signature)")
SECRET_TABLES = ("headers", "env")
"""Tables of MCP servers and models in which every value may be a secret."""
SECRET_PART = re.compile(rf"(?i)(?<![\w-]){SECRET_NAME.pattern.removeprefix('(?i)')}=[^&\s]+")
"""Part of a URL's query, or an argument of a program, that holds a secret. It begins where a word does, which keeps the
search linear."""
COLUMN = 40
"""Width of a setting before its origin."""


@click.command()
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: name, value and origin of each setting.")
@click.option("--schema", "schema", is_flag=True, help="Print the JSON Schema of agui.toml, for editors.")
def config(config: Path | None, *, as_json: bool, schema: bool) -> None:
    """Print all settings as they hold here, and where each value comes from. Secrets are masked."""
    if schema:
        click.echo(SCHEMA.read_text(encoding="utf-8"), nl=False)
        return
    try:
        settings, origins = load_with_origins(config)
    except SettingsError as error:
        raise CommandFailed(f"cannot do this: {error}") from None
    shown = {name: masked_value(name, settings) for name in Settings.model_fields}
    if as_json:
        click.echo(json.dumps({name: {"value": shown[name], "origin": origins[name]} for name in shown}, indent=2))
        return
    for name, value in shown.items():
        line = f"{name} = {to_toml(value)}"
        is_default = origins[name] == "default"
        origin = click.style(f"# {origins[name]}", fg=None if is_default else "cyan", dim=is_default)
        click.echo(f"{line:{COLUMN}} {origin}")


def masked_value(name: str, settings: Settings) -> object:
    """Return the value of a setting as JSON, without secrets."""
    value = getattr(settings, name)
    if isinstance(value, SecretStr):
        text = value.get_secret_value()
        return mask(text) if not is_secret(name) or not text else MASK
    if name not in JSON_SETTINGS:
        return mask(list(value) if isinstance(value, tuple) else value)
    try:
        return mask(json.loads(value))
    except ValueError:
        return MASK


def mask(value: object) -> object:
    """Return a value with ``MASK`` in place of secrets: by the names of values, in URLs, and in arguments."""
    if isinstance(value, Mapping):
        return {name: mask_all(each) if is_secret(name) else mask(each) for name, each in value.items()}
    if isinstance(value, list):
        before = ["", *map(str, value)]  # in the arguments of a program, "--token" is the name of what follows
        return [MASK if is_secret(name) else mask(each) for name, each in zip(before, value, strict=False)]
    if not isinstance(value, str):
        return value
    return SECRET_PART.sub(lambda part: f"{part[0].partition('=')[0]}={MASK}", mask_passwords(value))


def is_secret(name: str) -> bool:
    return name in SECRET_TABLES or SECRET_NAME.fullmatch(name) is not None


def mask_all(value: object) -> object:
    """Return a table with its names and without its values, or ``MASK``."""
    return dict.fromkeys(value, MASK) if isinstance(value, Mapping) else MASK


def to_toml(value: object) -> str:
    """Return a JSON value as TOML on one line. TOML has no null: such an entry is left out."""
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(name)} = {to_toml(each)}" for name, each in value.items() if each is not None)
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(to_toml(each) for each in value if each is not None)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
