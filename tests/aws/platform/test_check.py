"""The conformance run: each rule of the contract, with a container that keeps all and ones that break some."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from agui_container.aws.platform import check
from agui_container.aws.platform.check import CHECK_LIMITS, check_container
from agui_container.aws.platform.containers import ProcessContainer
from agui_container.aws.platform.rules import RULES, RuleFindings, RuleState, report
from agui_container.cli.platform import OFFLINE_PROMPT, container_factory
from tests.aws.platform.doubles import CONTAINER

pytestmark = [pytest.mark.wire, pytest.mark.processes]

LIMITS = replace(CHECK_LIMITS, stop_seconds=1.0)


async def found(*faults: str, **limits: Any) -> RuleFindings:  # noqa: ANN401 - the fields of PlatformLimits
    command = [sys.executable, str(CONTAINER), *faults]
    return await check_container(lambda: ProcessContainer(command, {"PINGS": "4"}), limits=replace(LIMITS, **limits))


def states(findings: RuleFindings) -> dict[str, RuleState]:
    return {rule: findings[rule].state for rule in RULES}


async def test_a_container_that_keeps_every_rule_is_found_to_do_so() -> None:
    findings = await found("many-lines", "ids-of-run", stop_seconds=CHECK_LIMITS.stop_seconds)
    assert states(findings) == dict.fromkeys(RULES, RuleState.HELD)


async def test_this_server_keeps_every_rule() -> None:
    findings = await check_container(container_factory(None, (), {}), prompt=OFFLINE_PROMPT)
    assert states(findings) == dict.fromkeys(RULES, RuleState.HELD)


AWS_APPLICATIONS = {
    "AGUIApp": {"ping.busy", "error.visible", "socket.events"},
    "BedrockAgentCoreApp": {
        *("invocations.answer", "invocations.any-type", "run.order", "run.end", "error.visible"),
        *("session.concurrent", "session.abort", "session.frozen"),
    },
}
"""Rules that AWS's own applications break, with the handler of ``aws_application.py``."""


@pytest.mark.packages
@pytest.mark.parametrize("name", AWS_APPLICATIONS)
async def test_the_report_is_made_about_applications_of_aws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "IDLE_SECONDS", 0.0)
    command = [sys.executable, str(CONTAINER.with_name("aws_application.py")), name, "{port}"]
    findings = await check_container(lambda: ProcessContainer(command, {}))
    assert {*findings.broken} == AWS_APPLICATIONS[name]


FAULTS = {
    ("loopback", "ping-status", "moves"): {"listen.host", "ping.status", "ping.still"},
    ("no-time", "json-only", "sse-frames", "json-answer", "same-ids", "ignores-sigterm"): {
        *("ping.busy-time", "invocations.any-type", "error.visible", "socket.events", "invocations.stream"),
        *("session.ids", "session.stop"),
    },
    ("never-busy", "large-frames", "milliseconds"): {"ping.busy", "socket.frame-size", "ping.time"},
    ("http-errors", "no-end", "many-frames"): {"error.visible", "run.end", "socket.frame-rate"},
    ("socket-no-end", "holds-back"): {"run.end", "run.streamed"},
    ("other-path",): {"invocations.answer", "error.visible", "session.concurrent"},
    ("no-ping", "json-only"): {"ping.answer", "ping.status", "ping.busy", "invocations.any-type"},
    ("ping-type", "no-socket", "breaks-off"): {
        "ping.answer",
        "ping.status",
        "invocations.answer",
        "session.concurrent",
    },
}
"""Rules that a container with these faults breaks."""


@pytest.mark.parametrize("faults", FAULTS, ids="+".join)
async def test_each_fault_breaks_its_rule(faults: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    if "moves" not in faults:
        monkeypatch.setattr(check, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(check, "SLOW_SECONDS", 0.2)
    assert FAULTS[faults] <= {*(await found(*faults)).broken}


async def test_a_container_on_another_port_is_found() -> None:
    findings = await found("wrong-port", start_seconds=5.0)
    assert {"listen.port", "start.in-time"} == {*findings.broken}
    assert "nothing listens on port" in findings["listen.port"].detail
    assert findings["run.order"].state is RuleState.NOT_SEEN


async def test_a_container_that_exits_breaks_the_rule_of_the_start() -> None:
    findings = await found("exits")
    assert {*findings.broken} == {"start.in-time"}
    assert "exited with status 3" in findings["start.in-time"].detail


async def test_a_failure_of_the_check_itself_does_not_keep_the_report_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> str:
        raise RuntimeError

    monkeypatch.setattr(check, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(check, "brief", fail)
    findings = await found()
    assert findings["session.stop"].state is RuleState.HELD


async def test_pings_that_are_not_answered_during_a_run_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "IDLE_SECONDS", 0.0)
    assert "ping.during-run" in (await found("ping-blocks", ping_answer_seconds=0.2)).broken


def test_the_report_has_a_line_per_rule_and_says_what_was_seen() -> None:
    findings = RuleFindings()
    findings.hold("ping.status")
    findings.break_rule("ping.still", "it moved <3> times")
    findings.explain("socket.upgrade", "no socket was opened")
    findings.note("it sends THINKING_START")
    lines = report(findings, "my-image").splitlines()
    assert lines[0] == "my-image"
    assert sum(line.startswith(("held", "broken", "not seen")) for line in lines) == len(RULES)
    assert any("it moved <3> times" in line for line in lines)
    assert any(line.startswith("note") and "THINKING_START" in line for line in lines)
    assert lines[-1] == f"1 held, 1 broken, {len(RULES) - 2} not seen"
