"""The exercises with everybody's own numbers, one for each chapter."""

from __future__ import annotations

import math

import numpy as np

from adjoint_book.course.variants import Variant, variant

Random = np.random.Generator


@variant("adjoints", "carry prices back", "two numbers", "answer = task['A'].T @ task['w']")
def adjoints(rng: Random) -> Variant:
    """A* w of a small matrix."""
    A, w = rng.integers(-4, 5, (3, 2)), rng.integers(1, 6, 3)
    A[0] += 5  # no column is zero
    return Variant(
        f"What is $A^* w$ for `task['A'] = {A.tolist()}` and `task['w'] = {w.tolist()}`, with the "
        "plain inner product?",
        {"A": A, "w": w},
        lambda: A.T @ w,
        "each entry prices one input by what it turns into.",
        "Entry j adds up A[i, j] w[i] over i.",
    )


@variant(
    "one-neuron",
    "your leaky neuron",
    "[H of x_0, H of x_1, H of b]",
    "s = task['w'] @ task['x'] + task['b']\n"
    "slope = 1 if s > 0 else task['leak']\n"
    "answer = [*(slope * task['w']), slope]",
)
def one_neuron(rng: Random) -> Variant:
    """H of a leaky neuron that is open or shut."""
    w, x = rng.integers(1, 6, 2) * rng.choice([-1, 1], 2), rng.integers(1, 5, 2)
    b, leak = 0.5 + int(rng.integers(-3, 3)), int(rng.integers(1, 5)) / 10
    slope = 1.0 if w @ x + b > 0 else leak
    return Variant(
        f"A leaky neuron has the weights `task['w'] = {w.tolist()}`, the bias `task['b'] = {b}` "
        f"and the slope `task['leak'] = {leak}` below zero. What is its $H$ at "
        f"`task['x'] = {x.tolist()}`?",
        {"w": w, "x": x, "b": b, "leak": leak},
        lambda: [*(slope * w), slope],
        "the slope multiplies the weights, and the 1 of the bias with them.",
        "Find the sign of the sum first, the bias included.",
        [([*(slope * w), slope * b], "H says how far the bias reaches, not what it adds.")],
    )


@variant(
    "equivalent-topology",
    "where your bias is",
    "a whole number",
    "answer = 32 * 32 * 3 + sum(task['widths'][: task['layer']]) + task['channel']",
)
def equivalent_topology(rng: Random) -> Variant:
    """The position in v of one bias."""
    widths = [int(n) for n in rng.choice([8, 12, 16, 24, 32, 48], 4)]
    layer, channel = int(rng.integers(1, 4)), int(rng.integers(1, 8))
    place = 3072 + sum(widths[:layer]) + channel
    return Variant(
        "A network for 32 by 32 images of 3 colours has four convolutions with biases and "
        f"`task['widths'] = {widths}` out-channels. At which position of $v = [x;\\, x_b]$ is the "
        f"bias of channel `task['channel'] = {channel}` in convolution `task['layer'] = {layer}`? "
        "All are counted from 0.",
        {"widths": widths, "layer": layer, "channel": channel},
        lambda: place,
        "first the image, then the biases, layer by layer.",
        "Count the entries that stand before it.",
        [(place - 3072, "The image stands before all biases."), (place + 1, "Count from 0.")],
    )


@variant(
    "folding",
    "fold your channel",
    "[w'_0, w'_1, b']",
    "scale = task['gamma'] / task['deviation']\n"
    "answer = [*(scale * task['w']), task['beta'] - scale * task['mean']]",
)
def folding(rng: Random) -> Variant:
    """The folded kernel and bias of one channel."""
    w, deviation = rng.integers(-5, 6, 2), int(rng.choice([2, 4, 5, 8]))
    gamma, beta, mean = (int(n) for n in rng.choice([-3, -2, 2, 3, 6], 3))
    scale = gamma / deviation
    return Variant(
        f"A convolution's channel has the weights `task['w'] = {w.tolist()}` and is followed by "
        f"batch normalisation with `task['gamma'] = {gamma}`, `task['beta'] = {beta}`, "
        f"`task['mean'] = {mean}` and the deviation $\\sqrt{{\\sigma^2 + \\epsilon}}$ = "
        f"`task['deviation'] = {deviation}`. Fold it.",
        {"w": w, "gamma": gamma, "beta": beta, "mean": mean, "deviation": deviation},
        lambda: [*(scale * w), beta - scale * mean],
        "one scale, which also meets the mean.",
        "The scale is gamma over the deviation.",
        [([*(scale * w), beta - gamma * mean], "The mean is divided by the deviation as well.")],
    )


