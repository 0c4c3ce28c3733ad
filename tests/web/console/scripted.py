"""An agent that plays a script by the user's last message, for cases that the built-in assistant cannot produce."""

import asyncio
from collections.abc import AsyncIterator, Callable

from ag_ui import core as ag

from agui_container import ask_for_consent
from agui_container.ports import RunContext

Script = AsyncIterator[str | ag.BaseEvent]

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
<script>window.attacked = 1</script><img src=x onerror="window.attacked = 2">
<iframe src="javascript:parent.attacked=3"></iframe>

[click me](javascript:window.attacked=4) <a href="javascript:window.attacked=5">and me</a>
<svg onload="window.attacked=6"><style>*{display:none}</style></svg>
<form action="/threads"><button>send</button></form>

![spy](https://spy.example/pixel.png)

$\\href{javascript:window.attacked=7}{x}$ $\\includegraphics{https://spy.example/y.png}$

```html
<script>window.attacked = 8</script>
```

```mermaid
flowchart LR
  click Question href "javascript:window.attacked = 10"
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
        "tags": {"type": "array", "items": {"type": "string"}},
        "address": {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]},
    },
    "required": ["city", "speed", "address"],
}


FAST_DELTAS = 20_000
STATE_BYTES = 5_000_000


async def agent(input: ag.RunAgentInput, ctx: RunContext) -> Script:
    """Play the script that the last user message names."""
    if input.resume:
        answer = input.resume[0]
        sent = answer.status == "resolved"
        yield f"You answered: {answer.payload}" if sent else f"Nothing was sent: {answer.status}."
        return
    said = next((message.content for message in reversed(input.messages) if message.role == "user"), "")
    if not isinstance(said, str):
        yield "I see " + ", ".join(part.type for part in said) + "."
        return
    async for item in SCRIPTS.get(said, greet)(input, ctx):
        yield item


async def greet(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    yield "Hello."


async def markdown(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    for word in MARKDOWN.split(" "):
        yield word + " "


async def wide(_input: ag.RunAgentInput, ctx: RunContext) -> Script:
    call, subagent = ctx.new_id(), ctx.new_id()
    yield ag.ToolCallStartEvent(tool_call_id=call, tool_call_name="mcp__documents__search_everything_and_everywhere")
    yield ag.ToolCallEndEvent(tool_call_id=call)
    yield ag.SubagentStartedEvent(
        subagent_run_id=subagent, name="a librarian of many words " * 4, parent_tool_call_id=call
    )
    yield ag.SubagentFinishedEvent(subagent_run_id=subagent)
    yield ag.ToolCallResultEvent(message_id=ctx.new_id(), tool_call_id=call, content="nothing")
    row = "| wide " * 12 + "|\n"
    yield row + "|---" * 12 + "|\n" + row


async def hostile(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    yield HOSTILE


RELEASED: list[asyncio.Event] = []
"""Events of the runs that wait for ``release`` in this process."""


async def until_released() -> None:
    released = asyncio.Event()
    RELEASED.append(released)
    await released.wait()


async def slowly(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    for number in range(40):
        if number == 20:
            await until_released()
        yield f"word{number} "
        await asyncio.sleep(0)  # each word is an event of its own


async def release(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    for released in RELEASED:
        released.set()
    yield "They go on."


async def ask(input: ag.RunAgentInput, ctx: RunContext) -> Script:
    question = ag.Interrupt(id=ctx.new_id(), reason="order", message="Where to?", response_schema=QUESTION)
    outcome = ag.RunFinishedInterruptOutcome(interrupts=[question])
    yield ag.RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=outcome)


async def steps(_input: ag.RunAgentInput, ctx: RunContext) -> Script:
    progress = ctx.new_id()
    content: dict[str, object] = {"query": "tea", "done": 0, "total": 4}
    yield ag.StepStartedEvent(step_name="search")
    yield ag.ActivitySnapshotEvent(message_id=progress, activity_type="WEB_SEARCH", content=content)
    for number in range(1, 4):
        patch = [{"op": "replace", "path": "/done", "value": number}]
        yield ag.ActivityDeltaEvent(message_id=progress, activity_type="WEB_SEARCH", patch=patch)
    yield ag.StepFinishedEvent(step_name="search")
    yield ag.StepStartedEvent(step_name="write")
    yield "Found three."
    yield ag.StepFinishedEvent(step_name="write")


async def state(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    yield ag.StateSnapshotEvent(snapshot={"items": ["tea"], "city": {"name": "Berlin", "size": 3}})
    yield ag.StateDeltaEvent(
        delta=[
            {"op": "replace", "path": "/city/size", "value": 4},
            {"op": "add", "path": "/items/-", "value": "milk"},
        ]
    )


async def flood(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    for number in range(FAST_DELTAS):
        yield f"flood {number}. "


async def large(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    rows = [{"id": number, "text": "x" * 480} for number in range(STATE_BYTES // 500)]
    yield ag.StateSnapshotEvent(snapshot={"rows": rows})
    yield ag.StateDeltaEvent(delta=[{"op": "replace", "path": "/rows/5/text", "value": "changed"}])
    yield "The state is large."


async def consent(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    ask_for_consent("https://login.example/authorize")
    yield ""


async def forged_consent(_input: ag.RunAgentInput, _ctx: RunContext) -> Script:
    ask_for_consent("javascript:window.attacked=7")
    yield ""


TEXTS = (markdown, wide, hostile, slowly, release)
EVENTS = (ask, steps, state, flood, large, consent, forged_consent)

SCRIPTS: dict[str, Callable[[ag.RunAgentInput, RunContext], Script]] = {
    script.__name__: script for script in (*TEXTS, *EVENTS)
}
