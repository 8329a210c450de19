"""The library against the paper's Algorithm 1 as printed: ``python -m benchmarks --help``."""
