"""Cost of many open streams on replicas with PostgreSQL and a bus: measured units, a simulation, and its check."""
