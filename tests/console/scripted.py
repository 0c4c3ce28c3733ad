"""An agent that plays a script by the user's last message, for cases that the built-in assistant cannot produce."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Literal

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
    SubagentFinishedEvent,
    SubagentStartedEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from pydantic import BaseModel, Field

from agui_container import ask_for_consent
from agui_container.ports import RunContext

Script = AsyncIterator[str | BaseEvent]

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

[ref]: javascript:window.attacked=9
[by reference][ref]
"""

DIAGRAM = """\
The way of a question:

```mermaid
flowchart LR
  Question --> Known{Is it known?}
  Known -->|yes| Answer
  Known -->|no| Search --> Answer
```

That is all.
"""

WRONG_DIAGRAM = """\
```mermaid
flowchart LR
  Question --> -->
```
"""

HOSTILE_DIAGRAM = """\
```mermaid
%%{init: {"securityLevel": "loose", "themeCSS": "* { background: url(https://spy.example/theme) }"}}%%
flowchart LR
  Label["<img src='https://spy.example/label' onerror='window.attacked = 1'>label"]
  Script["<script>window.attacked = 2</script>script"]
  Frame["<iframe src='https://spy.example/frame' srcdoc='<script>top.attacked = 3</script>'></iframe>frame"]
  Label --> Script --> Frame --> Address --> Callback --> Link
  click Address href "javascript:window.attacked = 4"
  click Callback call eval("window.attacked = 5")
  click Link "https://spy.example/link" _self
```

```mermaid
stateDiagram-v2
  [*] --> Moving
  classDef bad fill:red;} @import "https://spy.example/import"; *{background:url(https://spy.example/class)
  class Moving bad
```

```mermaid
flowchart LR
  Picture@{ img: "https://spy.example/picture.png", label: "picture" }
```
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


class Extras(BaseModel):
    """A group of the form that may be left out."""

    gift: bool = False
    card: str


class Order(BaseModel):
    """A model whose JSON Schema has a reference, an optional text, a constant and an optional group."""

    kind: Literal["order"]
    note: str | None
    email: Annotated[str, Field(json_schema_extra={"format": "email"})]
    extras: Extras | None = None


FAST_DELTAS = 20_000
STATE_BYTES = 5_000_000


async def agent(input: RunAgentInput, ctx: RunContext) -> Script:
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


async def greet(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Say hello."""
    yield "Hello."


