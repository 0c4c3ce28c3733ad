"""``agui chat --web`` as a command: its port, its browser, its way to a runtime by the ARN, and its end by a signal."""

import signal
import sys
from pathlib import Path

import httpx
import pytest

from tests.aws.platform.doubles import ARN
from tests.aws.platform.process import platform_process
from tests.cli.terminal import PYTHONPATH
from tests.engine.doubles import ask
from tests.ports import free_port
from tests.server.sockets.process import STOP_SECONDS, ServerProcess
from tests.sse import events_of

pytestmark = [pytest.mark.wire, pytest.mark.processes]

SIGNAL = "signal.signal(signal.SIGINT, signal.SIG_DFL)"
START = f"import os, signal, sys; {SIGNAL}; os.dup2(2, 1); os.execv(sys.argv[1], sys.argv[1:])"
"""Standard output is read with the log. A SIGINT that the tests ignore, because they run in the background, counts."""

COMMAND = (sys.executable, "-c", START, sys.executable, "-m", "agui_container", "chat", "--web", ARN)


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
        with ServerProcess((*COMMAND, "--web-port", str(port), *options), **variables) as page:
            assert page.log[0] == f"The page for {ARN} is at {url}. Ctrl-C ends it."
            answer = httpx.post(f"{url}invocations", json=ask(), timeout=STOP_SECONDS)
            assert events_of(answer.content)[-1]["type"] == "RUN_FINISHED"
            page.interrupt() if ending == signal.SIGINT else page.term()
            assert page.wait() == status
    assert not any("Traceback" in line for line in page.log)
    assert (tmp_path / "opened").exists() is not bool(options)
