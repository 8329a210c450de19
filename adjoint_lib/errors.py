"""The exceptions a user can meet: each says what was expected, what came, and the remedy."""

import numbers


class AdjointError(Exception):
    """Base class of every error raised on purpose by this library."""


class InputError(AdjointError, ValueError):
    """An argument of a call is wrong: shape, dtype, value, layer name, mode or index."""


class UnsupportedLayer(AdjointError, TypeError):
    """The model holds a layer whose exact equivalent over [x; x_b] is not known."""


class TooLarge(AdjointError, MemoryError):
    """A dense result would exceed the memory budget; the message holds its size."""


class DataError(AdjointError, OSError):
    """A data file is missing, truncated, corrupted or not the file it claims to be."""


class DivergedError(AdjointError, ArithmeticError):
    """A training run's loss is no longer a finite number."""


def check_whole(name: str, number: object, least: int) -> int:
    """An argument of this name as an int, or an error: a whole number of at least this."""
    if isinstance(number, bool) or not isinstance(number, numbers.Integral) or number < least:
        raise InputError(f"expected {name} as a whole number of at least {least}, got {number!r}.")
    return int(number)


def in_one_line(error: BaseException) -> str:
    """The kind and the message of an error, cut after 400 characters."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message if len(message) < 400 else message[:400] + ' ...'}"
