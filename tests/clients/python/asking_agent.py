"""An agent that asks for a color, and one event of its own. Run with AGUI_AGENT."""

from collections.abc import AsyncIterator

from ag_ui import core as ag

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def agent(run_input: ag.RunAgentInput) -> AsyncIterator[ag.BaseEvent | str]:
    last = run_input.messages[-1]
    if run_input.resume:
        (entry,) = run_input.resume
        yield f"{entry.status}: {entry.payload}"
    elif isinstance(last, ag.UserMessage) and last.content == "custom":
        yield ag.CustomEvent(name="test.own", value={"a": [1, None]})
    else:
        interrupt = ag.Interrupt(id=f"color-{run_input.run_id}", reason="input_required", response_schema=SCHEMA)
        yield ag.RunFinishedEvent(
            thread_id=run_input.thread_id,
            run_id=run_input.run_id,
            outcome=ag.RunFinishedInterruptOutcome(interrupts=[interrupt]),
        )
