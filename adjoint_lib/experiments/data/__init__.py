"""CIFAR-10 and CIFAR-100: small samples that come with the library, the full sets on request.

images, labels = al.data.sample("cifar10")           # embedded, no network
images, labels = al.data.load("cifar10", "test")     # the full split, fetched once if need be
"""

from adjoint_lib.experiments.data.sets import CLASS_NAMES, Status, fetch, load, sample, status

__all__ = ["CLASS_NAMES", "Status", "fetch", "load", "sample", "status"]
