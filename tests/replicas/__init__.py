"""Several processes of this server on one database: each test starts them, and the database and the bus."""
