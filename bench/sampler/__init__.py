"""A folder for ``PYTHONPATH``, with the module that Python imports at the start of a process."""
