"""What many open streams cost on replicas with PostgreSQL and a bus: measured units, a simulation, and its check."""
