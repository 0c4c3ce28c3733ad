"""AWS's SDK for Node.js against the platform: it signs the hash of the body, and tries again."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agui_container.aws.platform.authorizer import SigV4Authorizer
from agui_container.aws.platform.check import run_input
from tests.aws.platform.doubles import ARN, CONTAINER, SESSION, platform_around

pytestmark = [pytest.mark.wire, pytest.mark.other_language]

CLIENT = Path(__file__).with_name("node") / "client.mjs"


async def test_awss_sdk_for_node_invokes_stops_and_reads_the_class_of_an_error() -> None:
    async with platform_around([sys.executable, str(CONTAINER)], SigV4Authorizer("local", "local")) as url:
        arguments = ("node", str(CLIENT), url, ARN, SESSION, run_input("hello").decode())
        process = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
        output, _ = await process.communicate()
    assert process.returncode == 0
    seen = json.loads(output)
    assert (seen["types"][0], seen["types"][-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert (seen["session"], seen["stopped"]) == (SESSION, 200)
    assert seen["failure"] == {"name": "SyntaxError", "type": "ThrottlingException"}
