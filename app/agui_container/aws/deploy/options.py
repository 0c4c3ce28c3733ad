"""The table ``[deploy]`` of ``agui.toml``: what a deployment has besides the settings of the server.

Rule: what CloudFormation checks itself, such as the form of an id, is left to it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import ARN_PATTERN, read_deploy_table

NAME = r"^[a-zA-Z][a-zA-Z0-9_]{0,39}$"
"""AgentCore takes 48 characters. The name of the role has the region behind it, and IAM takes 64."""

Name = Annotated[str, Meta(pattern=NAME)]
Seconds = Annotated[int, Meta(ge=60, le=28_800)]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


class DeployOptions(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Facts of a deployment that are no settings. docs/deploy.md says what each one means."""

    name: Name | Literal[""] = ""
    region: str = ""
    image: str = ""
    dockerfile: str = "Dockerfile"
    builder: Literal["auto", "docker", "codebuild"] = "auto"
    role: str = ""
    policy: str = ""
    models: tuple[Annotated[str, Meta(pattern="^bedrock:.+$")], ...] = ()
    headers: tuple[str, ...] = ()
    platform_version: Literal["", "V1", "V2"] = ""
    idle_timeout: Seconds = 900
    max_lifetime: Seconds = 28_800
    memory_days: Annotated[int, Meta(ge=3, le=365)] | None = None
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    environment: dict[Variable, str] = {}
    secrets: dict[str, Annotated[str, Meta(pattern=f"^{ARN_PATTERN}$")]] = {}
    leave_in_image: tuple[str, ...] = ()
    tags: dict[str, str] = {}


def read_options(config: Path | None, overrides: Mapping[str, object]) -> DeployOptions:
    """Read the table. Values of the command line win. Raises ``SettingsError``."""
    table = read_deploy_table(config)
    values = {**table, **{name: value for name, value in overrides.items() if value}}
    try:
        options = msgspec.convert(values, DeployOptions, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"[deploy]: {error}.") from None
    _check(options)
    return options if options.name else msgspec.structs.replace(options, name=_name_of(Path.cwd()))


def _check(options: DeployOptions) -> None:
    if bool(options.subnets) is not bool(options.security_groups):
        raise SettingsError("[deploy]: subnets and security_groups belong together. Name both, or none.")
    for name in (*options.secrets, *options.leave_in_image):
        if name not in Settings.model_fields:
            raise SettingsError(f"[deploy]: {name} is not a setting of this version.")
    for name in options.environment:
        if name.upper().startswith("AGUI_"):
            raise SettingsError(f"[deploy.environment] {name}: is a setting. Write it above, without AGUI_.")


def _name_of(folder: Path) -> str:
    name = re.sub(r"[^a-zA-Z0-9]+", "_", folder.name).strip("_")[:40]
    return name if re.match(NAME, name) else f"agent_{name}"[:40].rstrip("_")
