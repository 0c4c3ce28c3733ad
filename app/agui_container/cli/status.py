"""``agui status``: state of a deployed runtime, its endpoints and its versions."""

import json
from pathlib import Path

import click

from agui_container.aws.deploy.deployment import DEFAULT_ENDPOINT
from agui_container.aws.deploy.versions import CONTROL, live_versions
from agui_container.cli.deploy import Work, explained, name_option, region_option
from agui_container.cli.options import config_option


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
    work = Work.named(config, {"name": name, "region": region})
    runtime = work.runtime()
    named = {"agentRuntimeId": runtime["agentRuntimeId"]}
    versions = live_versions(work.aws, runtime)
    made = work.aws.call(CONTROL, "ListAgentRuntimeVersions", named)["agentRuntimes"]
    artifact = runtime["agentRuntimeArtifact"].get("containerConfiguration", {})
    return {
        "name": runtime["agentRuntimeName"],
        "arn": runtime["agentRuntimeArn"],
        "status": runtime["status"],
        "reason": runtime.get("failureReason", ""),
        "version": runtime["agentRuntimeVersion"],
        "image": artifact.get("containerUri", ""),
        "updated": str(runtime["lastUpdatedAt"]),
        "endpoints": {name: version for name, version in versions.items() if name != DEFAULT_ENDPOINT},
        "versions": sorted((int(each["agentRuntimeVersion"]) for each in made), reverse=True)[:10],
    }
