"""Marking what students hand in: their code runs in a process of its own, the checks in another."""
