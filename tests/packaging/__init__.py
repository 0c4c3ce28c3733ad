"""Tests of packages, locks and images."""
