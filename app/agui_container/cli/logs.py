"""``agui logs``: what the containers of a deployed runtime have logged.

Source of the name of the log group: devguide ``observability-view``.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import click

from agui_container.aws.deploy.aws import Aws
from agui_container.cli.deploy import Work, endpoint_option, explained, name_option, region_option
from agui_container.cli.failure import without_controls
from agui_container.cli.options import config_option

LOG_GROUP = "/aws/bedrock-agentcore/runtimes/{runtime}-{endpoint}"
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
POLL_SECONDS = 2.0
OVERLAP_MS = 60_000
"""Milliseconds that are asked for again, because CloudWatch takes a while until it shows a line."""


def parse_duration(_: click.Context, __: click.Parameter, text: str) -> int:
    """Return the seconds of a duration such as ``10m``."""
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise click.BadParameter(f"'{text}' is no duration such as 90s, 10m, 2h or 1d.")
    return int(found[1]) * UNITS[found[2]]


@click.command()
@name_option
@region_option
@endpoint_option
@click.option("--since", default="10m", show_default=True, callback=parse_duration, help="How far to look back.")
@click.option("--filter", "pattern", metavar="PATTERN", help="Pattern of CloudWatch, such as ERROR or a request id.")
@click.option("--follow", is_flag=True, help="Continue with new lines until Ctrl-C.")
@config_option
def logs(
    name: str | None,
    region: str | None,
    endpoint: str,
    since: int,
    pattern: str | None,
    config: Path | None,
    *,
    follow: bool,
) -> int:
    """Print what the containers of a deployed runtime have logged."""
    with explained():
        work = Work.named(config, {"name": name, "region": region}, endpoint)
        group = LOG_GROUP.format(runtime=work.runtime()["agentRuntimeId"], endpoint=endpoint)
        start = int((time.time() - since) * 1_000)
        seen: set[str] = set()
        while True:
            for identity, at, line in read_lines(work.aws, group, start, pattern):
                if identity not in seen:
                    seen.add(identity)
                    start = max(start, at - OVERLAP_MS)
                    click.echo(without_controls(line))
            if not follow:
                return 0
            time.sleep(POLL_SECONDS)


def read_lines(aws: Aws, group: str, start: int, pattern: str | None) -> Iterator[tuple[str, int, str]]:
    """Yield id, time in milliseconds and text of each line. A group that does not exist yet has none."""
    named = {"logGroupName": group, "startTime": start, **({"filterPattern": pattern} if pattern else {})}
    for page in aws.pages("logs", "FilterLogEvents", named):
        for event in page["events"]:
            yield event["eventId"], event["timestamp"], event["message"].rstrip("\n")
