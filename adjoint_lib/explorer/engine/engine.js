// @ts-check
/**
 * The engine as a page uses it: a Web Worker, and a promise for each request to it.
 *
 * The worker is made from a blob, so that a page opened from a file has one too. `worker.js` is the
 * other side, and says what passes between them.
 */

import { serve } from "./worker.js";

/**
 * How a request is cancelled, and who is told of its progress (0 ... 1).
 * @typedef {{signal?: AbortSignal, on_progress?: (share: number) => void}} Options
 */

/** A worker, and the networks loaded into it. */
export class Engine {
  /**
   * @param {Function} script  the function that the bundle defines; the worker runs its text
   */
  constructor(script) {
    this.port = port_to(script);
    this.count = 0;
    /** @type {Map<number, {resolve: Function, reject: Function, options: Options}>} */
    this.waiting = new Map();
    this.port.onmessage = (/** @type {any} */ { data }) => this._hear(data);
  }

  /**
   * Load an exported network under a name; returns its description.
   * @param {string} network
   * @param {string | ArrayBuffer} content  of the exported file, as base64 text or bytes
   * @returns {Promise<any>}
   */
  load(network, content) {
    return this._ask("load", { network, content });
  }

  /** c of all units, and any other nodes' values. @param {object} request @param {Options} [options] @returns {Promise<any>} */
  value(request, options) {
    return this._ask("value", request, options);
  }

  /** A unit's hypersurface and what it says. @param {object} request @param {Options} [options] @returns {Promise<any>} */
  unit(request, options) {
    return this._ask("unit", request, options);
  }

  /** Every unit of a layer by its own H. @param {object} request @param {Options} [options] @returns {Promise<any>} */
  check(request, options) {
    return this._ask("check", request, options);
  }

  /** End the worker; requests that still wait are rejected. */
  close() {
    for (const { reject } of this.waiting.values()) reject(new DOMException("The engine was closed.", "AbortError"));
    this.waiting.clear();
    (this.port.terminate ?? this.port.close).call(this.port);
  }

  /**
   * @param {string} what
   * @param {object} request
   * @param {Options} options
   */
  _ask(what, request, options = {}) {
    const id = this.count++, { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      this.waiting.set(id, { resolve, reject, options });
      signal?.addEventListener("abort", () => {
        if (!this.waiting.delete(id)) return;
        this.port.postMessage({ id, cancel: true });
        reject(signal.reason);
      });
      this.port.postMessage({ ...request, id, what });
    });
  }

  /** @param {any} message */
  _hear({ id, share, result, error }) {
    const asked = this.waiting.get(id);
    if (!asked) return; // cancelled
    if (share !== undefined) return asked.options.on_progress?.(share);
    this.waiting.delete(id);
    if (error) asked.reject(Object.assign(new Error(error.message), { name: error.name }));
    else asked.resolve(result);
  }
}

/** A port to a worker; where the browser makes none from a blob, to the same code in the page. @param {Function} script @returns {any} */
function port_to(script) {
  try {
    const blob = new Blob([`(${script})().serve(self);`], { type: "text/javascript" });
    const url = URL.createObjectURL(blob);
    const worker = new Worker(url);
    URL.revokeObjectURL(url);
    return worker;
  } catch {
    const { port1, port2 } = new MessageChannel();
    serve(port2);
    return port1;
  }
}
