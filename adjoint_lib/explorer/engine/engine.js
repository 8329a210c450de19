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
    this.count = 0;
    /** @type {Map<number, {message: object, resolve: Function, reject: Function, options: Options}>} */
    this.waiting = new Map();
    this.heard = false; // anything from the worker
    this._connect(worker_of(script) ?? port_in_page());
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
    this._reject_all("AbortError", "the engine was closed.");
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
      const message = { ...request, id, what };
      this.waiting.set(id, { message, resolve, reject, options });
      signal?.addEventListener("abort", () => {
        if (!this.waiting.delete(id)) return;
        this.port.postMessage({ id, cancel: true });
        reject(signal.reason);
      });
      this.port.postMessage(message);
    });
  }

  /** @param {any} message */
  _hear({ id, share, result, error }) {
    this.heard = true;
    const asked = this.waiting.get(id);
    if (!asked) return; // cancelled
    if (share !== undefined) return asked.options.on_progress?.(share);
    this.waiting.delete(id);
    if (error) asked.reject(named(error.name, error.message));
    else asked.resolve(result);
  }

  /** @param {any} port */
  _connect(port) {
    this.port = port;
    port.onmessage = (/** @type {any} */ { data }) => this._hear(data);
    port.onerror = (/** @type {any} */ { message }) => this._fail(message);
  }

  /** A worker that was never heard may be forbidden here: the page does it. One that was, broke. @param {string} reason */
  _fail(reason) {
    if (this.heard) return this._reject_all("Error", `the worker broke: ${reason}. Load the page again.`);
    this._connect(port_in_page());
    for (const { message } of this.waiting.values()) this.port.postMessage(message);
  }

  /** @param {string} name @param {string} message */
  _reject_all(name, message) {
    for (const { reject } of this.waiting.values()) reject(named(name, message));
    this.waiting.clear();
  }
}

/** @param {string} name @param {string} message */
function named(name, message) {
  return Object.assign(new Error(message), { name });
}

/** A worker that runs the script, made from a blob; null where there can be none. @param {Function} script @returns {any} */
function worker_of(script) {
  try {
    const blob = new Blob([`(${script})().serve(self);`], { type: "text/javascript" });
    const url = URL.createObjectURL(blob);
    return new Worker(url); // the url stays: a worker is fetched later
  } catch {
    return null;
  }
}

/** A port to the same code in the page itself; it pauses between nodes. */
function port_in_page() {
  const { port1, port2 } = new MessageChannel();
  serve(port2);
  return port1;
}
