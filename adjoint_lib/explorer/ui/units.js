// @ts-check
/** The units of a layer: what their index means, in each mode. */

/** The axes of a mode's index, by name. @param {{shape: number[]}} layer @param {string} mode */
export function axes(layer, mode) {
  const names = ["z", "y", "x"].slice(4 - layer.shape.length);
  const places = mode === "RM2" || mode === "RM4" ? names : [];
  const channels = mode === "RM3" || mode === "RM4" ? ["j"] : [];
  return mode === "RM0" ? ["i"] : [...places, ...channels, "i"];
}

/** How long each axis is. */
export function sizes(layer, mode) {
  const names = ["z", "y", "x"].slice(4 - layer.shape.length);
  return axes(layer, mode).map((axis) => {
    if (axis === "i") return layer.shape[layer.shape.length - 1];
    return axis === "j" ? layer.channels : layer.shape[names.indexOf(axis)];
  });
}

/** The index that a text says, within range; missing entries are in the middle. */
export function index_of(text, layer, mode) {
  const given = (text || "").split(",").map((part) => parseInt(part, 10));
  const all = sizes(layer, mode), names = axes(layer, mode);
  if (given.length !== all.length || given.some(Number.isNaN))
    return all.map((size, at) => ("ij".includes(names[at]) ? 0 : Math.floor(size / 2)));
  return all.map((size, at) => Math.max(0, Math.min(size - 1, given[at])));
}

/** The index in another mode (or layer) that is nearest to this one. */
export function moved(index, layer, mode, new_layer, new_mode) {
  const old_names = axes(layer, mode), old_sizes = sizes(layer, mode), new_sizes = sizes(new_layer, new_mode);
  return axes(new_layer, new_mode).map((axis, at) => {
    const from = old_names.indexOf(axis), size = new_sizes[at];
    if (from < 0) return "ij".includes(axis) ? 0 : Math.floor(size / 2);
    if ("ij".includes(axis)) return Math.min(index[from], size - 1);
    return Math.min(size - 1, Math.floor(((index[from] + 0.5) * size) / old_sizes[from]));
  });
}

/** A unit in words. */
export function in_words(layer, mode, index, names) {
  const words = {j: "in-channel j", i: layer.shape.length === 1 ? "unit" : "map"};
  const parts = axes(layer, mode).map((axis, at) => `${words[axis] ?? axis} ${index[at]}`);
  const label = layer.shape.length === 1 && names ? ` (${names[index[0]]})` : "";
  return parts.join(", ") + label;
}
