"""A run outlives its process: leases, runs of other replicas, and the buses between them."""
