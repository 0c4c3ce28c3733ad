"""The nested parts of a walk's events: messages with owners and calls, the echoed input, outcomes, and the id pools."""

from collections.abc import Callable
from random import Random

from ag_ui import core as ag

SHARED = "x"
"""An id that every kind uses."""
MESSAGES = ("m1", "m2", "m3", SHARED)
CALLS = ("c1", "c2", SHARED)
ACTIVITIES = ("m1", SHARED)
REASONINGS = ("g1", "m1", SHARED)
SUBAGENTS = ("s1", "s2", "s3", "")

Outcome = ag.RunFinishedSuccessOutcome | ag.RunFinishedInterruptOutcome | ag.RunFinishedCancelledOutcome


def _tag(rng: Random) -> str | None:
    return rng.choice((None, None, *SUBAGENTS))


def _assistant(rng: Random) -> ag.AssistantMessage:
    ids = rng.sample(CALLS, rng.randrange(len(CALLS)))
    calls = [ag.ToolCall(id=key, function=ag.FunctionCall(name="tool", arguments="{}")) for key in ids]
    key = rng.choice(MESSAGES)
    return ag.AssistantMessage(id=key, content="hi", tool_calls=calls or None, subagent_run_id=_tag(rng))


MAKERS: tuple[Callable[[Random], ag.Message], ...] = (
    _assistant,
    _assistant,
    lambda rng: ag.UserMessage(id=rng.choice(MESSAGES), content="hi", subagent_run_id=_tag(rng)),
    lambda rng: ag.SystemMessage(id=rng.choice(MESSAGES), content="hi", subagent_run_id=_tag(rng)),
    lambda rng: ag.DeveloperMessage(id=rng.choice(MESSAGES), content="hi", subagent_run_id=_tag(rng)),
    lambda rng: ag.ToolMessage(
        id=rng.choice(MESSAGES), content="ok", tool_call_id=rng.choice(CALLS), subagent_run_id=_tag(rng)
    ),
    lambda rng: ag.ReasoningMessage(id=rng.choice(REASONINGS), content="hm", subagent_run_id=_tag(rng)),
    lambda rng: ag.ActivityMessage(
        id=rng.choice(ACTIVITIES), activity_type="search", content={}, subagent_run_id=_tag(rng)
    ),
)


def messages(rng: Random) -> list[ag.Message]:
    """A conversation of up to three messages, repeated ids included."""
    return [rng.choice(MAKERS)(rng) for _ in range(rng.randrange(4))]


def run_input(rng: Random) -> ag.RunAgentInput | None:
    if rng.random() < 0.6:
        return None
    return ag.RunAgentInput(thread_id="t", run_id="r", messages=messages(rng), tools=[], context=[], state={})


def outcome(rng: Random) -> Outcome | None:
    return rng.choice(
        (
            None,
            ag.RunFinishedSuccessOutcome(),
            ag.RunFinishedCancelledOutcome(),
            ag.RunFinishedInterruptOutcome(interrupts=[ag.Interrupt(id="i", reason="ask", subagent_run_id=_tag(rng))]),
        )
    )
