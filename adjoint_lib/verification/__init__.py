"""Verification: every unit reconstructed and compared with what the network computes."""
