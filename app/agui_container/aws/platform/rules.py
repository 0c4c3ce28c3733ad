"""Rules of the AG-UI contract of AgentCore, what was seen of each, and the report about it.

Rule: a rule is broken once it was seen broken, and held only if it was seen.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class RuleState(StrEnum):
    HELD = "held"
    BROKEN = "broken"
    NOT_SEEN = "not seen"


RULES: Mapping[str, str] = {
    # devguide runtime-agui-protocol-contract, where no other source is named
    "listen.host": "The container listens on all addresses (0.0.0.0).",
    "listen.port": "The container listens on the port that it is given, 8080 by default.",
    "start.in-time": "/ping is healthy within 120 s of the start.",  # runtime-v2-optimize
    "ping.answer": "GET /ping answers 200 with application/json.",
    "ping.status": "The status of a ping is Healthy or HealthyBusy.",
    "ping.time": "time_of_last_update, if it is there, is a past time in Unix seconds.",
    "ping.still": "time_of_last_update changes only when the status changes.",
    # devguide runtime-long-run, and bedrock-agentcore-sdk-python#471 for the time
    "ping.busy": "The status is HealthyBusy while a run is open; otherwise the run ends with the idle timeout.",
    "ping.busy-time": "A HealthyBusy ping has time_of_last_update; without it sessions were seen to end while busy.",
    "ping.during-run": "Pings are answered while a run is open.",
    "invocations.answer": "POST /invocations answers a RunAgentInput with 200.",
    "invocations.stream": "The answer is text/event-stream, each frame `data:` with one event.",
    # InvokeAgentRuntime of botocore
    "invocations.any-type": "A body is read whatever its Content-Type is, which callers leave out.",
    # AG-UI specification
    "run.start": "A run begins with RUN_STARTED, with the ids of its input.",
    "run.order": "The order of the events is legal for the official client.",
    "run.end": "A stream ends with RUN_FINISHED or RUN_ERROR, and nothing follows.",
    "run.streamed": "RUN_STARTED arrives before the end of a run, not with it.",
    "error.visible": "A failure is RUN_ERROR in a stream with 200. A 4xx or 5xx reaches callers as AGENT_ERROR.",
    # devguide runtime-sessions, bedrock-agentcore-sdk-python#629, runtime-v2-optimize and runtime-lifecycle-settings
    "session.concurrent": "Two runs of one session are served at the same time.",
    "session.abort": "The session serves the next run after a caller has gone.",
    "session.frozen": "The container continues after it was frozen between two requests.",
    "session.ids": "Two sessions never use the same generated id.",
    "session.stop": "The container ends within 15 s of SIGTERM.",
    # the contract, and devguide bedrock-agentcore-limits for frames
    "socket.upgrade": "/ws accepts a WebSocket.",
    "socket.events": "Each message of the socket is one event as a JSON object.",
    "socket.frame-size": "No frame has more than 64 KB.",
    "socket.frame-rate": "No connection sends more than 250 frames in a second.",
}
"""Sentences of all rules, in the order of reports."""


class RuleFinding(NamedTuple):
    state: RuleState
    detail: str = ""


@dataclass(slots=True)
class RuleFindings:
    """Findings about one container, over all of its sessions.

    Attributes:
        held: rules that were seen to hold.
        broken: rules that were seen broken, with what was seen first.
        unseen: reasons why rules could not be seen.
        notes: for the container's author. They break no rule.
    """

    held: set[str] = field(default_factory=set)
    broken: dict[str, str] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, rule: str) -> RuleFinding:
        if rule in self.broken:
            return RuleFinding(RuleState.BROKEN, self.broken[rule])
        is_held = rule in self.held
        return RuleFinding(RuleState.HELD) if is_held else RuleFinding(RuleState.NOT_SEEN, self.unseen.get(rule, ""))

    def hold(self, rule: str) -> None:
        self.held.add(rule)

    def break_rule(self, rule: str, detail: str) -> None:
        self.broken.setdefault(rule, detail)

    def explain(self, rule: str, detail: str) -> None:
        self.unseen[rule] = detail

    def judge(self, rule: str, *, holds: bool, detail: str) -> None:
        """Record that a rule was held or broken. The detail is that of a breach."""
        if holds:
            self.hold(rule)
        else:
            self.break_rule(rule, detail)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def report(findings: RuleFindings, target: str) -> str:
    """Return a report: a line for each rule, and what was seen where a rule was not held."""
    lines = [target, ""]
    for rule, sentence in RULES.items():
        state, detail = findings[rule]
        lines.append(f"{state:<9} {rule:<20} {sentence}")
        if detail:
            lines.append(f"{'':<31}{detail}")
    lines += [f"{'note':<31}{note}" for note in findings.notes]
    counts = Counter(findings[rule].state for rule in RULES)
    return "\n".join([*lines, "", ", ".join(f"{counts[state]} {state}" for state in RuleState)])
