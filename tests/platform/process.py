"""``agui platform`` as a process of its own, without the AWS credentials of this machine."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.terminal import PYTHONPATH

LISTENS = re.compile(r"platform listens: (http://\S+)/_platform")
NO_CREDENTIALS = {
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def platform_process(*options: str) -> Iterator[str]:
    """Run the platform on a free port until the end of the block; gives its address."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AGUI_"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "agui_container", "platform", "--port", "0", *options],
        env={**inherited, **NO_CREDENTIALS, "PYTHONPATH": PYTHONPATH},
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        assert process.stderr is not None
        while (found := LISTENS.search(line := process.stderr.readline())) is None:
            assert line, "the platform did not start"
        yield found[1]
    finally:
        process.terminate()
        process.communicate()
