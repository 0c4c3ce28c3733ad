"""The conformance run: each rule of the contract, with a container that keeps all and ones that break some."""

import json
import sys
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from agui_container.cli.platform import make_target
from agui_container.platform import check
from agui_container.platform.check import CHECK_LIMITS, check_container
from agui_container.platform.containers import ProcessContainer
from agui_container.platform.report import REPORTS
from agui_container.platform.rules import RULES, RuleFindings, RuleState
from tests.platform.doubles import CONTAINER

UNSEEN = {"image.platform"}
LIMITS = replace(CHECK_LIMITS, stop_seconds=1.0)


async def found(*faults: str, **limits: Any) -> RuleFindings:  # noqa: ANN401 - the fields of PlatformLimits
    """The findings of a conformance run about the container with these faults."""
    command = [sys.executable, str(CONTAINER), *faults]
    return await check_container(lambda: ProcessContainer(command, {}), limits=replace(LIMITS, **limits))


async def test_a_container_that_keeps_every_rule_is_found_to_do_so() -> None:
    findings = await found(stop_seconds=CHECK_LIMITS.stop_seconds)
    states = {rule: finding.state for rule, finding in findings.all().items()}
    assert states == {rule: RuleState.NOT_SEEN if rule in UNSEEN else RuleState.HELD for rule in RULES}


@pytest.mark.parametrize("snapshot", [False, True])
async def test_this_server_keeps_every_rule_also_from_a_snapshot(snapshot: bool) -> None:  # noqa: FBT001 - a parameter
    target = make_target(None, None, None, snapshot=snapshot, env=())
    findings = await check_container(target.make_container, prompt="wait 1")
    await target.aclose()
    states = {rule: finding.state for rule, finding in findings.all().items()}
    assert states == {rule: RuleState.NOT_SEEN if rule in UNSEEN else RuleState.HELD for rule in RULES}


FAULTS = {
    ("loopback", "ping-status", "moves", "leaves-open"): {"listen.host", "ping.status", "ping.still", "run.order"},
    ("no-time", "json-only", "sse-frames", "json-answer", "same-ids", "ignores-sigterm"): {
        *("ping.busy-time", "invocations.any-type", "error.visible", "socket.events", "invocations.stream"),
        *("session.ids", "session.stop"),
    },
    ("never-busy", "late-start", "large-frames", "milliseconds"): {
        *("ping.busy", "run.start", "run.order", "socket.frame-size", "ping.time"),
    },
    ("http-errors", "no-end", "many-frames", "other-ids"): {
        *("error.visible", "run.end", "socket.frame-rate", "run.start"),
    },
    ("socket-late-start",): {"run.start", "run.order"},
    ("socket-no-end",): {"run.end"},
    ("other-path",): {"invocations.answer", "error.visible", "session.concurrent"},
    ("ping-type", "bare-frames", "no-socket"): {"ping.answer", "ping.status", "invocations.stream"},
}
"""Rules that a container with these faults breaks."""


@pytest.mark.parametrize("faults", FAULTS, ids="+".join)
async def test_each_fault_breaks_its_rule(faults: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    if "moves" not in faults:
        monkeypatch.setattr(check, "IDLE_SECONDS", 0.0)
    assert FAULTS[faults] <= {*(await found(*faults)).broken()}


async def test_a_container_on_another_port_is_told_where_it_listens() -> None:
    findings = await found("wrong-port", start_seconds=5.0)
    assert {"listen.port", "start.in-time"} == {*findings.broken()}
    assert "0.0.0.0:" in findings["listen.port"].detail
    assert findings["run.order"].state is RuleState.NOT_SEEN


async def test_a_container_that_exits_breaks_the_rule_of_the_start() -> None:
    findings = await found("exits")
    assert {*findings.broken()} == {"start.in-time"}
    assert "exited with status 3" in findings["start.in-time"].detail


async def test_pings_that_are_not_answered_during_a_run_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "IDLE_SECONDS", 0.0)
    assert "ping.during-run" in (await found("ping-blocks", ping_answer_seconds=0.2)).broken()


def findings_of_each_kind() -> RuleFindings:
    """One rule of each state."""
    findings = RuleFindings()
    findings.hold("ping.status")
    findings.break_rule("ping.still", "it moved <3> times")
    findings.explain("socket.upgrade", "no socket was opened")
    return findings


def test_the_report_in_words_has_a_line_per_rule_and_says_what_was_seen() -> None:
    lines = REPORTS["words"](findings_of_each_kind(), "my-image").splitlines()
    assert lines[0] == "my-image"
    assert sum(line.startswith(("held", "broken", "not seen")) for line in lines) == len(RULES)
    assert any("it moved <3> times" in line for line in lines)
    assert lines[-1] == f"1 held, 1 broken, {len(RULES) - 2} not seen"


def test_the_report_as_json_has_each_rule() -> None:
    report = json.loads(REPORTS["json"](findings_of_each_kind(), "my-image"))
    assert [rule["rule"] for rule in report["rules"]] == [*RULES]
    assert {rule["state"] for rule in report["rules"]} == {"held", "broken", "not seen"}


def test_the_report_as_junit_fails_and_skips_cases() -> None:
    suite = ET.fromstring(REPORTS["junit"](findings_of_each_kind(), "my-image"))  # noqa: S314 - made right here
    assert (suite.get("tests"), suite.get("failures")) == (str(len(RULES)), "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["ping.still"]
    skipped = suite.find("testcase[@name='socket.upgrade']/skipped")
    assert skipped is not None
    assert skipped.get("message") == "no socket was opened"


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_a_sentence_with_a_source(rule: str) -> None:
    assert RULES[rule].sentence.endswith(".")
    assert RULES[rule].source
