"""``agui platform`` as a process of its own, without the AWS credentials of this machine."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.server.sockets.process import ROOT, ServerProcess

NO_CREDENTIALS = {
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def platform_process(*options: str) -> Iterator[str]:
    """Run the platform on a free port until the end of the block; gives its address."""
    names = [name for name in os.environ if name.startswith("AWS_") and name not in NO_CREDENTIALS]
    without = [word for name in names for word in ("-u", name)]
    program = (sys.executable, "-m", "agui_container", "platform", "--port", "0", *options)
    with ServerProcess(("env", *without, *program), ROOT, AGUI_AGENT="assistant", **NO_CREDENTIALS) as server:
        yield f"http://127.0.0.1:{server.port}"
