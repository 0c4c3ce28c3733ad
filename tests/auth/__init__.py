"""Tests of authentication: app/agui_container/auth, and what each transport makes of it."""
