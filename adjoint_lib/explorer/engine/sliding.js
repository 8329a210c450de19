// @ts-check
/**
 * Windows that slide over maps: what convolutions, their transposes and pooling have in common.
 *
 * Which entry of a map meets which entry of the output through which tap of the window depends on
 * sizes only. It is listed once, seen from the outputs (`forward`) and from the inputs (`backward`),
 * for maps of any number of dimensions. A convolution, its adjoint and a matrix product are then one
 * loop, `weigh`: each entry of the result is a sum of rows of a matrix.
 */

import { positions, product, steps_of } from "./arrays.js";

/** @typedef {import("./arrays.js").Tensor} Tensor */
/** @typedef {import("./arrays.js").Shape} Shape */

/**
 * For each target t, the entries `starts[t]` ... `starts[t + 1] - 1` of `taps` and `origins`: what it
 * reads, and through which tap of the window.
 * @typedef {{starts: Int32Array, taps: Int32Array, origins: Int32Array}} Meetings
 */

/**
 * [zeros before, size of the output] of TensorFlow's SAME and VALID padding.
 * @param {number} size
 * @param {number} taps
 * @param {number} stride
 * @param {string} kind
 */
export function padding_of(size, taps, stride, kind) {
  if (kind === "VALID") return [0, Math.floor((size - taps) / stride) + 1];
  const outputs = Math.ceil(size / stride);
  return [Math.floor(Math.max((outputs - 1) * stride + taps - size, 0) / 2), outputs];
}

/** A window's way over maps: who meets whom, and through which tap. */
export class Sliding {
  /**
   * @param {Shape} size  of the maps, without channels
   * @param {Shape} window
   * @param {Shape} strides
   * @param {string} padding  "SAME" or "VALID"
   * @param {Shape} dilation
   */
  constructor(size, window, strides, padding, dilation) {
    const axes = size.map((length, axis) => {
      const reach = (window[axis] - 1) * dilation[axis] + 1;
      const [before, outputs] = padding_of(length, reach, strides[axis], padding);
      return { length, before, outputs };
    });
    /** The axes of the maps: inputs and outputs along each, and zeros before. */
    this.axes = axes.map((axis, a) => ({ ...axis, taps: window[a], stride: strides[a], dilation: dilation[a] }));
    this.size = size;
    this.output_size = axes.map((axis) => axis.outputs);
    this.window = window;
    /** Seen from each output: which inputs it reads. */
    this.forward = this._forward();
    /** Seen from each input: which outputs read it. */
    this.backward = reversed(this.forward, product(size));
  }

  /** @type {Map<string, Sliding>} */
  static made = new Map();

  /**
   * The same, but made only once for the same numbers.
   * @param {Shape} size
   * @param {Shape} window
   * @param {Shape} strides
   * @param {string} padding
   * @param {Shape} [dilation]
   */
  static of(size, window, strides, padding, dilation = window.map(() => 1)) {
    const key = JSON.stringify([size, window, strides, padding, dilation]);
    const found = Sliding.made.get(key) ?? new Sliding(size, window, strides, padding, dilation);
    Sliding.made.set(key, found);
    return found;
  }

  /** @returns {Meetings} */
  _forward() {
    const outputs = product(this.output_size), taps = product(this.window);
    const starts = new Int32Array(outputs + 1);
    const tap = new Int32Array(outputs * taps), origins = new Int32Array(outputs * taps);
    const steps = steps_of(this.size);
    // The coordinates along one axis: that of output o at tap t is stride * o + dilation * t - before.
    const places = this.axes.map((axis, a) => ({
      outputs: positions(this.output_size, this.size.map((_, b) => (a === b ? axis.stride : 0)), -axis.before),
      taps: positions(this.window, this.size.map((_, b) => (a === b ? axis.dilation : 0))),
    }));
    let count = 0;
    for (let o = 0; o < outputs; o++) {
      for (let t = 0; t < taps; t++) {
        let origin = 0, inside = true;
        for (let a = 0; a < places.length; a++) {
          const place = places[a].outputs[o] + places[a].taps[t];
          inside = inside && place >= 0 && place < this.size[a];
          origin += place * steps[a];
        }
        if (!inside) continue;
        tap[count] = t;
        origins[count++] = origin;
      }
      starts[o + 1] = count;
    }
    return { starts, taps: tap.slice(0, count), origins: origins.slice(0, count) };
  }
}

