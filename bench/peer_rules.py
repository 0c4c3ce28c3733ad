"""Rules of AgentCore's contract that this server and its peers hold: the marks in the table of docs/platform.md.

    make peers

Checks each container as ``agui platform check`` does, prints what was seen of each rule that was not held, and writes
the marks into the page. Versions and the date in the page are written by hand.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence

from agui_container.cli.platform import ContainerTarget, check_target, log_decisions, make_target
from agui_container.platform.check import DEFAULT_PROMPT
from agui_container.platform.report import REPORTS
from agui_container.platform.rules import RuleFindings, RuleState
from bench.server import PEERS_PYTHON, ROOT

PAGE = ROOT / "docs" / "platform.md"
ROW = re.compile(r"^(\| `([a-z.-]+)` \| [^|]+ \|)(?: \S \|)+$", re.MULTILINE)
MARKS = {RuleState.HELD: "✓", RuleState.BROKEN: "✗", RuleState.NOT_SEEN: "\N{EN DASH}"}

OURS = "this server"
PEERS = {"AGUIApp": "agentcore", "ag-ui-strands": "strands", "Pydantic AI": "pydantic-ai"}
"""Columns of the page, and names in ``bench.peers.conformance``."""

ONE_SECOND = "wait 1"
"""A message to the offline model for a run as long as those of the peers."""


def peer(name: str) -> ContainerTarget:
    """Return a peer, served with the packages of its own."""
    return make_target(None, f"{PEERS_PYTHON} -m bench.peers.conformance {name}", None, snapshot=False, env=())


async def check_all() -> Mapping[str, RuleFindings]:
    """Check this server as its image is set, and each peer. Returns the findings by columns of the page."""
    own = make_target(None, None, None, snapshot=False, env=())
    found = {OURS: await check_target(own, "/invocations", ONE_SECOND)}
    for column, name in PEERS.items():
        found[column] = await check_target(peer(name), "/invocations", DEFAULT_PROMPT)
    return found


def with_marks(page: str, found: Sequence[RuleFindings]) -> str:
    """Return the page with the marks of these findings, which are in the order of its columns."""
    return ROW.sub(lambda row: " ".join((row[1], *(f"{MARKS[each[row[2]].state]} |" for each in found))), page)


if __name__ == "__main__":
    log_decisions()
    findings = asyncio.run(check_all())
    for column, each in findings.items():
        print(REPORTS["words"](each, column), end="\n\n")  # noqa: T201 - the report
    PAGE.write_text(with_marks(PAGE.read_text(encoding="utf-8"), [*findings.values()]), encoding="utf-8")
