"""An agent that plays a script by the user's last message: what the built-in assistant does not do by itself."""

import asyncio
from collections.abc import AsyncIterator

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
)

from app.ports import RunContext

MARKDOWN = """\
Here is **bold** text, a [link](https://example.com) and `code`.

| City | Degrees |
|---|---:|
| Berlin | 21 |
| Lisbon | 27 |

```python
def double(number: int) -> int:
    return 2 * number  # twice
```

Euler says $e^{i\\pi} + 1 = 0$, and

$$\\int_0^1 x^2 \\, dx = \\frac{1}{3}$$

1. one
2. two
"""

HOSTILE = """\
<script>window.attacked = 1</script><img src=x onerror="window.attacked = 2"><iframe src="javascript:parent.attacked=3"></iframe>

[click me](javascript:window.attacked=4) <a href="javascript:window.attacked=5">and me</a>
<svg onload="window.attacked=6"><style>*{display:none}</style></svg>
<form action="/threads"><button>send</button></form>

![spy](https://spy.example/pixel.png)

$\\href{javascript:window.attacked=7}{x}$ $\\includegraphics{https://spy.example/y.png}$

```html
<script>window.attacked = 8</script>
```

[ref]: javascript:window.attacked=9
[by reference][ref]
"""

QUESTION = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "title": "City", "description": "Where to send it"},
        "count": {"type": "integer", "minimum": 1, "default": 2},
        "speed": {"type": "string", "enum": ["slow", "fast"]},
        "gift": {"type": "boolean"},
        "address": {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]},
    },
    "required": ["city", "speed", "address"],
}

FAST_DELTAS = 20_000
STATE_BYTES = 5_000_000


async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[str | BaseEvent]:
    """Play the script that the last user message names."""
    if input.resume:
        yield f"You answered: {input.resume[0].payload}"
        return
    said = next((message.content for message in reversed(input.messages) if message.role == "user"), "")
    if not isinstance(said, str):
        yield "I see " + ", ".join(part.type for part in said) + "."
        return
    match said.split()[0]:
        case "markdown":
            for word in MARKDOWN.split(" "):
                yield word + " "
        case "hostile":
            yield HOSTILE
        case "slowly":
            for number in range(40):
                yield f"word{number} "
                await asyncio.sleep(0.05)
        case "ask":
            yield RunFinishedEvent(
                thread_id=input.thread_id,
                run_id=input.run_id,
                outcome=RunFinishedInterruptOutcome(
                    interrupts=[
                        Interrupt(id=ctx.new_id(), reason="order", message="Where to?", response_schema=QUESTION)
                    ]
                ),
            )
        case "steps":
            async for event in steps(ctx):
                yield event
        case "state":
            yield StateSnapshotEvent(snapshot={"items": ["tea"], "city": {"name": "Berlin", "size": 3}})
            await asyncio.sleep(0.05)
            yield StateDeltaEvent(
                delta=[
                    {"op": "replace", "path": "/city/size", "value": 4},
                    {"op": "add", "path": "/items/-", "value": "milk"},
                ]
            )
        case "goals":
            yield CustomEvent(
                name="goals.declared",
                value={
                    "goals": [
                        {"type": "greeting", "tool": "achieve_greeting", "status": "pending"},
                        {"type": "price", "tool": "achieve_price", "status": "pending"},
                    ]
                },
            )
            yield CustomEvent(
                name="goal.achieved", value={"type": "greeting", "toolCallId": "c", "data": {"text": "hello"}}
            )
            yield CustomEvent(name="goal.failed", value={"type": "price", "reason": "given_up"})
        case "flood":
            for number in range(FAST_DELTAS):
                yield f"flood {number}. "
                if number % 500 == 0:
                    await asyncio.sleep(0)
        case "large":
            yield StateSnapshotEvent(snapshot={"rows": [{"id": n, "text": "x" * 480} for n in range(STATE_BYTES // 500)]})
            yield StateDeltaEvent(delta=[{"op": "replace", "path": "/rows/5/text", "value": "changed"}])
            yield "The state is large."
        case _:
            yield f"You said: {said}"


async def steps(ctx: RunContext) -> AsyncIterator[str | BaseEvent]:
    """Two steps and an activity."""
    progress = ctx.new_id()
    yield StepStartedEvent(step_name="search")
    yield ActivitySnapshotEvent(
        message_id=progress, activity_type="WEB_SEARCH", content={"query": "tea", "done": 0, "total": 4}
    )
    for number in range(1, 4):
        yield ActivityDeltaEvent(
            message_id=progress,
            activity_type="WEB_SEARCH",
            patch=[{"op": "replace", "path": "/done", "value": number}],
        )
    yield StepFinishedEvent(step_name="search")
    yield StepStartedEvent(step_name="write")
    yield "Found three."
    yield StepFinishedEvent(step_name="write")
