"""What the library promises of memory, each call in a process of its own.

What TensorFlow itself takes is measured in the same process before the call, so that the limit
speaks of the call alone.
"""

import math
import subprocess
import sys
from pathlib import Path

import pytest

import adjoint_lib as al

pytest.importorskip("resource")

GROWTH = """
import resource, sys
import numpy as np
import adjoint_lib as al

def peak():  # in bytes
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

net = al.equivalent(al.models.randomise(al.models.build("{model}")))
image = al.data.sample("cifar10")[0][0]
net.value(image)
before = peak()
{call}
print(peak() - before)
"""


def growth(model: str, call: str) -> int:
    """How far a call raises the peak of memory, in bytes."""
    run = subprocess.run(
        [sys.executable, "-c", GROWTH.format(model=model, call=call)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(run.stdout)


@pytest.mark.parametrize("model", ["vgg7", "resnet20"])
def test_a_verification_of_every_unit_stays_below_a_gigabyte(model):
    net = al.equivalent(al.models.build(model))
    whole = 4 * net.d_in * sum(math.prod(layer.shape) for layer in net.layers)
    assert whole > 2**30  # all H of one image, as one array
    assert growth(model, "al.verify(net, image, progress=False)") < 2**30


def test_a_lazy_hypersurface_takes_no_memory_until_it_is_indexed():
    """RM4 of conv1 has 3456 x 32^4 entries: 14 GB."""
    call = "H = net.hypersurface(image, 'conv1', 'RM4'); H.shape; H.nbytes; H[3, 4, 5, 6]"
    assert growth("vgg7", call) < 2**28


WIDE = """
import os
import keras, numpy as np
import adjoint_lib as al

def resident(kind):  # in bytes; VmHWM is the peak since it was last reset
    (line,) = (l for l in open("/proc/self/status") if l.startswith(kind))
    return int(line.split()[1]) << 10

layers = [keras.layers.Dense(8000, activation="relu"), keras.layers.Dense(10, name="out")]
model = keras.Sequential([keras.Input((4000,)), *layers])
x = np.random.default_rng(0).random((1, 4000), np.float32)
model(x)
weights = sum(4 * int(np.prod(w.shape)) for w in model.weights)
before, peaks = resident("VmRSS"), []
net = None
for call in (
    "net = al.equivalent(model)",
    "net.hypersurface(x, 'out')[0, 3].value",
    "al.verify(net, x, method='tangent', progress=False)",
):
    open("/proc/self/clear_refs", "w").write("5")
    exec(call)
    peaks.append((resident("VmHWM") - before) / weights)
print(*peaks)
"""


def test_a_network_of_large_kernels_takes_at_most_three_times_its_weights():
    """`equivalent`, a unit and the rounding scale: none keeps a float64 copy of the kernels."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("needs Linux, whose peak of memory can be reset")
    run = subprocess.run([sys.executable, "-c", WIDE], capture_output=True, text=True, check=True)
    peaks = [float(peak) for peak in run.stdout.split()]
    assert len(peaks) == 3 and max(peaks) < 3, peaks