@variant(
    "proof",
    "where your unit flips",
    "a number above 1",
    "answer = -task['c'] / (task['a'] * task['x'])",
)
def proof(rng: Random) -> Variant:
    """The k at which a pre-activation changes its sign, the bias held."""
    a, x, flip = -int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.integers(5, 60)) / 4
    c = -a * x * flip
    return Variant(
        f"A pre-activation is $h = a\\,x + c$ with `task['a'] = {a}`, the pixel "
        f"`task['x'] = {x}` and the bias `task['c'] = {c}`. The pixel is multiplied by $k$ and the "
        "bias is not. Above which $k$ is the ReLU in another state than at $k = 1$?",
        {"a": a, "x": x, "c": c},
        lambda: flip,
        "had the bias been scaled too, no k would flip it.",
        "Set a k x + c to 0 and solve for k.",
    )


@variant(
    "five-modes",
    "the shape of your H",
    "a tuple of whole numbers",
    "d_in, size, into, out = (task[n] for n in ('d_in', 'size', 'into', 'out'))\n"
    "answer = {'RM1': (d_in, out), 'RM2': (d_in, size, size, out),\n"
    "          'RM3': (d_in, into, out), 'RM4': (d_in, size, size, into, out)}[task['mode']]",
)
def five_modes(rng: Random) -> Variant:
    """The shape of H in one of the modes."""
    mode = str(rng.choice(["RM1", "RM2", "RM3", "RM4"]))
    size, biases = int(rng.choice([8, 16, 32])), int(rng.integers(100, 900))
    into, out = (int(n) for n in rng.choice([16, 24, 32, 48, 64], 2))
    d_in = 3072 + biases
    shapes = {
        "RM1": (d_in, out),
        "RM2": (d_in, size, size, out),
        "RM3": (d_in, into, out),
        "RM4": (d_in, size, size, into, out),
    }
    return Variant(
        f"What is the shape of $H$ in the mode `task['mode'] = {mode!r}`, for a convolution with "
        f"`task['into'] = {into}` in-channels, `task['out'] = {out}` out-channels and an output of "
        f"{size} by {size} (`task['size']`), in a network with {biases} biases for 32 by 32 colour "
        f"images (`task['d_in'] = {d_in}`)?",
        {"mode": mode, "size": size, "into": into, "out": out, "d_in": d_in},
        lambda: shapes[mode],
        "what is summed over has no axis.",
        "RM4 keeps positions and in-channels; which of them does this mode sum over?",
    )


@variant(
    "computing-it-fast",
    "push or pull?",
    "a whole number",
    "answer = task['images'] * min(task['units'], task['directions'])",
)
def computing_it_fast(rng: Random) -> Variant:
    """Which direction is cheaper for some units of a layer."""
    biases, side = int(rng.integers(50, 700)), int(rng.choice([8, 16, 32]))
    channels, images = int(rng.choice([3, 10, 40, 64])), int(rng.integers(1, 4))
    units, directions = side * side * channels, 3072 + biases
    wrong = images * max(units, directions)
    return Variant(
        f"You want $H$ of every unit in {channels} channels of a map of {side} by {side}, for "
        f"`task['images'] = {images}` image(s): `task['units'] = {units}` for each. {directions} "
        "directions reach them (`task['directions']`). A run forward for one direction costs as "
        "much as one back for one unit. How many runs does the cheaper way take, in all?",
        {"units": units, "directions": directions, "images": images},
        lambda: images * min(units, directions),
        "each image has a pattern of its own, so each takes its own runs.",
        "Compare the number of units with that of directions, for one image.",
        [(wrong, "That is the dearer way.")],
    )


