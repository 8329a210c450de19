// @ts-check
/**
 * The building blocks of an equivalent network: each can be evaluated, frozen, pushed and pulled.
 *
 * A primitive is a map between tensors that is linear once its *pattern* is fixed (which piece of an
 * activation, which entry of a pooling window). It has four readings:
 *
 * - `value(...xs)`            what the layer computes;
 * - `freeze(...xs)`           the pattern at this point: null for a primitive that is linear anyway;
 * - `push(pattern, ...dxs)`   the tangent reading, J dx, of the frozen primitive;
 * - `pull(pattern, g)`        the adjoint reading, J* g, one cotangent for each input.
 *
 * The classes and their fields are those of `core/primitives.py`; an export names them. Parameters
 * are held in double (of a float32 network, rounded to float32), tensors in the network's dtype.
 */

import { broadcast, gather, like, permuted, product, scatter, within } from "./arrays.js";
import { Sliding, weigh } from "./sliding.js";

/** @typedef {import("./arrays.js").Tensor} Tensor */
/** @typedef {import("./arrays.js").Shape} Shape */
/** @typedef {import("./arrays.js").Parameter} Parameter */
/** @typedef {import("./sliding.js").Meetings} Meetings */
/** @typedef {any} Pattern */

/** A linear primitive: its value is its push. Subclasses give `push`, `pull` and `roundings`. */
export class Primitive {
  /** The names of its fields, as an export has them. @type {string[]} */
  static fields = [];

  /**
   * @param {Record<string, any>} held  its fields by name
   * @param {Shape[]} shapes  of its inputs
   * @param {Shape} shape  of its output
   */
  constructor(held, shapes, shape) {
    this.held = held;
    this.shapes = shapes;
    this.shape = shape;
    this.size = product(shape);
  }

  /** @param {Tensor[]} xs @returns {Tensor} */
  value(...xs) {
    return this.push(null, ...xs);
  }

  /** @param {Tensor[]} xs @returns {Pattern} */
  freeze(...xs) {
    return null;
  }

  /** @param {Pattern} pattern @param {Tensor[]} dxs @returns {Tensor} */
  push(pattern, ...dxs) {
    throw new Error(`${this.constructor.name} has no push.`);
  }

  /** @param {Pattern} pattern @param {Tensor} g @returns {Tensor[]} */
  pull(pattern, g) {
    throw new Error(`${this.constructor.name} has no pull.`);
  }

  /** How many rounded operations a product meets on its way through, at most. */
  get roundings() {
    return 0;
  }

  /** How many a product meets on its way back in a pull. */
  get roundings_back() {
    return this.roundings;
  }

  /** The same primitive with |parameters|. @returns {Primitive} */
  absolute() {
    return this.with_fields((field) => (field?.data ? { ...field, data: field.data.map(Math.abs) } : field));
  }

  /** The same primitive with each field changed. @param {(field: any, name: string) => any} change */
  with_fields(change) {
    const held = Object.entries(this.held).map(([name, field]) => [name, change(field, name)]);
    return new /** @type {any} */ (this.constructor)(Object.fromEntries(held), this.shapes, this.shape);
  }
}

// ------------------------------------------------------------------ layers with a kernel

/** A primitive with weights: the layers whose units are reconstructed. */
export class Kernel extends Primitive {
  /** @type {Parameter} */
  get kernel() {
    return this.held.kernel;
  }
}

/** Matrix product over the last axis; kernel (c_in, c_out). */
export class Dense extends Kernel {
  static fields = ["kernel"];
  /** The kernel turned, made once. @type {Float64Array | undefined} */ _turned;

  push(pattern, x) {
    const [c_in, c_out] = this.kernel.shape;
    return product_of(x, this._places.forward, this.kernel.data, c_in, c_out, this.size);
  }

  pull(pattern, g) {
    const [c_in, c_out] = this.kernel.shape;
    this._turned ??= turned(this.kernel);
    return [product_of(g, this._places.backward, this._turned, c_out, c_in, product(this.shapes[0]))];
  }

  /** Each place reads itself, through the only tap. */
  get _places() {
    return Sliding.of([this.size / this.kernel.shape[1]], [1], [1], "VALID");
  }

  get roundings() {
    return this.kernel.shape[0];
  }

  get roundings_back() {
    return this.kernel.shape[1];
  }
}

