"""``agui chat --web`` as a command: its port, its browser, its way to a runtime by the ARN, and its end by a signal."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.cli.terminal import PYTHONPATH
from tests.engine.doubles import ask
from tests.platform.doubles import ARN
from tests.platform.process import platform_process
from tests.ports import free_port
from tests.requirements import requirement
from tests.sockets.process import ROOT, STOP_SECONDS, environment
from tests.sse import events_of

COMMAND = (sys.executable, "-m", "agui_container", "chat", "--web", ARN)


@requirement("terminal.web")
@pytest.mark.parametrize(
    ("options", "ending", "status"),
    [((), signal.SIGINT, 1), (("--no-open",), signal.SIGTERM, 128 + signal.SIGTERM)],
    ids=["open-until-ctrl-c", "no-open-until-sigterm"],
)
def test_the_page_of_a_runtime_is_served_on_its_port_until_a_signal_ends_it(
    tmp_path: Path, options: tuple[str, ...], ending: signal.Signals, status: int
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    port = free_port()
    url = f"http://localhost:{port}/"
    with platform_process("tests.cli.terminal_agent:agent") as address:
        keys = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
        own = {"PYTHONPATH": PYTHONPATH, "XDG_STATE_HOME": str(tmp_path), "BROWSER": str(browser)}
        variables = {"AWS_ENDPOINT_URL_BEDROCK_AGENTCORE": address, **keys, **own}
        with subprocess.Popen(
            [*COMMAND, "--web-port", str(port), *options],
            cwd=ROOT,
            env=environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == f"The page for {ARN} is at {url}. Ctrl-C ends it.\n"
                answer = httpx.post(f"{url}invocations", json=ask(), timeout=STOP_SECONDS)
                assert events_of(answer.content)[-1]["type"] == "RUN_FINISHED"
                process.send_signal(ending)
                _, complaints = process.communicate(timeout=STOP_SECONDS)
            finally:
                process.kill()
    assert "Traceback" not in complaints, complaints
    assert process.returncode == status
    assert (tmp_path / "opened").exists() is not bool(options)
