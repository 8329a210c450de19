"""The command line: a file for each command, with its options and what it does."""