/** Convolution (cross-correlation), 1 to 3 dimensions; kernel (*window, c_in/groups, c_out). */
export class Conv extends Kernel {
  static fields = ["kernel", "strides", "padding", "dilation", "groups", "input_shape"];
  /** The turned kernel of each group, made once. @type {Float64Array[] | undefined} */ _turned;
  /** @type {Parameter[] | undefined} */ _by_group;
  /** @type {Sliding | undefined} */ _sliding;

  push(pattern, x) {
    const { groups } = this.held;
    const [c_in, c_out] = this.kernel.shape.slice(-2);
    const out = like(x, this.size);
    this._groups.forEach((kernel, group) => {
      const part = { channels: c_in * groups, first: group * c_in, rows: c_in, width: c_out / groups };
      const to = { out_channels: c_out, out_first: (group * c_out) / groups };
      weigh(x, this.sliding.forward, kernel.data, out, { ...part, ...to });
    });
    return out;
  }

  pull(pattern, g) {
    const { groups } = this.held;
    const [c_in, c_out] = this.kernel.shape.slice(-2);
    const out = like(g, product(this.held.input_shape));
    this._turned ??= this._groups.map(turned);
    this._turned.forEach((kernel, group) => {
      const part = { channels: c_out, first: (group * c_out) / groups, rows: c_out / groups, width: c_in };
      weigh(g, this.sliding.backward, kernel, out, { ...part, out_channels: c_in * groups, out_first: group * c_in });
    });
    return [out];
  }

  get sliding() {
    const { input_shape, strides, padding, dilation } = this.held;
    this._sliding ??= Sliding.of(input_shape.slice(0, -1), this.kernel.shape.slice(0, -2), strides, padding, dilation);
    return this._sliding;
  }

  /** The kernel of each group. @returns {Parameter[]} */
  get _groups() {
    this._by_group ??= by_group(this.kernel, this.held.groups);
    return this._by_group;
  }

  get roundings() {
    return product(this.kernel.shape.slice(0, -1));
  }

  get roundings_back() {
    const [c_out] = this.kernel.shape.slice(-1);
    return (product(this.kernel.shape.slice(0, -2)) * c_out) / this.held.groups;
  }
}

/** Convolution of each channel by its own kernels; kernel (r1, r2, c_in, multiplier). */
export class DepthwiseConv extends Kernel {
  static fields = ["kernel", "strides", "padding", "dilation", "input_shape"];
  /** @type {Sliding | undefined} */ _sliding;

  push(pattern, x) {
    const [channels, multiplier] = this.kernel.shape.slice(2);
    const { starts, taps, origins } = this.sliding.forward;
    const kernel = this.kernel.data, width = channels * multiplier;
    const out = like(x, this.size), sum = new Float64Array(width);
    for (let target = 0; target + 1 < starts.length; target++) {
      sum.fill(0);
      for (let m = starts[target]; m < starts[target + 1]; m++) {
        const from = origins[m] * channels, row = taps[m] * width;
        for (let i = 0, o = 0; i < channels; i++) {
          for (let j = 0; j < multiplier; j++, o++) sum[o] += x[from + i] * kernel[row + o];
        }
      }
      out.set(sum, target * width);
    }
    return out;
  }

  pull(pattern, g) {
    const [channels, multiplier] = this.kernel.shape.slice(2);
    const { starts, taps, origins } = this.sliding.backward;
    const kernel = this.kernel.data, width = channels * multiplier;
    const out = like(g, product(this.held.input_shape)), sum = new Float64Array(channels);
    for (let target = 0; target + 1 < starts.length; target++) {
      sum.fill(0);
      for (let m = starts[target]; m < starts[target + 1]; m++) {
        const from = origins[m] * width, row = taps[m] * width;
        for (let i = 0, o = 0; i < channels; i++) {
          for (let j = 0; j < multiplier; j++, o++) sum[i] += g[from + o] * kernel[row + o];
        }
      }
      out.set(sum, target * channels);
    }
    return [out];
  }

  get sliding() {
    const { input_shape, strides, padding, dilation } = this.held;
    this._sliding ??= Sliding.of(input_shape.slice(0, -1), this.kernel.shape.slice(0, 2), strides, padding, dilation);
    return this._sliding;
  }

  get roundings() {
    return product(this.kernel.shape.slice(0, 2));
  }

  get roundings_back() {
    return this.roundings * this.kernel.shape[3];
  }
}

