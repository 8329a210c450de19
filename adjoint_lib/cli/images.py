"""Images of one's own, as the commands read them: an `.npy` file, or a folder."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from adjoint_lib._storage import decoding, ordinary, read_npy
from adjoint_lib.errors import InputError

PICTURES = (".png", ".jpg", ".jpeg", ".bmp")
MAX_PIXELS = 64 << 20  # bytes of one picture as a file


def read_images(
    option: str, path: str, shape: Sequence[int], most: int | None = None
) -> tuple[np.ndarray, dict[str, str]]:
    """The images that an option names, and the SHA-256 of each file they come from.

    A folder's `.npy` files and pictures are taken in the order of their names. Bytes become numbers
    in [0, 1]; numbers stay as they are, and nothing is resized.

    Args:
        option: its name, for messages.
        shape: of one image, as the network takes it.
        most: how many images to read.
    """
    found: list[np.ndarray] = []
    files: dict[str, str] = {}
    for file in _files(option, Path(path)):
        batch = _read(file, shape)
        batch = batch[None] if batch.shape == tuple(shape) else batch
        if batch.shape[1:] != tuple(shape) or not len(batch):
            raise InputError(
                f"{option} {file}: expected images of shape {tuple(shape)}, as the network takes, "
                f"or an array of them, got {batch.shape}. Resize them first."
            )
        found.append(batch / 255 if batch.dtype == "uint8" else batch)
        files[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        if most is not None and sum(map(len, found)) >= most:
            break
    return np.concatenate(found)[:most], files


def _files(option: str, path: Path) -> Iterator[Path]:
    """The file itself, or those of the folder."""
    if not path.is_dir():
        yield path
        return
    files = sorted(f for f in path.iterdir() if f.suffix.lower() in (".npy", *PICTURES))
    if not files:
        raise InputError(
            f"{option} {path}: expected a folder with .npy files or pictures "
            f"({', '.join(PICTURES)}), found none in it."
        )
    yield from files


def _read(file: Path, shape: Sequence[int]) -> np.ndarray:
    """The array in an `.npy` file, or the bytes of a picture, decoded if it has the right size."""
    if file.suffix.lower() not in PICTURES:
        expected = "an array of images, in an .npy file, or a folder of such files or pictures"
        return read_npy(file, expected, "Write it by numpy.save.")
    with decoding(file, f"a picture ({', '.join(PICTURES)})", "Save it again, or as .npy."):
        import tensorflow as tf

        content = ordinary(file, MAX_PIXELS).read_bytes()
        if (size := _size(content)) != tuple(shape[:2]):
            raise InputError(
                f"{file}: expected a picture of {shape[0]} x {shape[1]} pixels, as the network "
                f"takes, got {size[0]} x {size[1]}. Resize it first."
            )
        decoded = tf.io.decode_image(content, shape[-1] if shape[-1] in (1, 3) else 0)
        return np.asarray(decoded)


def _size(content: bytes) -> tuple[int, int]:
    """Height and width by the picture's first bytes; a small file may be one of many pixels."""
    if content.startswith(b"\x89PNG"):
        width, height = struct.unpack(">II", content[16:24])
    elif content.startswith(b"BM"):
        width, height = struct.unpack("<ii", content[18:26])
    elif content.startswith(b"\xff\xd8"):
        import tensorflow as tf

        height, width, _ = tf.io.extract_jpeg_shape(content).numpy().tolist()
    else:
        raise ValueError("its first bytes are not those of PNG, JPEG or BMP")
    return abs(height), width  # of a BMP a height below zero says that its top comes first
