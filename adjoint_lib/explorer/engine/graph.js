// @ts-check
/** The equivalent network as a graph: sources (the image, slices of x_b) and frozen-linear nodes. */

import { Sum } from "./primitives.js";

/** @typedef {import("./arrays.js").Shape} Shape */
/** @typedef {import("./primitives.js").Primitive} Primitive */

/**
 * A part of v = [x; x_b]: the image itself (`values` is null), a bias or constants.
 * @typedef {{origin: string, values: Float64Array | null}} Source
 */

/**
 * A source, or a primitive applied to earlier nodes.
 * @typedef {{name: string, shape: Shape, inputs: number[], primitive: Primitive | null, source: Source | null}} Node
 */

/** The image is always the first node. */
export const IMAGE = 0;

/** Nodes in an order in which each comes after its inputs, and which of them are outputs. */
export class Graph {
  /**
   * @param {Node[]} nodes
   * @param {number[]} outputs
   */
  constructor(nodes, outputs) {
    this.nodes = nodes;
    this.outputs = outputs;
  }

  /** The number of the source b if this node is h + b, otherwise null. @param {number} number */
  bias_of(number) {
    const { primitive, inputs, shape } = this.nodes[number];
    if (!(primitive instanceof Sum) || inputs.length !== 2) return null;
    const plain = primitive.held.coefficients.every((/** @type {number} */ c) => c === 1)
      && String(shape) === String(this.nodes[inputs[0]].shape);
    return plain && this.is_bias(inputs[1]) ? inputs[1] : null;
  }

  /** Whether a node is a part of x_b. @param {number} number */
  is_bias(number) {
    return this.nodes[number].source?.values != null;
  }

  /** The nodes that the wanted ones depend on, in order. @param {Iterable<number>} wanted */
  plan(wanted) {
    const needed = new Set(wanted);
    for (let number = this.nodes.length - 1; number >= 0; number--) {
      if (needed.has(number)) this.nodes[number].inputs.forEach((i) => needed.add(i));
    }
    return [...needed].sort((a, b) => a - b);
  }
}
