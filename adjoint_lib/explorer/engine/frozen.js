// @ts-check
/**
 * The frozen network: at a fixed activation pattern the whole network is one linear operator J.
 *
 * `push` reads J as a tangent (all layers at once), `pull` reads it as an adjoint (from one layer
 * back to [x; x_b]). Everything else, the five modes included, is written in terms of these two.
 */

import { product } from "./arrays.js";
import { IMAGE } from "./graph.js";
import { finish } from "./network.js";

/** @typedef {import("./arrays.js").Tensor} Tensor */
/** @typedef {import("./graph.js").Node} Node */
/** @typedef {import("./network.js").Network} Network */

/** J of an equivalent network at k [x; x_b], for one image. */
export class Frozen {
  /** @type {Frozen | undefined} */ _absolute;

  /**
   * @param {Network} net
   * @param {Tensor} image  x
   * @param {any[]} patterns  one for each node (null where the node is linear anyway)
   * @param {Tensor[]} values  of all nodes at [x; x_b]
   * @param {Node[]} nodes
   */
  constructor(net, image, patterns, values, nodes = net.nodes) {
    this.net = net;
    this.image = image;
    this.patterns = patterns;
    this.values = values;
    this.nodes = nodes;
    /** A, where it was asked for: see `rounding_scale`. @type {Map<number, Tensor>} */
    this.scales = new Map();
  }

  /** The same with |weights|: pushed along |v|, it gives the rounding scale A. */
  get absolute() {
    this._absolute ??= new Frozen(this.net, this.image, this.patterns, this.values, this.net.absolute_nodes);
    return this._absolute;
  }

  /**
   * Tangent reading: J dv at all nodes that the wanted ones depend on.
   * @param {Map<number, Tensor>} starts  tangents of the sources
   * @param {Iterable<number>} wanted  node numbers
   * @param {Map<number, Tensor>} tangents  of nodes where they are known already; others are added
   * @returns {Generator<number, Map<number, Tensor>>}
   */
  *push(starts, wanted, tangents = new Map()) {
    const plan = this.net.graph.plan(wanted).filter((number) => !tangents.has(number));
    for (const [done, number] of plan.entries()) {
      const { primitive, inputs } = this.nodes[number];
      const read = inputs.map((i) => /** @type {Tensor} */ (tangents.get(i)));
      const found = primitive === null ? starts.get(number) : primitive.push(this.patterns[number], ...read);
      tangents.set(number, /** @type {Tensor} */ (found));
      yield (done + 1) / plan.length;
    }
    return tangents;
  }

  /**
   * J [dx; dx_b] at the wanted nodes, by number.
   * @param {ArrayLike<number>} dx
   * @param {ArrayLike<number>} dx_b
   * @param {number[]} wanted
   */
  tangents(dx, dx_b, wanted) {
    const pushed = finish(this.push(this.net.along(dx, dx_b), wanted));
    return new Map(wanted.map((number) => [number, /** @type {Tensor} */ (pushed.get(number))]));
  }

  /**
   * Adjoint reading: J* g from one node back to the input.
   * @param {number} number  the node whose value g weighs
   * @param {Tensor} cotangent  g
   * @param {(number: number, cotangents: Map<number, Tensor>) => void} visit  is told each node that g
   *     comes to, with all cotangents that are on their way
   * @returns {Generator<number, {image: Tensor, bias: Tensor}>} the parts of J* g in x and in x_b
   */
  *pulling(number, cotangent, visit = () => {}) {
    const cotangents = new Map([[number, cotangent]]);
    for (let at = number; at >= 0; at--) {
      const g = cotangents.get(at);
      const { primitive, inputs } = this.nodes[at];
      if (g !== undefined) visit(at, cotangents);
      if (g === undefined || primitive === null) continue;
      cotangents.delete(at);
      primitive.pull(this.patterns[at], g).forEach((part, n) => {
        const other = cotangents.get(inputs[n]);
        cotangents.set(inputs[n], other === undefined ? part : other.map((entry, i) => entry + part[i]));
      });
      yield 1 - at / (number + 1);
    }
    const bias = new this.net.Tensor(this.net.x_b.length);
    for (const { node, start } of this.net.sources) bias.set(cotangents.get(node) ?? [], start);
    const image = cotangents.get(IMAGE) ?? new this.net.Tensor(product(this.net.input_shape));
    return { image, bias };
  }

  /**
   * J* g at once, see `pulling`.
   * @param {number} number
   * @param {Tensor} cotangent
   */
  pull(number, cotangent) {
    return finish(this.pulling(number, cotangent));
  }
}