@variant(
    "data",
    "how many versions?",
    "a whole number",
    "answer = (2 * task['down'] + 1) * (2 * task['across'] + 1) * task['looks']",
)
def data(rng: Random) -> Variant:
    """How many versions of an image augmentation can make."""
    down, across = (int(n) for n in rng.integers(1, 13, 2))
    looks = int(rng.choice([1, 2, 4]))
    how = {1: "not turned or flipped", 2: "flipped or not", 4: "turned by any multiple of 90°"}
    return Variant(
        f"An image is shifted by up to `task['down'] = {down}` pixels up or down, by up to "
        f"`task['across'] = {across}` to the left or right, and {how[looks]} "
        f"(`task['looks'] = {looks}`). How many versions of it are there?",
        {"down": down, "across": across, "looks": looks},
        lambda: (2 * down + 1) * (2 * across + 1) * looks,
        "the choices multiply.",
        "How many shifts are there along one axis, no shift among them?",
        [(4 * down * across * looks, "Not to shift at all is a choice too.")],
    )


@variant(
    "vgg7",
    "your interval",
    "a number, in percentage points",
    "p = task['right'] / task['n']\nanswer = 196 * (p * (1 - p) / task['n']) ** 0.5",
)
def vgg7(rng: Random) -> Variant:
    """Half the width of a 95 % interval."""
    n = int(rng.choice([500, 1000, 2000, 5000]))
    right = int(n * rng.uniform(0.6, 0.95))
    p = right / n
    return Variant(
        f"A network is right for `task['right'] = {right}` of `task['n'] = {n}` test images. What "
        "is half the width of the 95 % interval, in percentage points? Take 1.96 standard "
        "deviations.",
        {"right": right, "n": n},
        lambda: 196 * math.sqrt(p * (1 - p) / n),
        "four times as many images would halve it.",
        "The standard deviation of a share p of n is the root of p (1 - p) / n.",
        [(1.96 * math.sqrt(p * (1 - p) / n), "That is the share; 100 times as much is asked.")],
        rtol=0.02,
    )


@variant(
    "resnet20",
    "your residual network",
    "[paths, entries of x_b]",
    "blocks, first, width = (task[n] for n in ('blocks', 'first', 'width'))\n"
    "answer = [2**blocks, first + 2 * blocks * width]",
)
def resnet20(rng: Random) -> Variant:
    """The paths and the biases of a small residual network."""
    blocks, first, width = int(rng.integers(3, 11)), *(int(n) for n in rng.choice([16, 24, 40], 2))
    return Variant(
        f"A network has a convolution with `task['first'] = {first}` channels, then "
        f"`task['blocks'] = {blocks}` residual blocks, each with two convolutions of "
        f"`task['width'] = {width}` channels; batch normalisation follows every convolution, and "
        "shortcuts and the dense layer have no biases. Of how many paths through blocks is it a "
        "sum, and how many entries does $x_b$ have?",
        {"blocks": blocks, "first": first, "width": width},
        lambda: [2**blocks, first + 2 * blocks * width],
        "paths multiply from block to block, biases add.",
        "Each block can be passed in two ways, and has two vectors of biases.",
    )


@variant(
    "fixup",
    "fold your multiplier",
    "[w'_0, w'_1, b']",
    "answer = [*(task['M'] * task['w']), task['b']]",
)
def fixup(rng: Random) -> Variant:
    """A multiplier folded into the kernel before it."""
    w, M = rng.integers(-5, 6, 2), int(rng.choice([-3, 3, 5, 7])) / 2
    b = int(rng.integers(2, 9)) / 4
    return Variant(
        f"A Fixup branch multiplies a convolution's output by `task['M'] = {M}` and then adds the "
        f"scalar `task['b'] = {b}`. Two of the kernel's weights are `task['w'] = {w.tolist()}`. "
        "What are they, and the bias, once the multiplier has been folded?",
        {"w": w, "M": M, "b": b},
        lambda: [*(M * w), b],
        "the scalar is added after the multiplication, so it stays.",
        "Which of the two comes first, the multiplier or the scalar?",
        [([*(M * w), M * b], "The bias is added after the multiplication.")],
    )