async def markdown(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """All that Markdown has."""
    for word in MARKDOWN.split(" "):
        yield word + " "


async def wide(_input: RunAgentInput, ctx: RunContext) -> Script:
    """A call and a subagent with long names, and a table with many columns."""
    call, subagent = ctx.new_id(), ctx.new_id()
    yield ToolCallStartEvent(tool_call_id=call, tool_call_name="mcp__documents__search_everything_and_everywhere")
    yield ToolCallEndEvent(tool_call_id=call)
    yield SubagentStartedEvent(
        subagent_run_id=subagent, name="a librarian of many words " * 4, parent_tool_call_id=call
    )
    yield SubagentFinishedEvent(subagent_run_id=subagent)
    yield ToolCallResultEvent(message_id=ctx.new_id(), tool_call_id=call, content="nothing")
    row = "| wide " * 12 + "|\n"
    yield row + "|---" * 12 + "|\n" + row


async def hostile(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Text that wants to run, or to be loaded."""
    yield HOSTILE


async def diagram(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """A diagram between two sentences."""
    yield DIAGRAM


async def wrong_diagram(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """A diagram with an error in its second line."""
    yield WRONG_DIAGRAM


async def hostile_diagram(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """A diagram that wants to run, and to be loaded."""
    yield HOSTILE_DIAGRAM


RELEASED: list[asyncio.Event] = []
"""Events of the runs that wait for ``release`` in this process."""


async def until_released() -> None:
    """Wait for a run of ``release`` that begins later."""
    released = asyncio.Event()
    RELEASED.append(released)
    await released.wait()


async def slow_diagram(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Half of a diagram, and the rest after a run of ``release``."""
    begin, rest = DIAGRAM.split("  Known -->|no|")
    yield begin
    await until_released()
    yield "  Known -->|no|" + rest


async def slowly(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Twenty words, and twenty more after a run of ``release``."""
    for number in range(40):
        if number == 20:
            await until_released()
        yield f"word{number} "
        await asyncio.sleep(0)  # each word is an event of its own


async def release(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Let the runs that wait go on."""
    for released in RELEASED:
        released.set()
    yield "They go on."


async def ask(input: RunAgentInput, ctx: RunContext) -> Script:
    """A question with a schema."""
    question = Interrupt(id=ctx.new_id(), reason="order", message="Where to?", response_schema=QUESTION)
    outcome = RunFinishedInterruptOutcome(interrupts=[question])
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=outcome)


async def ask_by_model(input: RunAgentInput, ctx: RunContext) -> Script:
    """A question with the schema of a Pydantic model."""
    question = Interrupt(id=ctx.new_id(), reason="order", message="Which?", response_schema=Order.model_json_schema())
    outcome = RunFinishedInterruptOutcome(interrupts=[question])
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=outcome)


async def steps(_input: RunAgentInput, ctx: RunContext) -> Script:
    """Two steps and an activity."""
    progress = ctx.new_id()
    content: dict[str, object] = {"query": "tea", "done": 0, "total": 4}
    yield StepStartedEvent(step_name="search")
    yield ActivitySnapshotEvent(message_id=progress, activity_type="WEB_SEARCH", content=content)
    for number in range(1, 4):
        patch = [{"op": "replace", "path": "/done", "value": number}]
        yield ActivityDeltaEvent(message_id=progress, activity_type="WEB_SEARCH", patch=patch)
    yield StepFinishedEvent(step_name="search")
    yield StepStartedEvent(step_name="write")
    yield "Found three."
    yield StepFinishedEvent(step_name="write")


async def state(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """A state, and two changes of it."""
    yield StateSnapshotEvent(snapshot={"items": ["tea"], "city": {"name": "Berlin", "size": 3}})
    yield StateDeltaEvent(
        delta=[
            {"op": "replace", "path": "/city/size", "value": 4},
            {"op": "add", "path": "/items/-", "value": "milk"},
        ]
    )


async def goals(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """One goal that is achieved, and one that is not."""
    declared = [{"type": name, "tool": f"achieve_{name}", "status": "pending"} for name in ("greeting", "price")]
    yield CustomEvent(name="goals.declared", value={"goals": declared})
    achieved = {"type": "greeting", "toolCallId": "c", "data": {"text": "hello"}}
    yield CustomEvent(name="goal.achieved", value=achieved)
    yield CustomEvent(name="goal.failed", value={"type": "price", "reason": "given_up"})


async def notices(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Send notices while the run continues."""
    dropped = {"part": "image", "reason": "only inline data is used, nothing is fetched", "messageId": "m"}
    yield CustomEvent(name="media.dropped", value=dropped)
    yield "I try. "
    yield CustomEvent(name="tools.unavailable", value={"source": "weather", "message": "The server does not answer."})
    shortened = {"strategy": "trim", "tokensBefore": 9_000, "tokensAfter": 4_000}
    yield CustomEvent(name="context.compacted", value=shortened)
    yield "I go on."
    yield CustomEvent(name="model.stopped", value={"reason": "length"})


async def flood(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Deltas as fast as they can be made."""
    for number in range(FAST_DELTAS):
        yield f"flood {number}. "


async def large(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """A state of some megabytes."""
    rows = [{"id": number, "text": "x" * 480} for number in range(STATE_BYTES // 500)]
    yield StateSnapshotEvent(snapshot={"rows": rows})
    yield StateDeltaEvent(delta=[{"op": "replace", "path": "/rows/5/text", "value": "changed"}])
    yield "The state is large."


async def consent(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Ask the user to follow a link."""
    ask_for_consent("https://login.example/authorize")
    yield ""


async def forged_consent(_input: RunAgentInput, _ctx: RunContext) -> Script:
    """Ask the user to follow a link that runs a script."""
    ask_for_consent("javascript:window.attacked=7")
    yield ""


TEXTS = (markdown, wide, hostile, diagram, wrong_diagram, hostile_diagram, slow_diagram, slowly, release)
EVENTS = (ask, ask_by_model, steps, state, goals, notices, flood, large, consent, forged_consent)

SCRIPTS: dict[str, Callable[[RunAgentInput, RunContext], Script]] = {
    script.__name__: script for script in (*TEXTS, *EVENTS)
}
