// @ts-check
/**
 * The equivalent network as a user meets it: the paper's Fig. 2, bottom.
 *
 * Every bias, and every constant of an activation with intercepts, is an entry of x_b.
 */

import { InputError } from "./errors.js";
import { Frozen } from "./frozen.js";
import { hypersurface, mode_of } from "./hypersurface.js";
import { Network, finish } from "./network.js";
import { Activation } from "./primitives.js";

/** @typedef {import("./arrays.js").Tensor} Tensor */

/** The paper's z = k [x; x_b]; a power of two, so the scaling commutes with rounding. */
export const K = 1 / 8;

/** A network over v = [x; x_b]: read by value, tangent and adjoint. */
export class EquivalentNet extends Network {
  /**
   * Value reading: c of every unit at k [x; x_b], before its own bias is added.
   * @param {ArrayLike<number>} image
   * @returns {Record<string, Tensor>} by layer name
   */
  value(image, k = 1) {
    const values = finish(this.evaluate(this.check_image(image), check_k(k)));
    return Object.fromEntries(this.layers.map(({ name, number }) => [name, values[number]]));
  }

  /**
   * The network frozen at the pattern of k [x; x_b]: one linear operator J.
   * @param {ArrayLike<number>} image
   */
  freeze(image, k = K) {
    return finish(this.freezing(image, k));
  }

  /**
   * The same in steps. The values that it holds are those at [x; x_b].
   * @param {ArrayLike<number>} image
   * @returns {Generator<number, FrozenNet>}
   */
  *freezing(image, k = K) {
    const x = this.check_image(image), at = this.pattern_at(check_k(k));
    /** @type {any[]} */
    const patterns = [];
    const note = (/** @type {number} */ number, /** @type {Tensor[]} */ inputs) => {
      patterns[number] = this.nodes[number].primitive?.freeze(...inputs) ?? null;
    };
    const values = yield* this.evaluate(x, at, note);
    return new FrozenNet(this, x, patterns, at === 1 ? values : yield* this.evaluate(x, 1));
  }

  /**
   * A number in [1, 2) at which the pattern is that at k: k divided by a power of two. Such a division
   * commutes with rounding, and nothing under- or overflows. An activation that jumps is compared with
   * its threshold itself, at 1, where no rounding of k t enters.
   * @param {number} k
   */
  pattern_at(k) {
    if (this.nodes.some(({ primitive }) => primitive instanceof Activation && primitive.jumps)) return 1;
    const at = k / 2 ** Math.floor(Math.log2(k));
    return at >= 2 ? at / 2 : at < 1 ? at * 2 : at; // log2 is rounded
  }
}

/** J of one image, and the hypersurfaces of its units. */
export class FrozenNet extends Frozen {
  /**
   * The effective hypersurface H = J* w of a unit, and what it says.
   * @param {string} layer  a name of `net.layers`
   * @param {string | undefined} mode  "RM0" (dense layers) or "RM1" ... "RM4"; by default RM0 or RM2
   * @param {number[]} index
   * @param {number[] | null} against  another unit, which is subtracted
   */
  hypersurface(layer, mode, index, against = null) {
    return finish(this.hypersurface_steps(layer, mode, index, against));
  }

  /**
   * The same in steps.
   * @param {string} layer
   * @param {string | undefined} mode
   * @param {number[]} index
   * @param {number[] | null} against
   */
  *hypersurface_steps(layer, mode, index, against = null) {
    const found = this.net.layer(layer);
    return yield* hypersurface(this, found, mode_of(found, mode), index, against);
  }
}

/** k, or an error: the identity holds for k > 0. @param {number} k */
function check_k(k) {
  if (!(k > 0 && k < Infinity)) throw new InputError(`expected a finite k > 0 in z = k [x; x_b], got ${k}.`);
  return k;
}
