"""The durable store: SQLite and PostgreSQL through SQLAlchemy Core, one code for both.

Rule: who changes a thread and a run locks the thread first, so that no two transactions wait for each other.
"""
