"""Findings and reports as text and files; one file a format."""
