// @ts-check
/**
 * Colours of signed numbers: blue below zero, red above, and the page's own background at zero.
 * Both can be told apart by colour-blind readers.
 */

const RAMPS = {
  light: [[5, 48, 97], [67, 147, 195], [247, 247, 247], [214, 96, 77], [103, 0, 31]],
  dark: [[166, 219, 255], [44, 123, 182], [30, 33, 40], [204, 76, 50], [255, 202, 166]],
};

/** A table of 511 colours from -1 to 1. @param {"light"|"dark"} theme @returns {Uint8Array} */
export function ramp(theme) {
  const stops = RAMPS[theme];
  const table = new Uint8Array(511 * 3);
  for (let at = 0; at < 511; at++) {
    const place = (at / 510) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++)
      table[3 * at + c] = stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c]);
  }
  return table;
}

/** The colour of a value in a table. */
export const place_of = (value, scale) =>
  255 + Math.round(255 * Math.max(-1, Math.min(1, scale ? value / scale : 0)));

/** The ramp as a CSS gradient. */
export function gradient(theme) {
  const stops = RAMPS[theme].map((c) => `rgb(${c.join(" ")})`);
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

/** The largest absolute value. */
export function largest(...arrays) {
  let found = 0;
  for (const array of arrays) for (const v of array) if (Math.abs(v) > found) found = Math.abs(v);
  return found;
}
