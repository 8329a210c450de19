// @ts-check
/**
 * The network over v = [x; x_b]: its nodes in one precision, its layers, its sources, its values.
 *
 * Everything that is known before an image is frozen. Long computations are generators: they yield
 * the share that is done after each node, so that a worker can report it, or stop. `finish` runs one
 * to its end at once.
 */

import { finite, product } from "./arrays.js";
import { InputError } from "./errors.js";
import { IMAGE } from "./graph.js";
import { Conv, ConvTranspose, Dense, DepthwiseConv, Kernel } from "./primitives.js";

/** @typedef {import("./arrays.js").Tensor} Tensor */
/** @typedef {import("./arrays.js").Shape} Shape */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Node} Node */

/**
 * A layer with a kernel, whose units are reconstructed.
 * @typedef {object} Layer
 * @property {string} name  the Keras layer's name
 * @property {string} kind  Conv, DepthwiseConv, ConvTranspose or Dense
 * @property {Shape} kernel  shape of the folded kernel
 * @property {Shape} strides  empty for a dense layer
 * @property {Shape} shape  (h, w, c_out), or (c_out,): the shape of its units c, before the bias
 * @property {number} channels  c_in
 * @property {[number, number] | null} bias  the part of x_b that is added to c, if any
 * @property {number} number  the node that computes c
 * @property {number} reads  the node F(v) that it reads
 * @property {string[]} modes  the reconstruction modes that fit the layer
 * @property {string} default_mode  the mode whose units are the layer's own units
 */

/**
 * A slice of x_b and where it comes from.
 * @typedef {{name: string, origin: string, start: number, stop: number, shape: Shape, node: number}} BiasSource
 */

/** Runs a computation in steps to its end. @template T @param {Generator<number, T>} steps @returns {T} */
export function finish(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return /** @type {T} */ (value);
  }
}

/** A network over v = [x; x_b]: folded kernels, every bias an input. */
export class Network {
  /** @type {Node[] | undefined} */ _absolute;

  /**
   * @param {string} name
   * @param {Graph} graph
   * @param {"float32" | "float64"} dtype  of all tensors
   */
  constructor(name, graph, dtype) {
    this.name = name;
    this.graph = graph;
    this.dtype = dtype;
    this.Tensor = dtype === "float32" ? Float32Array : Float64Array;
    this.nodes = graph.nodes;
    this.outputs = graph.outputs;
    this.input_shape = graph.nodes[IMAGE].shape;
    /** Entries of x. */
    this.pixels = product(this.input_shape);
    this.sources = sources_of(graph);
    /** All biases and constants, in the order of `sources`. */
    this.x_b = Float64Array.from(this.sources.flatMap((s) => Array.from(graph.nodes[s.node].source?.values ?? [])));
    /** Entries of [x; x_b]. */
    this.d_in = this.pixels + this.x_b.length;
    this.layers = layers_of(graph, this.sources);
  }

  /** The layer of this name. @param {string} name */
  layer(name) {
    const found = this.layers.find((layer) => layer.name === name);
    if (!found) throw new InputError(`unknown layer ${JSON.stringify(name)}. Layers: ${this.layers.map((l) => l.name).join(", ")}.`);
    return found;
  }

  /** The image as a tensor of the net's dtype, or an error. @param {ArrayLike<number>} image @returns {Tensor} */
  check_image(image) {
    if (image?.length !== this.pixels) {
      const expected = this.input_shape.join(" x ");
      throw new InputError(`expected an image of ${expected} = ${this.pixels} numbers, got ${image?.length ?? image}.`);
    }
    const found = new this.Tensor(image);
    const bad = found.findIndex((entry) => !Number.isFinite(entry));
    if (bad >= 0) throw new InputError(`expected finite numbers in ${this.dtype}, got ${image[bad]} at entry ${bad}.`);
    return found;
  }

  /** The |weights| of every node, for the rounding scale A. @returns {Node[]} */
  get absolute_nodes() {
    this._absolute ??= this.nodes.map((node) => ({ ...node, primitive: node.primitive?.absolute() ?? null }));
    return this._absolute;
  }

  /**
   * The sources' values for [x; x_b], or for a direction of it.
   * @param {ArrayLike<number>} x
   * @param {ArrayLike<number>} x_b
   * @returns {Map<number, Tensor>} by node
   */
  along(x, x_b) {
    const starts = new Map([[IMAGE, new this.Tensor(x)]]);
    for (const { node, start, stop } of this.sources) {
      starts.set(node, new this.Tensor(Array.prototype.slice.call(x_b, start, stop)));
    }
    return starts;
  }

  /**
   * The value reading at k [x; x_b], of all nodes; `visit` is told each with its inputs.
   * @param {Tensor} image
   * @param {number} k
   * @param {(number: number, inputs: Tensor[], value: Tensor) => void} visit
   * @returns {Generator<number, Tensor[]>}
   */
  *evaluate(image, k, visit = () => {}) {
    const [rounded] = new this.Tensor([k]); // as Python multiplies
    const starts = this.along(image.map((entry) => rounded * entry), this.x_b.map((entry) => k * entry));
    /** @type {Tensor[]} */
    const values = [];
    for (const [number, { name, inputs, primitive }] of this.nodes.entries()) {
      const read = inputs.map((i) => values[i]);
      const value = primitive === null ? starts.get(number) : primitive.value(...read);
      if (value === undefined || !finite(value)) {
        throw new InputError(`'${name}' overflows ${this.dtype} at this image; expected finite values. Scale the image.`);
      }
      values.push(value);
      visit(number, read, value);
      yield (number + 1) / this.nodes.length;
    }
    return values;
  }
}

/** @param {Graph} graph @returns {BiasSource[]} */
function sources_of(graph) {
  let stop = 0;
  return graph.nodes.flatMap(({ name, shape, source }, node) => {
    if (source?.values == null) return [];
    const start = stop;
    stop += source.values.length;
    return [{ name, origin: source.origin, start, stop, shape, node }];
  });
}

/** @param {Graph} graph @param {BiasSource[]} sources @returns {Layer[]} */
function layers_of(graph, sources) {
  /** @type {Map<number, [number, number]>} */
  const biases = new Map();
  graph.nodes.forEach(({ inputs }, number) => {
    const source = sources.find((s) => s.node === graph.bias_of(number));
    if (source) biases.set(inputs[0], [source.start, source.stop]);
  });
  return graph.nodes.flatMap(({ name, shape, inputs, primitive }, number) => {
    if (!(primitive instanceof Kernel)) return [];
    const modes = shape.length === 1 ? ["RM0"] : ["RM1", "RM2", "RM3", "RM4"];
    return [{
      name,
      kind: kind_of(primitive),
      kernel: primitive.kernel.shape,
      strides: primitive.held.strides ?? [],
      shape,
      channels: graph.nodes[inputs[0]].shape.at(-1) ?? 1,
      bias: biases.get(number) ?? null,
      number,
      reads: inputs[0],
      modes,
      default_mode: shape.length === 1 ? "RM0" : "RM2",
    }];
  });
}

/** @param {Kernel} primitive */
function kind_of(primitive) {
  const kinds = { Conv, DepthwiseConv, ConvTranspose, Dense };
  return Object.entries(kinds).find(([, kind]) => primitive instanceof kind)?.[0] ?? "";
}
