"""Options of kontekst: the settings that it reads.

Rule: this module is imported at the start, so it does not import gRPC.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from pydantic import SecretStr

from agui_container.engine.engine import Engine
from agui_container.log_values import mask_passwords
from agui_container.protocol.parser import AGENT

ASSISTANT = "assistant"
"""Agent that has a model."""


class KontekstOptions(Struct, frozen=True):
    agents: Sequence[str]
    agent_references: Mapping[str, str]
    model: str
    model_options: str
    openai_base_url: str
    store: SecretStr
    host: str
    grpc_shutdown: bool

    @property
    def endpoint(self) -> str:
        """URL of the model's server, or an empty string. The password is masked because clients see the URL."""
        if ASSISTANT not in self.agent_references.values():
            return ""
        if self.model.startswith("openai:"):
            return mask_passwords(self.openai_base_url)
        options: object = json.loads(self.model_options) if self.model.startswith("bedrock:") else {}
        named = options.get("endpoint_url") if isinstance(options, dict) else None
        return mask_passwords(named) if isinstance(named, str) else ""

    @property
    def data_dir(self) -> str:
        """Folder of a database file; empty for any other store."""
        url = self.store.get_secret_value()
        if not url.startswith("sqlite:"):
            return ""
        return str(Path(url.partition("///")[2].partition("?")[0]).resolve().parent)

    def agent_names(self, service: Engine) -> Sequence[str]:
        identity = service.capabilities.identity
        return [*self.agent_references, *([identity.name] if identity and identity.name else [])]

    def choice(self, name: str) -> dict[str, object]:
        """Return the fields of ``forwardedProps`` that choose the agent of this name, if there is a choice."""
        return {AGENT: name} if self.agents and name in self.agent_references else {}
