"""The whole theory in one file: every unit of a CNN is an inner product with the network's input.

Collect all biases of a ReLU network in one vector x_b. As a function of v = [x; x_b] it then has no
constants: freeze which ReLUs are on, and all that is left is one linear operator J, with F(v) = J v
for the maps F of any layer. So the unit that reads F with kernel w has the value (before its bias)

    c = <F(v), w> = <J v, w> = <v, J* w> = <x | H_I> + <x_b | H_b>,        H = J* w.

H, the unit's effective hypersurface, is as large as v and can be looked at like an image.
"""

from dataclasses import dataclass

import numpy as np

# What a layer computes fills an array C[y, x, j, i]: position (y, x), in-channel j, out-channel i.
# The five reconstruction modes differ only in the axes of C that they sum: RM4 none, RM3 positions,
# RM2 in-channels, RM1 both. RM0 is for the dense head, whose only position is (0, 0).
SUMMED = {"RM0": (0, 1, 2), "RM1": (0, 1, 2), "RM2": (2,), "RM3": (0, 1), "RM4": ()}


def windows(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The window of A around each (y, x), zeros outside A: two new axes, a and b, at the end."""
    edges = [(n // 2, n // 2) for n in w.shape[:2]] + [(0, 0)] * (A.ndim - 2)
    return np.lib.stride_tricks.sliding_window_view(np.pad(A, edges), w.shape[:2], (0, 1))


def units(F: np.ndarray, w: np.ndarray, mode: str) -> np.ndarray:
    """The values c of a layer's units, from the maps F[y, x, j] and the kernel w[a, b, j, i].

    RM4 keeps C whole. Its sum over j, RM2, is the layer as everybody knows it: a convolution.
    """
    C = np.einsum("yxjab,abji->yxji", windows(F, w), w)
    return C.sum(SUMMED[mode])


def cotangent(e: np.ndarray, w: np.ndarray, mode: str, shape: tuple[int, ...]) -> np.ndarray:
    """The adjoint of `units`: <units(F, w, mode), e> = <F, g> for all F of this shape; returns g.

    With e = 1 at one unit and 0 elsewhere, g is that unit's kernel, put in its place on F.
    The adjoint of a sum is a copy, and that of a kernel is the kernel turned by 180 degrees.
    """
    E = np.broadcast_to(np.expand_dims(e, SUMMED[mode]), (*shape, w.shape[-1]))
    return np.einsum("yxjiab,abji->yxj", windows(E, w), w[::-1, ::-1])


@dataclass
class Net:
    """Convolutions, each with a bias and a (leaky) ReLU, then a dense head.

    Attributes:
        size: height and width of x and of all maps.
        w: kernels w[a, b, j, i] with odd sides. The head's has sides 1 and j counts all entries of
            the last maps: a dense layer is a convolution of one pixel with many channels.
        b: biases b[i].
        slope: of the activation left of 0, not negative; 0 is the ReLU.
    """

    size: tuple[int, int]
    w: list[np.ndarray]
    b: list[np.ndarray]
    slope: float = 0.0

    @property
    def x_b(self) -> np.ndarray:
        """All biases, in one vector."""
        return np.concatenate(self.b)

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        """The shapes of what the layers read: maps, and for the head one pixel."""
        *convs, head = self.w
        return [(*self.size, w.shape[2]) for w in convs] + [(1, 1, head.shape[2])]

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """The activation is a product: z times the slope on its side of 0."""
        return np.where(z > 0, 1.0, self.slope)

    def read(self, v: np.ndarray, D: list[np.ndarray] | None = None) -> list[np.ndarray]:
        """What each layer reads at v = [x; x_b]: x, F_1(v), F_2(v), ...

        Given slopes D, it multiplies by those instead of choosing them: then it is linear in v.
        """
        x, *b = np.split(v, np.cumsum([np.prod(self.shapes[0]), *map(len, self.b[:-1])]))
        F = [x.reshape(self.shapes[0])]
        for n, shape in enumerate(self.shapes[1:]):
            z = units(F[n], self.w[n], "RM2") + b[n]
            F.append((z * (self.slopes(z) if D is None else D[n])).reshape(shape))
        return F

    def freeze(self, v: np.ndarray) -> "Frozen":
        """The operator J that the network is at v, as at k v, k > 0; F > 0 just where z > 0."""
        return Frozen(self, [self.slopes(F).reshape(*self.size, -1) for F in self.read(v)[1:]])


@dataclass
class Frozen:
    """The operator J: a network with its slopes D frozen is linear from v to what each layer reads.

    It is never written out as a matrix: `push` multiplies by J, `pull` by its adjoint J*.
    """

    net: Net
    D: list[np.ndarray]

    def push(self, dv: np.ndarray, layer: int) -> np.ndarray:
        """J dv: what a change dv of [x; x_b] does to the maps that the layer reads."""
        return self.net.read(dv, self.D)[layer]

    def pull(self, g: np.ndarray, layer: int) -> np.ndarray:
        """J* g: to weigh the maps with g is to weigh [x; x_b] with J* g. It is push, backwards."""
        H_b = [np.zeros_like(b) for b in self.net.b]
        for n in reversed(range(layer)):
            g = g.reshape(self.D[n].shape) * self.D[n]
            H_b[n] = g.sum((0, 1))  # a bias is copied to all positions: its adjoint sums
            g = cotangent(g, self.net.w[n], "RM2", self.net.shapes[n])
        return np.concatenate([g.ravel(), *H_b])

    def H(self, layer: int, mode: str, unit: tuple[int, ...]) -> np.ndarray:
        """The effective hypersurface H = J* w of a unit: [H_I; H_b]."""
        w, shape = self.net.w[layer], self.net.shapes[layer]
        e = np.zeros(np.delete((*shape, w.shape[-1]), SUMMED[mode]))
        e[unit] = 1
        return self.pull(cotangent(e, w, mode, shape), layer)


def check(net: Net, x: np.ndarray, k: float = 1 / 8) -> float:
    """The largest error of <v|H> over all units in all modes, relative to the layer's largest c."""
    v = np.concatenate([x.ravel(), net.x_b])
    J, errors = net.freeze(k * v), []
    for layer, (F, w) in enumerate(zip(net.read(v), net.w, strict=True)):
        for mode in ["RM0"] if w is net.w[-1] else ["RM1", "RM2", "RM3", "RM4"]:
            c = units(F, w, mode)
            rebuilt = [v @ J.H(layer, mode, unit) for unit in np.ndindex(c.shape)]
            errors.append(np.abs(rebuilt - c.ravel()).max() / np.abs(c).max())
    return float(np.max(errors))


if __name__ == "__main__":
    draw = np.random.default_rng(0).normal
    shapes = [(3, 3, 2, 4), (5, 3, 4, 3), (1, 1, 6 * 7 * 3, 10)]
    net = Net((6, 7), [draw(size=s) for s in shapes], [draw(size=s[-1]) for s in shapes], 0.1)
    x = draw(size=(6, 7, 2))
    v = np.concatenate([x.ravel(), net.x_b])
    J = net.freeze(v / 8)
    H = J.H(layer=1, mode="RM2", unit=(2, 3, 0))
    print(f"H has {H.size} entries: {x.size} for x and {net.x_b.size} for x_b")
    print(f"c by the forward pass:  {units(net.read(v)[1], net.w[1], 'RM2')[2, 3, 0]:.12f}")
    print(f"c by <x|H_I>+<x_b|H_b>: {x.ravel() @ H[: x.size] + net.x_b @ H[x.size :]:.12f}")
    print(f"largest error, all units and modes: {check(net, x):.1e}")
