"""ag-ui-strands, served by its own ``create_strands_app``, around an agent whose model is a loop."""

from collections.abc import AsyncIterator, Mapping

from ag_ui_strands import StrandsAgent, create_strands_app
from strands import Agent
from strands.models import Model
from strands.types.content import Messages
from strands.types.streaming import StreamEvent

from bench.agents import TEXT


class FakeModel(Model):
    """``stream N`` gives N text deltas."""

    async def stream(self, messages: Messages, *_: object, **__: object) -> AsyncIterator[StreamEvent]:
        """Yield the events of one answer, as a provider of Strands does."""
        times = int(messages[-1]["content"][0]["text"].split()[1])
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        for _number in range(times):
            yield {"contentBlockDelta": {"delta": {"text": TEXT}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    async def structured_output(self, *_: object, **__: object) -> AsyncIterator[object]:
        """Raise: the benchmark needs no structured output."""
        raise NotImplementedError
        yield

    def update_config(self, **_: object) -> None:
        """Do nothing: the model has no configuration."""

    def get_config(self) -> Mapping[str, object]:
        """Return an empty configuration."""
        return {}


served = StrandsAgent(Agent(model=FakeModel(), callback_handler=None), name="bench")
app = create_strands_app(served, "/invocations", cors_enabled=False)
