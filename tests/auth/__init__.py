"""Tests of authentication: app/agui_container/auth, and its use by each transport."""
