// @ts-check
/**
 * The computing side of a page: answers requests that come through a port, in order.
 *
 * `engine.js` is the other side. A request is {id, what, ...}; the answer to it is {id, result} or
 * {id, error}, after any number of {id, share}. {id, cancel: true} cancels a request. Between two
 * nodes of the network the worker stops for a moment, to hear of that.
 */

import { product } from "./arrays.js";
import { K } from "./equivalent_net.js";
import { InputError } from "./errors.js";
import { bytes_of, unpacked } from "./exported.js";
import { mode_of, unit_axes } from "./hypersurface.js";

/** @typedef {import("./equivalent_net.js").EquivalentNet} EquivalentNet */
/** @typedef {import("./equivalent_net.js").FrozenNet} FrozenNet */

const STRETCH = 20; // milliseconds between two stops
const KEPT = 2; // frozen networks: at an image, and at another that it is compared with

/** A request was cancelled. */
class Cancelled extends Error {
  name = "AbortError";
}

/** Answer the requests that come through a port, until it is closed. @param {any} port */
export function serve(port) {
  const library = new Library();
  /** @type {Set<number>} */
  const cancelled = new Set();
  let turn = Promise.resolve();
  port.onmessage = (/** @type {any} */ { data: request }) => {
    if (request.cancel) cancelled.add(request.id);
    else turn = turn.then(() => answer(request));
  };

  /** @param {any} request */
  async function answer(request) {
    const { id } = request;
    try {
      const result = await computed(ANSWERS[request.what](library, request), request);
      port.postMessage({ id, result });
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error);
      port.postMessage({ id, error: { name, message } });
    }
    cancelled.delete(id);
  }

  /** @param {Generator<number, any>} steps @param {any} request */
  async function computed(steps, { id }) {
    let last = Date.now();
    await pause(); // a request that was cancelled while it waited never begins
    for (;;) {
      if (cancelled.has(id)) throw new Cancelled("cancelled");
      const { done, value } = steps.next();
      if (done) return value;
      if (Date.now() - last > STRETCH) {
        port.postMessage({ id, share: value });
        await pause();
        last = Date.now();
      }
    }
  }
}

/** The networks that were loaded, in either dtype, and the last images that each was frozen at. */
class Library {
  constructor() {
    /** @type {Map<string, Uint8Array>} */
    this.files = new Map();
    /** @type {Map<string, EquivalentNet>} */
    this.networks = new Map();
    /** The latest first. @type {Map<string, {at: number, frozen: FrozenNet}[]>} */
    this.frozen = new Map();
  }

  /** @param {string} name @param {string | ArrayBuffer} content */
  add(name, content) {
    this.files.set(name, typeof content === "string" ? bytes_of(content) : new Uint8Array(content));
    for (const dtype of ["float32", "float64"]) {
      this.networks.delete(`${name} ${dtype}`);
      this.frozen.delete(`${name} ${dtype}`);
    }
  }

  /** @param {{network: string, dtype?: "float32" | "float64"}} request */
  network({ network, dtype = "float32" }) {
    const key = `${network} ${dtype}`, file = this.files.get(network);
    if (!file) throw new InputError(`expected a network that was loaded (${[...this.files.keys()].join(", ")}), got ${JSON.stringify(network)}.`);
    const found = this.networks.get(key) ?? unpacked(file, dtype);
    this.networks.set(key, found);
    return found;
  }

  /** The network frozen at the request's image and k; as it was, if it is one of the last. @param {any} request */
  *freezing(request) {
    const net = this.network(request), name = `${request.network} ${net.dtype}`;
    const image = net.check_image(request.image);
    const at = net.pattern_at(request.k ?? K), kept = this.frozen.get(name) ?? [];
    const known = kept.find((one) => one.at === at && one.frozen.image.every((entry, i) => entry === image[i]));
    const frozen = known?.frozen ?? (yield* net.freezing(image, request.k));
    this.frozen.set(name, [{ at, frozen }, ...kept.filter((one) => one !== known)].slice(0, KEPT));
    return frozen;
  }
}

/** What can be asked for. @type {Record<string, (library: Library, request: any) => Generator<number, any>>} */
const ANSWERS = {
  *load(library, { network, content }) {
    library.add(network, content);
    const { name, digest, input_shape, d_in, x_b, outputs, sources, layers, nodes } =
      /** @type {any} */ (library.network({ network }));
    const described = nodes.map(({ name, shape, inputs, primitive, source }, number) =>
      ({ number, name, shape, inputs, kind: primitive ? primitive.constructor.name : source.values ? "bias" : "image" }));
    return { name, digest, input_shape, d_in, x_b, outputs, sources, layers, nodes: described };
  },

  *value(library, request) {
    const net = library.network(request), k = request.k ?? 1;
    const values = k === 1
      ? (yield* library.freezing(request)).values
      : yield* net.evaluate(net.check_image(request.image), k);
    const of = (/** @type {number} */ number) => values[number];
    return {
      values: Object.fromEntries(net.layers.map(({ name, number }) => [name, of(number)])),
      outputs: net.outputs.map(of),
      nodes: Object.fromEntries((request.nodes ?? []).map((/** @type {number} */ number) => [number, of(number)])),
    };
  },

  *unit(library, request) {
    const frozen = yield* library.freezing(request);
    const { sources, contributions, ...unit } =
      yield* frozen.hypersurface_steps(request.layer, request.mode, request.index, request.against);
    return { ...unit, contributions: by_name(sources, contributions) };
  },

  *check(library, request) {
    const frozen = yield* library.freezing(request);
    const layer = frozen.net.layer(request.layer), mode = mode_of(layer, request.mode);
    const axes = unit_axes(mode, layer), errors = new Float64Array(product(axes));
    let bound = 0;
    for (let unit = 0; unit < errors.length; unit++) {
      const found = yield* shared(frozen.hypersurface_steps(layer.name, mode.name, place(unit, axes)), unit, errors.length);
      const { value, network_value, scale, roundoff } = found;
      errors[unit] = scale === 0 ? 0 : Math.abs(value - network_value) / (roundoff * scale);
      bound = found.bound;
    }
    return { errors, largest: errors.reduce((most, error) => Math.max(most, error), 0), bound };
  },
};

/** A part of a longer computation: the n-th of so many. @template T @param {Generator<number, T>} steps @param {number} n @param {number} count */
function* shared(steps, n, count) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return /** @type {T} */ (value);
    yield (n + /** @type {number} */ (value)) / count;
  }
}

/** The index tuple of an entry. @param {number} entry @param {number[]} axes */
function place(entry, axes) {
  const index = [];
  for (const size of [...axes].reverse()) {
    index.unshift(entry % size);
    entry = Math.floor(entry / size);
  }
  return index;
}

/** Contributions by the names of their sources; a name that comes again gets its number: "b#2". @param {string[]} names @param {number[]} numbers */
export function by_name(names, numbers) {
  /** @type {Record<string, number>} */
  const found = {};
  names.forEach((name, n) => {
    const uses = names.slice(0, n).filter((other) => other === name).length;
    found[uses ? `${name}#${uses + 1}` : name] = numbers[n];
  });
  return found;
}

/** Let messages in. A message to oneself comes sooner than a timer. @returns {Promise<void>} */
function pause() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
