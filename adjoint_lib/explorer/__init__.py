"""Equivalent networks outside Python: the export, the engine in JavaScript, the explorer page."""