@variant(
    "verification-cifar10",
    "count your misses",
    "[how many miss, the largest |error| in per cent]",
    "errors = 100 * abs((task['c_hat'] - task['c']) / task['c'])\n"
    "answer = [(errors > 1).sum(), errors.max()]",
)
def verification_cifar10(rng: Random) -> Variant:
    """How many units miss 1 %."""
    c = rng.choice([-1, 1], 9) * np.round(10.0 ** rng.uniform(-6, 0.5, 9), 7)
    errors = rng.choice([-1, 1], 9) * np.array([2.5e-7, 4e-8, 1e-7] * 3)
    c_hat = c + errors

    def relative() -> np.ndarray:
        return 100 * np.abs((c_hat - c) / c)

    return Variant(
        f"The values of nine units are `task['c'] = {c.tolist()}`, and their reconstructions are "
        "in `task['c_hat']`. How many miss the paper's 1 %, and how large is the largest relative "
        "error, in per cent and without its sign?",
        {"c": c, "c_hat": c_hat},
        lambda: [(relative() > 1).sum(), relative().max()],
        "all errors are of one size; the misses are the values near zero.",
        "A unit misses if |c_hat - c| / |c| is above 0.01.",
    )


@variant(
    "verification-cifar100",
    "how much wider?",
    "a number",
    "answer = task['alike'] ** 0.5",
)
def verification_cifar100(rng: Random) -> Variant:
    """How much wider an interval is when units are alike."""
    alike = int(rng.integers(3, 200))
    return Variant(
        f"In groups of `task['alike'] = {alike}`, the units of an image always miss together or "
        "not at all. How many times as wide is the honest interval as one which takes all units to "
        "be independent?",
        {"alike": alike},
        lambda: math.sqrt(alike),
        "a group is worth one unit, and the width goes with the square root.",
        "By what factor are there fewer independent facts?",
        [(alike, "The number of facts falls by this; how does the width depend on it?")],
        rtol=0.01,
    )


@variant(
    "feature-maps",
    "what your unit sees",
    "a whole number",
    "side = 1 + 2 * task['layers']\nanswer = 3 * side**2 + task['width'] * (task['layers'] - 1)",
)
def feature_maps(rng: Random) -> Variant:
    """How many entries of H a unit can have that are not zero."""
    layers, width = int(rng.integers(2, 9)), int(rng.integers(8, 49))
    side = 1 + 2 * layers
    return Variant(
        f"A network begins with `task['layers'] = {layers}` convolutions, 3 by 3 and of stride 1, "
        f"each with `task['width'] = {width}` channels and biases. A unit in the last of them "
        "looks at the middle of a large image of 3 colours. How many entries of its $H$ can be "
        "other than zero? (Its own layer's biases are not in $c$.)",
        {"layers": layers, "width": width},
        lambda: 3 * side**2 + width * (layers - 1),
        "a square of pixels, and the biases of all layers before.",
        "Each convolution adds one pixel on every side.",
        [(3 * side**2, "The biases before it are entries as well.")],
    )


@variant(
    "rounding",
    "your condition",
    "a number",
    "p = task['p']\nanswer = sum(abs(p)) / abs(sum(p))",
)
def rounding(rng: Random) -> Variant:
    """The condition of a sum that cancels."""
    p = np.round(rng.uniform(-4, 4, 4), 2)
    p[3] = round(-float(p[:3].sum()) + int(rng.integers(1, 9)) / 100, 2)
    return Variant(
        f"Four products are `task['p'] = {p.tolist()}`. What is the condition of their sum?",
        {"p": p},
        lambda: float(np.abs(p).sum() / abs(p.sum())),
        "it is by how much rounding errors count in what is left.",
        "The sum of the sizes, over the size of the sum.",
        [(float(abs(p.sum()) / np.abs(p).sum()), "That is one over it.")],
        rtol=1e-3,
    )


