"""Rules of the AG-UI contract of AgentCore, and what was seen of each.

Rule: a rule is broken once it was seen broken, and held only if it was seen.

Sources: devguide ``runtime-agui-protocol-contract``, and where that is silent the one that a rule names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

CONTRACT = "devguide runtime-agui-protocol-contract"
SPECIFICATION = "AG-UI specification"


class RuleState(StrEnum):
    """State of a rule in one run of the platform."""

    HELD = "held"
    BROKEN = "broken"
    NOT_SEEN = "not seen"


class ContractRule(NamedTuple):
    """One rule: a sentence, and its source."""

    sentence: str
    source: str


RULES: Mapping[str, ContractRule] = {
    "listen.host": ContractRule("The container listens on all addresses (0.0.0.0).", CONTRACT),
    "listen.port": ContractRule("The container listens on the port that it is given, 8080 by default.", CONTRACT),
    "image.platform": ContractRule("The image is for linux/arm64.", CONTRACT),
    "start.in-time": ContractRule("/ping is healthy within 120 s of the start.", "devguide runtime-v2-optimize"),
    "ping.answer": ContractRule("GET /ping answers 200 with application/json.", CONTRACT),
    "ping.status": ContractRule("The status of a ping is Healthy or HealthyBusy.", CONTRACT),
    "ping.time": ContractRule("time_of_last_update, if it is there, is a past time in Unix seconds.", CONTRACT),
    "ping.still": ContractRule("time_of_last_update changes only when the status changes.", CONTRACT),
    "ping.busy": ContractRule(
        "The status is HealthyBusy while a run is open; otherwise the run ends with the idle timeout.",
        "devguide runtime-long-run",
    ),
    "ping.busy-time": ContractRule(
        "A HealthyBusy ping has time_of_last_update; without it sessions were seen to end while busy.",
        "bedrock-agentcore-sdk-python#471",
    ),
    "ping.during-run": ContractRule("Pings are answered while a run is open.", "devguide runtime-long-run"),
    "invocations.answer": ContractRule("POST /invocations answers a RunAgentInput with 200.", CONTRACT),
    "invocations.stream": ContractRule("The answer is text/event-stream, each frame `data:` with one event.", CONTRACT),
    "invocations.any-type": ContractRule(
        "A body is read whatever its Content-Type is, which callers leave out.", "InvokeAgentRuntime of botocore"
    ),
    "run.start": ContractRule("A run begins with RUN_STARTED, with the ids of its input.", SPECIFICATION),
    "run.order": ContractRule("The order of the events is legal for the official client.", SPECIFICATION),
    "run.end": ContractRule("A stream ends with RUN_FINISHED or RUN_ERROR, and nothing follows.", SPECIFICATION),
    "error.visible": ContractRule(
        "A failure is RUN_ERROR in a stream with status 200. Callers see a 4xx or 5xx only as AGENT_ERROR.", CONTRACT
    ),
    "session.concurrent": ContractRule(
        "Two runs of one session are served at the same time.", "devguide runtime-sessions"
    ),
    "session.abort": ContractRule(
        "The session serves the next run after a caller has gone.", "devguide runtime-sessions"
    ),
    "session.frozen": ContractRule(
        "The container continues after it was frozen between two requests.", "bedrock-agentcore-sdk-python#629"
    ),
    "session.ids": ContractRule("Two sessions never use the same generated id.", "devguide runtime-v2-optimize"),
    "session.stop": ContractRule("The container ends within 15 s of SIGTERM.", "devguide runtime-lifecycle-settings"),
    "socket.upgrade": ContractRule("/ws accepts a WebSocket.", CONTRACT),
    "socket.events": ContractRule("Each message of the socket is one event as a JSON object.", SPECIFICATION),
    "socket.frame-size": ContractRule("No frame has more than 64 KB.", "devguide bedrock-agentcore-limits"),
    "socket.frame-rate": ContractRule(
        "No connection sends more than 250 frames in a second.", "devguide bedrock-agentcore-limits"
    ),
}
"""All rules, in the order of reports."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """State of one rule, and what was seen."""

    state: RuleState
    detail: str = ""


class RuleFindings:
    """Findings about one container, over all of its sessions."""

    def __init__(self) -> None:
        self._findings = dict.fromkeys(RULES, RuleFinding(RuleState.NOT_SEEN))

    def __getitem__(self, rule: str) -> RuleFinding:
        return self._findings[rule]

    def hold(self, rule: str, detail: str = "") -> None:
        """Record that a rule was seen to hold. A rule that was broken stays broken."""
        if self._findings[rule].state is not RuleState.BROKEN:
            self._findings[rule] = RuleFinding(RuleState.HELD, detail)

    def break_rule(self, rule: str, detail: str) -> bool:
        """Record that a rule was broken. The first detail is kept. Returns True if this is the first time."""
        if self._findings[rule].state is RuleState.BROKEN:
            return False
        self._findings[rule] = RuleFinding(RuleState.BROKEN, detail)
        return True

    def explain(self, rule: str, detail: str) -> None:
        """Record why a rule was not seen."""
        if self._findings[rule].state is RuleState.NOT_SEEN:
            self._findings[rule] = RuleFinding(RuleState.NOT_SEEN, detail)

    def judge(self, rule: str, *, holds: bool, detail: str) -> None:
        """Record that a rule was held or broken."""
        if holds:
            self.hold(rule)
        else:
            self.break_rule(rule, detail)

    def broken(self) -> Mapping[str, RuleFinding]:
        """Return the rules that were broken."""
        return {rule: found for rule, found in self._findings.items() if found.state is RuleState.BROKEN}

    def all(self) -> Mapping[str, RuleFinding]:
        """Return the findings of all rules."""
        return dict(self._findings)
