"""Variables of the container: the settings that differ from their defaults, and references to secrets.

Rule: ``agui.toml`` and ``AGUI_*`` variables give the same environment. Where the server listens is AgentCore's contract
and no setting of a deployment. Refusals are streams, because AgentCore replaces the body of any 4xx or 5xx.
"""

import json
from collections.abc import Mapping

from pydantic import SecretStr

from agui_container.aws.deploy.options import DeployOptions
from agui_container.settings import Settings, SettingsError, default_of
from agui_container.settings_sources import variable_of

MEMORY_STORE = "agentcore-memory:${Memory.MemoryId}"
"""The store of a deployment with ``memory_days``. CloudFormation fills in the id of the memory that it makes."""

LISTENING = ("host", "port")
JSON_LISTS = ("console_suggestions",)
"""Lists that are JSON in a variable. The others have commas between their texts."""


def make_environment(settings: Settings, origins: Mapping[str, str], options: DeployOptions) -> dict[str, str]:
    """Return the variables. ``origins`` has the place of each setting."""
    left_out = {*options.leave_in_image, *options.secrets}
    named = [name for name, origin in origins.items() if origin != "default" and name not in left_out]
    variables = {
        variable_of(name): _text_of(name, default_of(name) if name in LISTENING else getattr(settings, name))
        for name in named
    }
    variables.setdefault(variable_of("error_status"), "stream")
    variables |= {variable_of(name): arn for name, arn in options.secrets.items()}
    variables |= options.environment
    return dict(sorted(variables.items()))


def with_memory(settings: Settings, origins: dict[str, str], options: DeployOptions) -> tuple[Settings, dict[str, str]]:
    """Return the settings with the memory of the stack as their store, if the options want one."""
    if options.memory_days is None:
        return settings, origins
    if origins["store"] != "default" or "store" in (*options.secrets, *options.leave_in_image):
        raise SettingsError("[deploy] memory_days: there is a store already. Leave out one of them.")
    return settings.model_copy(update={"store": SecretStr(MEMORY_STORE)}), {**origins, "store": "memory_days"}


def _text_of(name: str, value: object) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case bool():
            return str(value).lower()
        case tuple():
            return json.dumps(value, ensure_ascii=False) if name in JSON_LISTS else ",".join(value)
    return str(value)
