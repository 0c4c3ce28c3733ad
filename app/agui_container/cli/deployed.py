"""``agui status`` and ``agui logs``: a deployed runtime, and what its containers have logged.

Source of the name of the log group: devguide ``observability-view``.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
from boto3.session import Session  # type: ignore[import-untyped]

from agui_container.aws.deploy.deployment import DEFAULT_ENDPOINT
from agui_container.cli.deploy import Work, endpoint_option, explained, name_option, region_option
from agui_container.cli.failure import without_controls
from agui_container.cli.options import config_option

LOG_GROUP = "/aws/bedrock-agentcore/runtimes/{runtime}-{endpoint}"
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
POLL_SECONDS = 2.0
OVERLAP_MS = 60_000
"""Milliseconds that are asked for again, because CloudWatch takes a while until it shows a line."""


@click.command()
@name_option
@region_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@config_option
def status(name: str | None, region: str | None, config: Path | None, *, as_json: bool) -> int:
    """Show a deployed runtime: state, image, endpoints and versions. The status is 1 if it is not READY."""
    with explained():
        found = read_status(name, region, config)
    if as_json:
        click.echo(json.dumps(found, indent=2, default=str))
    else:
        for key, value in found.items():
            click.echo(f"{key:>9}  {value if isinstance(value, str) else json.dumps(value, default=str)}")
    return 0 if found["status"] == "READY" else 1


def read_status(name: str | None, region: str | None, config: Path | None) -> dict[str, object]:
    """Return what is known about a runtime. Raises ``DeployRefused`` if there is none."""
    versions = Work.named(config, {"name": name, "region": region}).versions
    runtime = versions.find()
    artifact = runtime["agentRuntimeArtifact"].get("containerConfiguration", {})
    return {
        "name": runtime["agentRuntimeName"],
        "arn": runtime["agentRuntimeArn"],
        "status": runtime["status"],
        "reason": runtime.get("failureReason", ""),
        "version": runtime["agentRuntimeVersion"],
        "image": artifact.get("containerUri", ""),
        "updated": str(runtime["lastUpdatedAt"]),
        "endpoints": {name: version for name, version in versions.live(runtime).items() if name != DEFAULT_ENDPOINT},
        "versions": versions.numbers(runtime)[:10],
    }


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
        group = LOG_GROUP.format(runtime=work.versions.find()["agentRuntimeId"], endpoint=endpoint)
        start = int((time.time() - since) * 1_000)
        seen: set[str] = set()
        while True:
            for identity, at, line in read_lines(work.session, group, start, pattern):
                if identity not in seen:
                    seen.add(identity)
                    start = max(start, at - OVERLAP_MS)
                    click.echo(without_controls(line))
            if not follow:
                return 0
            time.sleep(POLL_SECONDS)


def read_lines(session: Session, group: str, start: int, pattern: str | None) -> Iterator[tuple[str, int, str]]:
    """Yield id, time in milliseconds and text of each line. A group that does not exist yet has none."""
    client = session.client("logs")
    named = {"logGroupName": group, "startTime": start, **({"filterPattern": pattern} if pattern else {})}
    with suppress(client.exceptions.ResourceNotFoundException):
        for event in client.get_paginator("filter_log_events").paginate(**named).search("events[]"):
            yield event["eventId"], event["timestamp"], event["message"].rstrip("\n")
