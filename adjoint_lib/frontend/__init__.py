"""Keras models as graphs: layers written in primitives, and refusals that say why not."""