@variant(
    "what-hypersurfaces-show",
    "your margin",
    "[part of the image, part of the biases]",
    "difference = task['H_a'] - task['H_b']\n"
    "answer = [difference[:2] @ task['v'][:2], difference[2:] @ task['v'][2:]]",
)
def what_hypersurfaces_show(rng: Random) -> Variant:
    """What image and biases give to a margin."""
    H_a, H_b, v = rng.integers(-5, 6, 5), rng.integers(-5, 6, 5), rng.integers(1, 6, 5)
    H_a[0], H_a[3] = H_b[0] + 2, H_b[3] - 3  # both parts have something to say
    parts = (H_a - H_b) * v
    return Variant(
        f"Two classes have `task['H_a'] = {H_a.tolist()}` and `task['H_b'] = {H_b.tolist()}` at "
        f"`task['v'] = {v.tolist()}`, of which the first two entries are pixels and the others "
        "biases. What do image and biases each add to the margin of a over b?",
        {"H_a": H_a, "H_b": H_b, "v": v},
        lambda: [parts[:2].sum(), parts[2:].sum()],
        "what both classes share has cancelled, and the two parts are the margin.",
        "Take the difference of the two hypersurfaces first.",
        [([-parts[:2].sum(), -parts[2:].sum()], "That is the margin of b over a.")],
    )


@variant(
    "what-it-is-good-for",
    "your step to a tie",
    "[change of x_0, change of x_1]",
    "normal = task['normal']\nanswer = -task['margin'] * normal / (normal @ normal)",
)
def what_it_is_good_for(rng: Random) -> Variant:
    """The shortest step to a tie, by the linear map."""
    normal, margin = rng.integers(1, 6, 2) * rng.choice([-1, 1], 2), int(rng.integers(1, 9))
    return Variant(
        f"At an image of two pixels the margin is `task['margin'] = {margin}`, and "
        f"$\\Delta H_I$ is `task['normal'] = {normal.tolist()}`. What is the shortest change of "
        "the pixels after which the linear map says: tie?",
        {"margin": margin, "normal": normal},
        lambda: -margin * normal / (normal @ normal),
        "it goes along the normal, against the margin.",
        "The margin changes by the inner product of the step with the normal.",
        [
            (margin * normal / (normal @ normal), "The margin is to fall, not to rise."),
            (-margin * normal / np.sqrt(normal @ normal), "Divide by the length squared."),
        ],
    )


@variant(
    "your-own-model",
    "your x_b",
    "a whole number",
    "uses, units, constants = (task[n] for n in ('uses', 'units', 'constants'))\n"
    "answer = task['channels'] + constants + uses * units",
)
def your_own_model(rng: Random) -> Variant:
    """The length of x_b of a model with a shared layer and constants."""
    channels, units = int(rng.choice([6, 8, 12, 20])), int(rng.integers(3, 12))
    uses, activation = int(rng.integers(2, 5)), int(rng.integers(0, 3))
    name = ["ReLU", "ReLU6", "hard tanh, with −1 and 1"][activation]
    return Variant(
        f"A model has a convolution with `task['channels'] = {channels}` channels and biases, then "
        f"{name} once (`task['constants'] = {activation}`), then a pool, and then one dense layer "
        f"of `task['units'] = {units}` units with biases, called `task['uses'] = {uses}` times. "
        "How many entries does $x_b$ have?",
        {"channels": channels, "constants": activation, "units": units, "uses": uses},
        lambda: channels + activation + uses * units,
        "each use of a layer and each constant counts.",
        "A shared layer has one slice for each use; a constant is one entry.",
        [(channels + activation + units, "The dense layer is used more than once.")],
    )


@variant(
    "teaching",
    "what were they thinking?",
    "the wrong number that this student would write",
    "answer = task['biases']",
)
def teaching(rng: Random) -> Variant:
    """The number that a misconception leads to."""
    biases = int(rng.integers(100, 2000))
    return Variant(
        f"A network for 32 by 32 colour images has `task['biases'] = {biases}` biases. Somebody "
        "who believes that $v$ holds the biases only is asked for its length. Which number will "
        "you read?",
        {"biases": biases},
        lambda: biases,
        "a wrong number often says what was thought.",
        "Leave out what this student leaves out.",
        [(3072 + biases, "That is the right length, and not what this student writes.")],
    )