/** Transposed convolution: the adjoint of a `Conv`; kernel (*window, c_out, c_in). */
export class ConvTranspose extends Kernel {
  static fields = ["kernel", "strides", "padding", "dilation", "output_shape"];
  /** The kernel turned, made once. @type {Float64Array | undefined} */ _turned;
  /** @type {Sliding | undefined} */ _sliding;

  push(pattern, x) {
    const [c_out, c_in] = this.kernel.shape.slice(-2);
    this._turned ??= turned(this.kernel);
    return product_of(x, this.sliding.backward, this._turned, c_in, c_out, this.size);
  }

  pull(pattern, g) {
    const [c_out, c_in] = this.kernel.shape.slice(-2);
    return [product_of(g, this.sliding.forward, this.kernel.data, c_out, c_in, product(this.shapes[0]))];
  }

  /** Of the convolution whose adjoint this is: from its output to its input. */
  get sliding() {
    const { output_shape, strides, padding, dilation } = this.held;
    this._sliding ??= Sliding.of(output_shape.slice(0, -1), this.kernel.shape.slice(0, -2), strides, padding, dilation);
    return this._sliding;
  }

  get roundings() {
    return product(this.kernel.shape) / /** @type {number} */ (this.kernel.shape.at(-2));
  }

  get roundings_back() {
    return product(this.kernel.shape.slice(0, -1));
  }
}

/**
 * `weigh` over all channels.
 * @param {Tensor} x
 * @param {Meetings} meetings
 * @param {Float64Array} matrix  (taps, rows, width)
 * @param {number} rows
 * @param {number} width
 * @param {number} size  of the result
 */
function product_of(x, meetings, matrix, rows, width, size) {
  const out = like(x, size);
  weigh(x, meetings, matrix, out, { channels: rows, first: 0, rows, width, out_channels: width, out_first: 0 });
  return out;
}

