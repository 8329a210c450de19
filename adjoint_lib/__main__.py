"""`python -m adjoint_lib`, the same as the command `adjoint`."""

from adjoint_lib.cli.main import leave

if __name__ == "__main__":
    leave()
