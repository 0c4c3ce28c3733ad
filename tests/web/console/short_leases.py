"""The command line with leases of six seconds.

So a run of a killed server is lost without a long wait, and a slow machine renews in time.
"""

import sys

from agui_container.cli.command_line import main
from agui_container.replicas import leases
from agui_container.run import cluster

for module, name, seconds in (
    (cluster, "LEASE_SECONDS", 6.0),
    (leases, "LEASE_SECONDS", 6.0),
    (leases, "RENEW_SECONDS", 0.5),
):
    setattr(module, name, seconds)

sys.exit(main(sys.argv[1:]))