/** The kernel with its last two axes exchanged. @param {Parameter} kernel */
function turned({ data, shape }) {
  const axes = [product(shape.slice(0, -2)), shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  return /** @type {Float64Array} */ (gather(data, permuted(axes, [0, 2, 1])));
}

/** The kernel's parts along its last axis. @param {Parameter} kernel @param {number} groups @returns {Parameter[]} */
function by_group({ data, shape }, groups) {
  if (groups === 1) return [{ data, shape }];
  const columns = shape.at(-1) ?? 1, width = columns / groups;
  return Array.from({ length: groups }, (_, group) => ({
    data: data.filter((_, i) => Math.floor((i % columns) / width) === group),
    shape: [...shape.slice(0, -1), width],
  }));
}

// ------------------------------------------------------------------ sums and scalings

/** Weighted sum of inputs that are broadcast to one shape: addition, subtraction, average, bias. */
export class Sum extends Primitive {
  static fields = ["coefficients", "shapes"];

  push(pattern, ...xs) {
    const out = like(xs[0], this.size);
    xs.forEach((x, n) => {
      const coefficient = this.held.coefficients[n];
      if (x.length === out.length) {
        for (let i = 0; i < out.length; i++) out[i] += coefficient * x[i];
      } else {
        const index = broadcast(this.shapes[n], this.shape);
        for (let i = 0; i < out.length; i++) out[i] += coefficient * x[index[i]];
      }
    });
    return out;
  }

  pull(pattern, g) {
    return this.shapes.map((shape, n) => {
      const coefficient = this.held.coefficients[n];
      const weighed = coefficient === 1 ? g : g.map((entry) => coefficient * entry);
      const size = product(shape);
      return size === this.size ? weighed : scatter(weighed, broadcast(shape, this.shape), size);
    });
  }

  absolute() {
    return this.with_fields((field, name) => (name === "coefficients" ? field.map(Math.abs) : field));
  }

  get roundings() {
    return this.shapes.length;
  }

  get roundings_back() {
    return Math.floor(this.size / Math.min(...this.shapes.map(product)));
  }
}

/** Multiplication by constants that are broadcast: batch normalisation left alone, rescaling. */
export class Scale extends Primitive {
  static fields = ["factor"];

  push(pattern, x) {
    const { data, shape } = this.held.factor, index = broadcast(shape.slice(-this.shape.length), this.shape);
    return x.map((entry, i) => entry * data[index[i]]);
  }

  pull(pattern, g) {
    return [this.push(null, g)];
  }

  get roundings() {
    return 1;
  }
}

/** A constant matrix (size_in, size_out) along one axis (counted with the row axis): upsampling. */
export class AlongAxis extends Primitive {
  static fields = ["matrix", "axis"];
  /** The matrix turned, made once. @type {Float64Array | undefined} */ _turned;

  push(pattern, x) {
    const { data, shape } = this.held.matrix;
    return along_axis(x, this.shapes[0], data, shape[1], this.held.axis - 1);
  }

  pull(pattern, g) {
    this._turned ??= turned(this.held.matrix);
    return [along_axis(g, this.shape, this._turned, this.held.matrix.shape[0], this.held.axis - 1)];
  }

  get roundings() {
    const { data, shape } = this.held.matrix, counts = new Array(shape[1]).fill(0);
    data.forEach((entry, i) => (counts[i % shape[1]] += Number(entry !== 0)));
    return Math.max(...counts);
  }

  get roundings_back() {
    const { data, shape } = this.held.matrix, counts = new Array(shape[0]).fill(0);
    data.forEach((entry, i) => (counts[Math.floor(i / shape[1])] += Number(entry !== 0)));
    return Math.max(...counts);
  }
}

/**
 * Contract an axis of x with the first axis of a matrix, the result in the same place.
 * @param {Tensor} x
 * @param {Shape} shape
 * @param {Float64Array} matrix
 * @param {number} columns
 * @param {number} axis
 */
function along_axis(x, shape, matrix, columns, axis) {
  const before = product(shape.slice(0, axis)), rows = shape[axis], after = product(shape.slice(axis + 1));
  const out = like(x, before * columns * after), sum = new Float64Array(after);
  for (let b = 0; b < before; b++) {
    for (let column = 0; column < columns; column++) {
      sum.fill(0);
      for (let row = 0; row < rows; row++) {
        const weight = matrix[row * columns + column], from = (b * rows + row) * after;
        if (weight !== 0) for (let a = 0; a < after; a++) sum[a] += weight * x[from + a];
      }
      out.set(sum, (b * columns + column) * after);
    }
  }
  return out;
}

/** Average pooling; padded entries do not count, as TensorFlow has it. */
export class AveragePool extends Primitive {
  static fields = ["window", "strides", "padding", "input_shape"];

  push(pattern, x) {
    const { starts, origins } = this.sliding.forward, channels = this.shape[2];
    const out = like(x, this.size), sum = new Float64Array(channels);
    for (let target = 0; target + 1 < starts.length; target++) {
      const count = starts[target + 1] - starts[target];
      sum.fill(0);
      for (let m = starts[target]; m < starts[target + 1]; m++) {
        const from = origins[m] * channels;
        for (let i = 0; i < channels; i++) sum[i] += x[from + i];
      }
      for (let i = 0; i < channels; i++) out[target * channels + i] = sum[i] / count;
    }
    return out;
  }

  pull(pattern, g) {
    const { starts, origins } = this.sliding.forward, channels = this.shape[2];
    const sums = new Float64Array(product(this.held.input_shape));
    for (let target = 0; target + 1 < starts.length; target++) {
      const count = starts[target + 1] - starts[target];
      for (let m = starts[target]; m < starts[target + 1]; m++) {
        const to = origins[m] * channels;
        for (let i = 0; i < channels; i++) sums[to + i] += g[target * channels + i] / count;
      }
    }
    return [like(g, sums)];
  }

  get sliding() {
    const { input_shape, window, strides, padding } = this.held;
    return Sliding.of(input_shape.slice(0, 2), window, strides, padding);
  }

  get roundings() {
    return product(this.held.window) + 1;
  }
}

/** Mean over some axes (counted without the row axis): global average pooling. */
export class Mean extends Primitive {
  static fields = ["axes", "input_shape"];

  push(pattern, x) {
    return scatter(x, this._index, this.size).map((sum) => sum / this._count);
  }

  pull(pattern, g) {
    return [gather(g.map((entry) => entry / this._count), this._index)];
  }

  /** Which mean each input counts towards. */
  get _index() {
    const { axes, input_shape } = this.held;
    return broadcast(input_shape.map((size, axis) => (axes.includes(axis) ? 1 : size)), input_shape);
  }

  get _count() {
    return product(this.held.input_shape) / this.size;
  }

  get roundings() {
    return this._count + 1;
  }
}

// ------------------------------------------------------------------ moving entries about

/** Another shape for the same entries: flatten, reshape. */
export class Reshape extends Primitive {
  static fields = ["input_shape", "output_shape"];

  push(pattern, x) {
    return x;
  }

  pull(pattern, g) {
    return [g];
  }
}

/** A primitive that moves entries to other places: each output is one input, or zero. */
class Move extends Primitive {
  /** Whether `_index` says which input each output is; else which output each input is. */
  get _reads() {
    return true;
  }

  /** @returns {Int32Array} */
  get _index() {
    throw new Error(`${this.constructor.name} has no index.`);
  }

  push(pattern, x) {
    return this._reads ? gather(x, this._index) : scatter(x, this._index, this.size);
  }

  pull(pattern, g) {
    return [this._reads ? scatter(g, this._index, product(this.shapes[0])) : gather(g, this._index)];
  }
}

/** Axes in another order (counted without the row axis). */
export class Permute extends Move {
  static fields = ["order"];

  get _index() {
    return permuted(this.shapes[0], this.held.order);
  }
}

/** Zeros around the entries; one (before, after) pair for each axis. */
export class Pad extends Move {
  static fields = ["margins"];

  get _reads() {
    return false;
  }

  get _index() {
    return within(this.shape, this.held.margins);
  }
}

/** Entries cut off; one (before, after) pair for each axis. */
export class Crop extends Move {
  static fields = ["margins"];

  get _index() {
    return within(this.shapes[0], this.held.margins);
  }
}

/** Inputs side by side along one axis (counted without the row axis). */
export class Concatenate extends Primitive {
  static fields = ["axis", "sizes"];

  push(pattern, ...xs) {
    const out = like(xs[0], this.size);
    this._pieces((n, from, to, length) => out.set(xs[n].subarray(from, from + length), to));
    return out;
  }

  pull(pattern, g) {
    const parts = this.shapes.map((shape) => like(g, product(shape)));
    this._pieces((n, to, from, length) => parts[n].set(g.subarray(from, from + length), to));
    return parts;
  }

  /**
   * The contiguous pieces: of which input, where in it, where in the output, how long.
   * @param {(n: number, inside: number, outside: number, length: number) => void} visit
   */
  _pieces(visit) {
    const { axis, sizes } = this.held;
    const before = product(this.shape.slice(0, axis)), after = product(this.shape.slice(axis + 1));
    let outside = 0;
    for (let b = 0; b < before; b++) {
      sizes.forEach((size, n) => {
        visit(n, b * size * after, outside, size * after);
        outside += size * after;
      });
    }
  }
}

// ------------------------------------------------------------------ what the pattern decides

/**
 * A piecewise-linear scalar function, jointly homogeneous in (h, constants).
 *
 * Piece p of P pieces is `slopes[p] * h + sum_m intercepts[p][m] * constants[m]`, and it begins above
 * the sum of `breakpoints[p - 1][m] * constants[m]` (zero without constants). The constants (the 6 of
 * ReLU6, the -1 and 1 of hard tanh) are inputs like h itself: entries of x_b.
 *
 * The pattern is the number of the piece at each entry.
 */
export class Activation extends Primitive {
  static fields = ["slopes", "breakpoints", "intercepts"];

  value(h, ...constants) {
    return this.push(this.freeze(h, ...constants), h, ...constants);
  }

  freeze(h, ...constants) {
    const pieces = new Uint8Array(h.length);
    for (const row of this.held.breakpoints) {
      const edge = inner_of(row, constants);
      for (let i = 0; i < h.length; i++) pieces[i] += Number(h[i] > edge);
    }
    return pieces;
  }

  push(pieces, h, ...constants) {
    const levels = this.held.intercepts.map((row) => inner_of(row, constants));
    const { data, index, stride } = this._slopes, out = like(h, this.size);
    for (let i = 0; i < out.length; i++) {
      const piece = pieces[i];
      out[i] = data[piece * stride + (index === null ? 0 : index[i])] * h[i] + levels[piece];
    }
    return out;
  }

  pull(pieces, g) {
    const { data, index, stride } = this._slopes, out = like(g, this.size);
    const sums = this.held.intercepts.map(() => 0); // of g over the entries of each piece
    for (let i = 0; i < out.length; i++) {
      const piece = pieces[i];
      out[i] = data[piece * stride + (index === null ? 0 : index[i])] * g[i];
      sums[piece] += g[i];
    }
    const constants = this.shapes.slice(1).map((_, m) => {
      return like(g, [this.held.intercepts.reduce((sum, row, piece) => sum + row[m] * sums[piece], 0)]);
    });
    return [out, ...constants];
  }

  /** Where the slope of entry i in piece p is: data[p * stride + index[i]], or data[p]. */
  get _slopes() {
    const { data, shape } = this.held.slopes, own = shape.slice(1);
    return { data, stride: product(own), index: own.length ? broadcast(own, this.shape) : null };
  }

  /** Whether two neighbouring pieces differ where they meet, as those of a threshold do. */
  get jumps() {
    const { slopes, breakpoints, intercepts } = this.held;
    if (slopes.shape.length > 1) return false;
    return breakpoints.some((edge, p) =>
      edge.some(Boolean) && edge.some((at, m) => {
        const [left, right] = [(slopes.data[p + 1] - slopes.data[p]) * at, intercepts[p][m] - intercepts[p + 1][m]];
        return Math.abs(left - right) > 1e-8 + 1e-5 * Math.abs(right);
      }));
  }

  absolute() {
    const changed = /** @type {Activation} */ (super.absolute());
    return changed.with_fields((field, name) => (name === "intercepts" ? field.map((row) => row.map(Math.abs)) : field));
  }

  get roundings() {
    return 1 + this.held.intercepts[0].length;
  }

  get roundings_back() {
    return this.held.intercepts[0].length ? this.size : 1;
  }
}

/**
 * @param {number[]} weights
 * @param {Tensor[]} constants  one entry each
 */
function inner_of(weights, constants) {
  return weights.reduce((sum, weight, m) => sum + weight * constants[m][0], 0);
}

/** A primitive that picks entries of its input; the pattern says which: one for each output. */
class Choice extends Primitive {
  value(x) {
    return this.push(this.freeze(x), x);
  }

  push(chosen, x) {
    return gather(x, chosen);
  }

  pull(chosen, g) {
    return [scatter(g, chosen, product(this.held.input_shape))];
  }
}

/** Max-pooling: a one-hot kernel that the input chooses; the first of several equal entries. */
export class MaxPool extends Choice {
  static fields = ["window", "strides", "padding", "input_shape"];

  freeze(x) {
    const { starts, origins } = this.sliding.forward, channels = this.shape[2];
    const chosen = new Int32Array(this.size);
    for (let target = 0; target + 1 < starts.length; target++) {
      for (let i = 0; i < channels; i++) {
        let best = origins[starts[target]] * channels + i;
        for (let m = starts[target] + 1; m < starts[target + 1]; m++) {
          const at = origins[m] * channels + i;
          if (x[at] > x[best]) best = at;
        }
        chosen[target * channels + i] = best;
      }
    }
    return chosen;
  }

  get sliding() {
    const { input_shape, window, strides, padding } = this.held;
    return Sliding.of(input_shape.slice(0, 2), window, strides, padding);
  }

  get roundings_back() {
    return product(this.held.window) - 1;
  }
}

/** The largest entry of each channel: global max-pooling; input (*positions, c). */
export class GlobalMax extends Choice {
  static fields = ["input_shape"];

  freeze(x) {
    const channels = this.held.input_shape.at(-1);
    const chosen = Int32Array.from({ length: channels }, (_, i) => i);
    for (let at = channels; at < x.length; at++) {
      if (x[at] > x[chosen[at % channels]]) chosen[at % channels] = at;
    }
    return chosen;
  }
}

/** Entrywise maximum (sign = 1) or minimum (sign = -1) of several inputs of one shape. */
export class Extremum extends Primitive {
  static fields = ["sign"];

  value(...xs) {
    return this.push(this.freeze(...xs), ...xs);
  }

  /** Which input wins at each entry: the first of equal ones. */
  freeze(...xs) {
    const { sign } = this.held, winners = new Uint8Array(this.size);
    for (let i = 0; i < this.size; i++) {
      xs.forEach((x, n) => {
        if (sign * x[i] > sign * xs[winners[i]][i]) winners[i] = n;
      });
    }
    return winners;
  }

  push(winners, ...xs) {
    const out = like(xs[0], this.size);
    for (let i = 0; i < out.length; i++) out[i] = xs[winners[i]][i];
    return out;
  }

  pull(winners, g) {
    return this.shapes.map((_, n) => g.map((entry, i) => (winners[i] === n ? entry : 0)));
  }

  get roundings() {
    return 1;
  }
}

/** All primitives by the names that an export has for them. @type {Record<string, typeof Primitive>} */
export const KINDS = {
  Dense, Conv, DepthwiseConv, ConvTranspose,
  Sum, Scale, AlongAxis, AveragePool, Mean,
  Reshape, Permute, Pad, Crop, Concatenate,
  Activation, MaxPool, GlobalMax, Extremum,
};
