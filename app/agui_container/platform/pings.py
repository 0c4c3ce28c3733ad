"""Answers of a container to ``GET /ping``: what the platform reads in them, and the rules that they keep.

Rule: any answer with status 200 is healthy. A status that AgentCore does not know is not busy.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import httpx

from agui_container.platform.rules import RuleFindings
from agui_container.platform.streams import AnswerInspector, EventInspector

HEALTHY, BUSY = "Healthy", "HealthyBusy"
MOVES = 3
"""Changes of ``time_of_last_update`` without a change of status that count as moving by itself."""

STILL_SECONDS = 2.5
"""Real seconds for which an equal time counts as standing still: it has whole seconds."""

SKEW_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class PingAnswer:
    """One answer, or the reason why there is none.

    Attributes:
        failure: the reason, None if the answer has status 200.
        content_type: that of the answer.
        status: ``status`` of the answer.
        changed_at: ``time_of_last_update`` of the answer, as it came.
    """

    failure: str | None = None
    content_type: str = ""
    status: object = None
    changed_at: object = None

    @property
    def is_busy(self) -> bool:
        """True if the container says that it works."""
        return self.failure is None and self.status == BUSY

    @property
    def holds_session(self) -> bool:
        """True if the answer keeps the session, whatever its idle time is."""
        return self.is_busy and self.changed_at is not None

    def describe(self) -> Mapping[str, object]:
        """Return what ``/_platform`` shows."""
        if self.failure is not None:
            return {"failure": self.failure}
        return {"status": self.status, "time_of_last_update": self.changed_at}


async def send_ping(http: httpx.AsyncClient, url: str, seconds: float) -> PingAnswer:
    """Ask for ``/ping`` and read the answer."""
    try:
        answer = await http.get(f"{url}/ping", timeout=seconds)
    except httpx.TimeoutException:
        return PingAnswer(f"no answer within {seconds:g} s")
    except httpx.HTTPError as error:
        return PingAnswer(f"{type(error).__name__}: {error}")
    if answer.status_code != httpx.codes.OK:
        return PingAnswer(f"answered {answer.status_code}")
    try:
        document: object = json.loads(answer.content)
    except ValueError:
        document = None
    fields = document if isinstance(document, dict) else {}
    content_type = answer.headers.get("content-type", "")
    return PingAnswer(None, content_type, fields.get("status"), fields.get("time_of_last_update"))


class PingJudge:
    """Judge of the pings of one session.

    Args:
        findings: takes the results.
    """

    def __init__(self, findings: RuleFindings) -> None:
        self._findings = findings
        self._last: PingAnswer | None = None
        self._moves = 0
        self._still_since = time.monotonic()

    def forget_moves(self) -> None:
        """Begin to count anew: a request may have changed the status for a moment between two pings."""
        self._moves = 0

    def feed(self, ping: PingAnswer, *, run_is_open: bool) -> None:
        """Judge one answer. ``run_is_open`` says that a run was open before the ping and behind it."""
        findings = self._findings
        if run_is_open:
            findings.judge("ping.during-run", holds=ping.failure is None, detail=str(ping.failure))
        if ping.failure is not None:
            return
        kind = ping.content_type.partition(";")[0]
        findings.judge(
            "ping.answer", holds=kind == "application/json", detail=f"the Content-Type is {kind or 'missing'}"
        )
        findings.judge("ping.status", holds=ping.status in (HEALTHY, BUSY), detail=f"the status is {ping.status!r}")
        if ping.is_busy:
            findings.judge("ping.busy-time", holds=ping.changed_at is not None, detail="HealthyBusy comes without it")
        self._judge_time(ping.changed_at)
        self._judge_moves(ping)
        self._last = ping

    def _judge_time(self, changed_at: object) -> None:
        if changed_at is None:
            self._findings.explain("ping.time", "the field is left out")
            self._findings.explain("ping.still", "the field is left out")
            return
        is_number = isinstance(changed_at, int | float) and not isinstance(changed_at, bool)
        holds = is_number and float(str(changed_at)) <= time.time() + SKEW_SECONDS
        self._findings.judge("ping.time", holds=holds, detail=f"time_of_last_update is {changed_at!r}")

    def _judge_moves(self, ping: PingAnswer) -> None:
        if self._last is None or ping.changed_at is None:
            return
        if ping.status == self._last.status and ping.changed_at == self._last.changed_at:
            if time.monotonic() - self._still_since >= STILL_SECONDS:
                self._findings.hold("ping.still")
            return
        self._still_since = time.monotonic()
        self._moves = self._moves + 1 if ping.status == self._last.status else 0
        if self._moves >= MOVES:
            self._findings.break_rule("ping.still", f"it moved {MOVES} times while the status was {ping.status}")


class BusyJudge:
    """Judge of ``ping.busy`` for the runs of one session.

    Rule: a ping is judged only if the container has sent an event of an open run after it had answered the ping. An
    event that was read later is no proof, because it may have waited for the platform or for a slow caller. So the next
    ping must pass while the platform waits for the container and nothing comes. All events before were read then, and
    any later one is a proof, except a terminal one.

    Args:
        findings: takes the results.
    """

    def __init__(self, findings: RuleFindings) -> None:
        self._findings = findings
        self._last: PingAnswer | None = None
        self._before_last: set[EventInspector] = set()
        """Runs that were open before the last ping."""
        self._waiting: list[tuple[AnswerInspector, EventInspector, int]] = []
        """Answers that were awaited before the ping, with their open run and the number of their pieces."""
        self._open: set[EventInspector] = set()
        self._unproven: list[tuple[PingAnswer, EventInspector, int]] = []
        """Pings that are judged once their run has more steps."""

    def begin(self, answers: Iterable[AnswerInspector]) -> None:
        """Take the state of all answers, right before a ping is sent."""
        is_open = [answer for answer in answers if answer.run.is_open]
        self._open = {answer.run for answer in is_open}
        self._waiting = [(answer, answer.run, answer.pieces) for answer in is_open if answer.is_awaited]

    def feed(self, ping: PingAnswer) -> None:
        """Judge the pings before this one, as far as it is known by now whether a run was open."""
        for proven, run, steps in self._unproven:
            if run.steps > steps:
                detail = f"the status was {proven.status!r} during a run"
                self._findings.judge("ping.busy", holds=proven.is_busy, detail=detail)
        last = self._last
        self._unproven = [
            (last, run, run.steps)
            for answer, run, pieces in self._waiting
            if last is not None and last.failure is None and run in self._before_last and answer.pieces == pieces
        ]
        self._last, self._before_last = ping, self._open
