"""The experiments of the paper: its models, data, training, verification runs and results."""