/**
 * The same meetings seen from the other side.
 * @param {Meetings} meetings
 * @param {number} targets  how many there are on the other side
 * @returns {Meetings}
 */
function reversed({ starts, taps, origins }, targets) {
  const begins = new Int32Array(targets + 1);
  for (const origin of origins) begins[origin + 1]++;
  for (let t = 0; t < targets; t++) begins[t + 1] += begins[t];
  const next = begins.slice();
  const found = { starts: begins, taps: taps.slice(), origins: origins.slice() };
  for (let from = 0; from + 1 < starts.length; from++) {
    for (let m = starts[from]; m < starts[from + 1]; m++) {
      const at = next[origins[m]]++;
      found.taps[at] = taps[m];
      found.origins[at] = from;
    }
  }
  return found;
}

/**
 * Each target becomes a sum of rows of a matrix: over all that it reads and over their channels,
 *
 *     out[target, :] = sum_{origin, tap} sum_i x[origin, i] * matrix[tap, i, :]
 *
 * Zeros of x are skipped: after a ReLU half of the entries are zero, and of the cotangent of one unit
 * all but its window. What is left is added eight rows at a time, in double.
 * @param {Tensor} x  (origins, channels)
 * @param {Meetings} meetings
 * @param {Float64Array} matrix  (taps, rows, width)
 * @param {Tensor} out  (targets, out_channels)
 * @param {{channels: number, first: number, rows: number, width: number, out_channels: number, out_first: number}} part
 *     the channels read are first ... first + rows - 1 of x, those written out_first ... of out
 */
export function weigh(x, { starts, taps, origins }, matrix, out, part) {
  const { channels, first, rows, width, out_channels, out_first } = part;
  let most = 0;
  for (let t = 0; t + 1 < starts.length; t++) most = Math.max(most, starts[t + 1] - starts[t]);
  const weights = new Float64Array(most * rows), begins = new Int32Array(most * rows);
  const sum = new Float64Array(width);
  for (let target = 0; target + 1 < starts.length; target++) {
    let count = 0;
    for (let m = starts[target]; m < starts[target + 1]; m++) {
      const from = origins[m] * channels + first, row = taps[m] * rows;
      for (let i = 0; i < rows; i++) {
        const weight = x[from + i];
        if (weight !== 0) {
          weights[count] = weight;
          begins[count++] = (row + i) * width;
        }
      }
    }
    if (count === 0) continue; // out is zero already
    sum.fill(0);
    add_rows(sum, matrix, weights, begins, count);
    const to = target * out_channels + out_first;
    for (let o = 0; o < width; o++) out[to + o] = sum[o];
  }
}

/**
 * sum += the rows of the matrix that begin at `begins`, each times its weight.
 * @param {Float64Array} sum
 * @param {Float64Array} matrix
 * @param {Float64Array} weights
 * @param {Int32Array} begins
 * @param {number} count
 */
function add_rows(sum, matrix, weights, begins, count) {
  const width = sum.length;
  let n = 0;
  for (; n + 7 < count; n += 8) {
    const w0 = weights[n], w1 = weights[n + 1], w2 = weights[n + 2], w3 = weights[n + 3];
    const w4 = weights[n + 4], w5 = weights[n + 5], w6 = weights[n + 6], w7 = weights[n + 7];
    const b0 = begins[n], b1 = begins[n + 1], b2 = begins[n + 2], b3 = begins[n + 3];
    const b4 = begins[n + 4], b5 = begins[n + 5], b6 = begins[n + 6], b7 = begins[n + 7];
    for (let o = 0; o < width; o++) {
      sum[o] += (w0 * matrix[b0 + o] + w1 * matrix[b1 + o]) + (w2 * matrix[b2 + o] + w3 * matrix[b3 + o])
        + ((w4 * matrix[b4 + o] + w5 * matrix[b5 + o]) + (w6 * matrix[b6 + o] + w7 * matrix[b7 + o]));
    }
  }
  for (; n < count; n++) {
    const weight = weights[n], begin = begins[n];
    for (let o = 0; o < width; o++) sum[o] += weight * matrix[begin + o];
  }
}
