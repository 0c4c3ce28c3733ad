"""Sources of the settings: ``AGUI_*`` variables, then the file ``agui.toml``, then the defaults.

Rules:

- Nothing else reads the environment or the file. The table ``[deploy]`` of the file is for ``agui deploy``.
- A bad value or an unknown name stops the start with one clear line: a typo in a policy must not fall back to a default
  in silence.
- A value that is the ARN of a secret of AWS Secrets Manager stands for the secret. ``load_settings`` reads it, and
  printing settings does not. The form is that of ECS: ``arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME``, with
  ``:KEY`` behind it for one value of a secret that is JSON. boto3 is imported only if there is such a value.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

import msgspec
from msgspec import Struct
from pydantic import SecretStr, ValidationError

from agui_container.settings import Settings, SettingsError

PREFIX = "AGUI_"
DEPLOY_TABLE = "deploy"
CONFIG_FILE = Path("agui.toml")
"""The file that is read from the working folder, if it is there and no other one is named."""

ARN_PATTERN = r"(?P<arn>arn:aws[\w-]*:secretsmanager:(?P<region>[\w-]+):\d{12}:secret:[^:\s]+)(?::(?P<key>[^:\s]+))?"
ARN_REFERENCE = re.compile(ARN_PATTERN)


class SettingsSource(Struct, frozen=True):
    """Values from one place: a file, or the environment if ``file`` is None."""

    values: Mapping[str, object]
    file: Path | None = None

    def name_of(self, setting: str) -> str:
        """Return a setting as it is written there, for messages."""
        return variable_of(setting) if self.file is None else f"{self.file}: {setting}"

    def origin_of(self, setting: str) -> str:
        """Return the variable or the file that has a setting."""
        return variable_of(setting) if self.file is None else str(self.file)


def load_settings(config: Path | None = None, **overrides: str | int | None) -> Settings:
    """Read the settings.

    Args:
        config: the file to read. None reads ``agui.toml`` of the working folder, if there is one.
        overrides: values by setting name that win over the environment; None is ignored.

    Raises:
        SettingsError: a name is unknown, a value is bad, or the file cannot be read. The message names the place.
    """
    sources = (
        *read_sources(config),
        SettingsSource({name: value for name, value in overrides.items() if value is not None}),
    )
    return validate_sources([with_secrets(source) for source in sources])


def load_with_origins(config: Path | None = None) -> tuple[Settings, dict[str, str]]:
    """Return the settings, and the origin of each one: a variable, a file or ``default``."""
    sources = read_sources(config)
    origins = dict.fromkeys(Settings.model_fields, "default")
    for source in sources:
        origins |= {name: source.origin_of(name) for name in source.values}
    return validate_sources(sources), origins


def read_sources(config: Path | None = None) -> tuple[SettingsSource, ...]:
    """Return the places that have values, the weakest first."""
    file = find_file(config)
    return (*((_read_file(file),) if file else ()), _read_environment())


def find_file(config: Path | None) -> Path | None:
    return config or (CONFIG_FILE if CONFIG_FILE.is_file() else None)


def read_deploy_table(config: Path | None = None) -> Mapping[str, object]:
    """Return the table ``[deploy]`` of the file, empty if there is none. Raises ``SettingsError``."""
    file = find_file(config)
    table = _read_toml(file).get(DEPLOY_TABLE, {}) if file else {}
    if not isinstance(table, dict):
        raise SettingsError(f"{file}: {DEPLOY_TABLE} must be a table.")
    return table


def with_secrets(source: SettingsSource) -> SettingsSource:
    values = dict(source.values)
    for name, value in values.items():
        try:
            values[name] = read_secret(value) if isinstance(value, str) else value
        except SecretUnavailable as error:
            raise SettingsError(f"{source.name_of(name)}: {error}.") from None
    return msgspec.structs.replace(source, values=values)


def validate_sources(sources: Iterable[SettingsSource]) -> Settings:
    """Make settings from places, the weakest first. Raises ``SettingsError`` for the first bad value."""
    values: dict[str, object] = {}
    owners: dict[str, SettingsSource] = {}
    for source in sources:
        values |= source.values
        owners |= dict.fromkeys(source.values, source)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        setting = str(first["loc"][0])
        shown = "" if Settings.model_fields[setting].annotation is SecretStr else f"={first['input']!r}"
        reason = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"{owners[setting].name_of(setting)}{shown}: {reason}.") from None


def _read_file(path: Path) -> SettingsSource:
    values = {name: value for name, value in _read_toml(path).items() if name != DEPLOY_TABLE}
    for name in values:
        if name not in Settings.model_fields:
            raise _unknown(f"{path}: {name}", name, str)
    return SettingsSource(values, path)


def _read_toml(path: Path) -> dict[str, object]:
    import tomllib  # noqa: PLC0415 - in a container there is seldom a file

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}.") from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}.") from None


def _read_environment() -> SettingsSource:
    """Return variables by setting name, in any case. Docker Compose and CI systems pass empty ones for unset ones."""
    names = {variable_of(name): name for name in Settings.model_fields}
    values: dict[str, object] = {}
    for variable, value in sorted(os.environ.items()):
        if variable.upper().startswith(PREFIX):
            if variable.upper() not in names:
                raise _unknown(variable, variable, variable_of)
            if value:
                values[names[variable.upper()]] = value
    return SettingsSource(values)


def variable_of(setting: str) -> str:
    return f"{PREFIX}{setting.upper()}"


def _unknown(shown: str, name: str, write: Callable[[str], str]) -> SettingsError:
    """Return the error for an unknown name. It shows the setting that was probably meant, or all settings."""
    similar = get_close_matches(name.lower().removeprefix(PREFIX.lower()), Settings.model_fields, n=1)
    known = f"known are {', '.join(sorted(map(write, Settings.model_fields)))}."
    advice = f"did you mean {write(similar[0])}?" if similar else known
    return SettingsError(f"{shown} is not a setting of this version; {advice}")


# --- secrets ----------------------------------------------------------------------------------------------------------


class SecretUnavailable(Exception):
    """A secret cannot be read. The message says why, and never has the secret."""


def read_secret(value: str) -> str:
    """Return the secret that a value refers to, and any other value as it is. Raises ``SecretUnavailable``."""
    found = ARN_REFERENCE.fullmatch(value)
    if found is None:
        return value
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - a slow import
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        client = Session().client("secretsmanager", region_name=found["region"])
        secret: object = client.get_secret_value(SecretId=found["arn"])["SecretString"]
    except ClientError as error:
        raise SecretUnavailable(f"the secret cannot be read: {error.response['Error']['Code']}") from None
    except (BotoCoreError, KeyError) as error:
        raise SecretUnavailable(f"the secret cannot be read: {error}") from None
    return str(secret) if found["key"] is None else _part_of(str(secret), found["key"])


def _part_of(secret: str, key: str) -> str:
    """Return one value of a secret that is JSON. Raises ``SecretUnavailable``."""
    try:
        return str(json.loads(secret)[key])
    except (ValueError, KeyError, TypeError):
        raise SecretUnavailable(f"the secret is no JSON object with the key {key}") from None
