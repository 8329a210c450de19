"""Streams side by side: their order, when they start, their errors; and blocks that use them."""

import threading

import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.parallel import STREAMS, side_by_side


def test_streams_take_turns():
    streams = [iter("abc"), iter("12"), iter(""), iter("xyz")]
    assert STREAMS == 2
    assert "".join(side_by_side(streams)) == "a1b2cxyz"
    assert list(side_by_side([])) == []


def test_no_stream_starts_before_it_is_needed():
    started = []

    def stream(name):
        started.append(name)
        yield name
        yield name

    found = side_by_side(stream(name) for name in range(5))
    assert [next(found), next(found)] == [0, 1]
    assert max(started) == 1
    found.close()
    assert max(started) == 1


def test_an_error_in_a_stream_is_raised_and_no_thread_is_left():
    def broken():
        yield 1
        raise ArithmeticError("as planned")

    with pytest.raises(ArithmeticError, match="as planned"):
        list(side_by_side([broken(), iter([2, 3])]))
    assert not [t for t in threading.enumerate() if "ThreadPoolExecutor" in t.name]


def test_blocks_come_in_the_same_order_with_the_same_bits_every_time():
    net = al.equivalent(al.models.randomise(al.models.vgg7()))
    frozen = net.freeze(np.random.default_rng(0).random(net.input_shape))
    first, again = (
        [(layer.name, block.rows.tolist(), block.dense()) for layer, block in stream]
        for stream in (frozen.hypersurfaces([net.layer("conv2")]) for _ in range(2))
    )
    assert [block[:2] for block in first] == [block[:2] for block in again]
    assert all(tf.reduce_all(a[2] == b[2]) for a, b in zip(first, again, strict=True))
