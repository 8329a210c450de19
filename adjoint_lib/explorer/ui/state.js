// @ts-check
/**
 * What the explorer shows, as text: the part of the address after "#".
 *
 *     net=vgg7&data=cifar10&image=3&layer=conv5&mode=RM2&unit=3,4,17
 *
 * A state has strings and numbers only; what is as at the start is left out.
 */

/** What is left out of an address when it is so. */
export const USUAL = {image: "0", against: "", k: 1 / 8, light: 1, dtype: "float32", show: "sum", paint: "", own: ""};

const KEYS = ["net", "data", "image", "layer", "mode", "unit", "against", "k", "light", "dtype", "show", "paint", "own"];
const NUMBERS = new Set(["k", "light"]);

/** The state as text. @param {Object} state @returns {string} */
export function written(state) {
  const said = KEYS.filter((key) => state[key] !== undefined && state[key] !== USUAL[key] && state[key] !== "");
  return said.map((key) => `${key}=${encodeURIComponent(state[key]).replaceAll("%2C", ",")}`).join("&");
}

/** What a text says of the state; what is not a state's is left out. @param {string} text */
export function read(text) {
  const found = {};
  for (const [key, value] of new URLSearchParams(text.replace(/^#/, ""))) {
    if (!KEYS.includes(key)) continue;
    if (!NUMBERS.has(key)) found[key] = value;
    else if (Number.isFinite(Number(value)) && Number(value) >= 0) found[key] = Number(value);
  }
  if (found.k === 0) delete found.k;
  return found;
}

/** Whether a text is a state's. */
export const is_state = (text) => /^#?net=/.test(text);
