"""Checks of ``agui doctor``: each one returns findings, and each finding says what to do."""
