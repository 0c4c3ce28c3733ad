"""The durable store: SQLite and PostgreSQL through SQLAlchemy Core, with the same code for both.

Rule: a transaction that changes a thread and a run locks the thread first. This order prevents deadlocks.
"""
