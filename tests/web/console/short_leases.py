"""The command line with leases of two seconds, so that a run of a killed server is lost without a long wait."""

import sys

from agui_container.cli.command_line import main
from agui_container.replicas import leases
from agui_container.run import cluster

for module, name, seconds in (
    (cluster, "LEASE_SECONDS", 2.0),
    (leases, "LEASE_SECONDS", 2.0),
    (leases, "RENEW_SECONDS", 0.5),
):
    setattr(module, name, seconds)

sys.exit(main(sys.argv[1:]))
