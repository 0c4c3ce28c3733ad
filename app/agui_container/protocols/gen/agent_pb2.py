"""The messages of ``proto/roz/v1/agent.proto``."""

from agui_container.protocols.gen.descriptors import load

globals().update(load("roz/v1/agent.proto"))
