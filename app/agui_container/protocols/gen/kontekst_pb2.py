"""The messages of ``proto/kontekst/kontekst.proto``."""

from agui_container.protocols.gen.descriptors import load

globals().update(load("kontekst/kontekst.proto"))
