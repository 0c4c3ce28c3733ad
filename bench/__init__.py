"""The benchmark: this server beside others, measured side by side. ``python -m bench --help`` says how."""
