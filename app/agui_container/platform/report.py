"""Reports of a conformance run: in words, as JSON, and as JUnit XML for a build server."""

import json
from collections import Counter
from xml.etree import ElementTree as ET

from agui_container.platform.data_plane import describe_findings
from agui_container.platform.rules import RULES, RuleFindings, RuleState

SUITE = "agui platform check"


def in_words(findings: RuleFindings, target: str) -> str:
    """Return the report for people: a line for each rule, and what was seen where a rule was not held."""
    lines = [f"{target}", ""]
    for rule, found in findings.all().items():
        lines.append(f"{found.state:<9} {rule:<20} {RULES[rule].sentence}")
        if found.detail and found.state is not RuleState.HELD:
            lines.append(f"{'':<31}{found.detail}")
    counts = Counter(found.state for found in findings.all().values())
    lines += ["", ", ".join(f"{counts[state]} {state}" for state in RuleState)]
    return "\n".join(lines)


def as_json(findings: RuleFindings, target: str) -> str:
    """Return the report as a JSON document."""
    return json.dumps({"target": target, "rules": describe_findings(findings)}, indent=2)


def as_junit(findings: RuleFindings, target: str) -> str:
    """Return the report as JUnit XML: a broken rule is a failure, and one that was not seen is skipped."""
    found = findings.all()
    counts = Counter(finding.state for finding in found.values())
    suite = ET.Element(
        "testsuite",
        name=SUITE,
        tests=str(len(found)),
        failures=str(counts[RuleState.BROKEN]),
        skipped=str(counts[RuleState.NOT_SEEN]),
    )
    for rule, finding in found.items():
        case = ET.SubElement(suite, "testcase", classname=target, name=rule)
        if finding.state is RuleState.BROKEN:
            ET.SubElement(case, "failure", message=RULES[rule].sentence).text = finding.detail
        elif finding.state is RuleState.NOT_SEEN:
            ET.SubElement(case, "skipped", message=finding.detail)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


REPORTS = {"words": in_words, "json": as_json, "junit": as_junit}
"""Forms of a report by their names."""
