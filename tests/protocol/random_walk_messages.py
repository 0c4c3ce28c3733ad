"""The nested parts of a walk's events: messages with owners and calls, the echoed input, outcomes, and the id pools."""

from collections.abc import Callable
from random import Random

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    FunctionCall,
    Interrupt,
    Message,
    ReasoningMessage,
    RunAgentInput,
    RunFinishedCancelledOutcome,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

SHARED = "x"
"""An id that every kind uses."""
MESSAGES = ("m1", "m2", "m3", SHARED)
CALLS = ("c1", "c2", SHARED)
ACTIVITIES = ("m1", SHARED)
REASONINGS = ("g1", "m1", SHARED)
SUBAGENTS = ("s1", "s2", "s3", "")

Outcome = RunFinishedSuccessOutcome | RunFinishedInterruptOutcome | RunFinishedCancelledOutcome


def _tag(rng: Random) -> str | None:
    return rng.choice((None, None, *SUBAGENTS))


def _assistant(rng: Random) -> AssistantMessage:
    ids = rng.sample(CALLS, rng.randrange(len(CALLS)))
    calls = [ToolCall(id=key, function=FunctionCall(name="tool", arguments="{}")) for key in ids]
    key = rng.choice(MESSAGES)
    return AssistantMessage(id=key, content="hi", tool_calls=calls or None, subagent_run_id=_tag(rng))


MAKERS: tuple[Callable[[Random], Message], ...] = (
    _assistant,
    _assistant,
    lambda rng: UserMessage(id=rng.choice(MESSAGES), content="hi", subagent_run_id=_tag(rng)),
    lambda rng: SystemMessage(id=rng.choice(MESSAGES), content="hi", subagent_run_id=_tag(rng)),
    lambda rng: DeveloperMessage(id=rng.choice(MESSAGES), content="hi", subagent_run_id=_tag(rng)),
    lambda rng: ToolMessage(
        id=rng.choice(MESSAGES), content="ok", tool_call_id=rng.choice(CALLS), subagent_run_id=_tag(rng)
    ),
    lambda rng: ReasoningMessage(id=rng.choice(REASONINGS), content="hm", subagent_run_id=_tag(rng)),
    lambda rng: ActivityMessage(
        id=rng.choice(ACTIVITIES), activity_type="search", content={}, subagent_run_id=_tag(rng)
    ),
)


def messages(rng: Random) -> list[Message]:
    """A conversation of up to three messages, repeated ids included."""
    return [rng.choice(MAKERS)(rng) for _ in range(rng.randrange(4))]


def run_input(rng: Random) -> RunAgentInput | None:
    """The input that RUN_STARTED echoes, or none."""
    if rng.random() < 0.6:
        return None
    return RunAgentInput(thread_id="t", run_id="r", messages=messages(rng), tools=[], context=[], state={})


def outcome(rng: Random) -> Outcome | None:
    """End of a run."""
    return rng.choice(
        (
            None,
            RunFinishedSuccessOutcome(),
            RunFinishedCancelledOutcome(),
            RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="ask", subagent_run_id=_tag(rng))]),
        )
    )
