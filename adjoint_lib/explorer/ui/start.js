// @ts-check
/** Starts every explorer of a page, and `window.adjoint`. */

import {Explorer} from "./explorer.js";
import {Sources} from "./sources.js";
import {read} from "./state.js";

/**
 * @param {Object} config what there is to explore; `adjoint_lib/explorer/page.py` writes and explains it
 * @param {Function} engine the function `adjoint_engine`
 * @param {{html: string, css: string}} looks
 */
export function start(config, engine, looks) {
  const src = /** @type {HTMLScriptElement | null} */ (document.currentScript)?.src;
  const folder = src ? new URL(".", src).href : "";
  const sources = new Sources(config, engine, folder);
  /** @type {any} */ (window).adjoint = {
    unit: (what) => sources.unit(what),
    networks: config.networks.map(({key}) => key),
    datasets: config.datasets.map(({key}) => key),
  };
  const begin = () => {
    const hosts = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-adjoint-explorer]:not([data-begun])"));
    for (const host of hosts) {
      host.dataset.begun = "";
      const explorer = new Explorer(host, sources, looks, {...config.start, ...read(host.dataset.adjointExplorer)});
      when_seen(host, () => explorer.begin());
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
}

/** Call back once the element is on the screen, or nearly. */
function when_seen(element, callback) {
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    callback();
  }, {rootMargin: "300px"});
  seen.observe(element);
}
