"""Checks for the chapter 'Computing it fast'."""

from __future__ import annotations

import math

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, unanswered


@exercise
def check_multiply_adds(answer: int | None) -> None:
    """Multiply-adds of conv7 in ResNet20."""
    import adjoint_lib as al

    layer = al.equivalent(al.models.resnet20()).layer("conv7")
    kernel, (height, width, _) = math.prod(layer.kernel), layer.shape
    compare(
        answer,
        kernel * height * width,
        correct="every weight once, at each of the 16 x 16 positions of the output.",
        hints=[
            (kernel * 32 * 32, "With stride 2 the kernel stops at 16 x 16 positions only."),
            (kernel, "That is the number of weights; each is used at every output position."),
            (kernel * height * width // 64, "The kernel's 64 out-channels all do their work."),
        ],
        hint="Multiply the number of weights by the number of positions of the output.",
    )


@exercise
def check_break_even(answer: int | None) -> None:
    """The least number of conv5 units of VGG7 for which pushing is cheaper."""
    compare(
        answer,
        3072 + 288 + 1,
        correct="3,072 pixels and 288 biases of earlier layers can reach conv5; one unit more than "
        "that, and pushing them all is cheaper.",
        hints=[
            (3072 + 288, "With as many units as directions, both cost the same."),
            (3456 + 1, "The last biases come too late: conv5's own cannot reach its c."),
            (3456, "Not all of d_in reaches conv5, and at a draw nothing is gained."),
            (3072 + 1, "The biases of earlier layers are directions too."),
        ],
        hint="Count the directions: pixels, and the biases of the layers before conv5.",
    )


@exercise
def check_jacobian_bytes(answer: int | None) -> None:
    """Bytes of the Jacobian of Algorithm 1 for conv1 of ResNet20, in float32."""
    entries = (3072 + 1184) * 32**3
    compare(
        answer,
        4 * entries,
        correct="more than half a billion bytes, for one layer and one image.",
        hints=[
            (entries, "Those are the entries; each takes four bytes in float32."),
            (8 * entries, "float32 takes four bytes, not eight."),
            (4 * 3072 * 32**3, "The biases have rows in the Jacobian too."),
            (4 * (3072 + 1152) * 32**3, "ResNet20 has 1,184 biases, with those of conv0."),
        ],
        hint="It has d_in rows, each of the shape of the maps that conv1 reads.",
    )


@exercise
def check_image_share(answer: np.ndarray | None) -> None:
    """The image's share of sum |v_d H_d| for each out-channel of conv1 in the chapter's VGG7."""
    if unanswered(answer):
        return
    import adjoint_lib as al

    net = al.equivalent(al.models.vgg7(weights="cifar10"))
    image = al.data.sample("cifar10")[0][0]
    pixels = image.size
    v = np.abs(np.concatenate([image.reshape(-1), net.x_b]))
    sums = np.zeros((2, 32))
    for _, block in net.freeze(image).hypersurfaces([net.layer("conv1")]):
        parts = np.abs(block.dense().numpy()).sum(axis=(1, 2)) * v[block.rows, None]
        for part, rows in enumerate((block.rows < pixels, block.rows >= pixels)):
            sums[part] += parts[rows].sum(axis=0)
    compare(
        answer,
        sums[0] / sums.sum(0),
        correct="no hypersurface was ever stored, and every one was used.",
        hints=[
            (sums[1] / sums.sum(0), "That is the share of the biases."),
            (sums[0], "Divide by the sum over image and biases."),
        ],
        hint="Add |v_d| |H_d| over all rows, positions and colours, for each of the 32 channels; "
        "the rows below 3,072 are the image.",
        rtol=1e-3,
    )
