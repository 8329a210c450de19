// @ts-check
/** All feature maps of a layer, and one of them large: where a unit is chosen. */

import {gradient, largest} from "./colours.js";
import {across_for, channel, draw_maps, draw_signed, zoom_of_maps} from "./pictures.js";
import {set_box} from "./image_view.js";
import {axes, sizes} from "./units.js";
import {colour_scale, number} from "./words.js";

const ARROWS = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};

export class MapsView {
  constructor(explorer) {
    this.explorer = explorer;
    this.parts = explorer.parts;
  }

  listen() {
    const {parts, explorer} = this;
    parts.layer.addEventListener("change", () => explorer.move({layer: parts.layer.value}));
    parts.mode.addEventListener("change", () => explorer.move({mode: parts.mode.value}));
    for (const holder of [parts.maps, parts.one]) {
      const overview = holder === parts.maps;
      const under = (event) => (this.layer_is_shown ? (overview ? this.at_maps(event) : this.at_one(event)) : null);
      holder.addEventListener("click", (event) => {
        const place = under(event);
        if (place) this.go(place);
      });
      holder.addEventListener("pointermove", (event) => this.point(under(event)));
      holder.addEventListener("pointerleave", () => this.point(null));
      holder.addEventListener("keydown", (event) => this.keyed(event, overview));
    }
    this.point(null);
  }

  /** Whether there are values of the layer that the state names. */
  get layer_is_shown() {
    const {maps, layer} = this.explorer;
    return Boolean(maps && layer && layer.name in maps.values);
  }

  /** Rows and columns of a map of the layer, and how many maps it has. */
  get frame() {
    const places = this.explorer.layer.shape.slice(0, -1);
    const columns = places.length ? places[places.length - 1] : 1;
    return {rows: places.slice(0, -1).reduce((a, b) => a * b, 1), columns, channels: this.explorer.layer.shape.at(-1)};
  }

  /** The unit as row, column and map; no row and column where the mode adds up all positions. */
  get place() {
    const {explorer} = this, {index, layer, state} = explorer;
    const names = axes(layer, state.mode), all = sizes(layer, state.mode);
    /** @type {{map: number, row?: number, column?: number}} */
    const found = {map: index[index.length - 1]};
    if (!names.includes("x")) return found;
    const upper = names.flatMap((name, at) => ("zy".includes(name) ? [[index[at], all[at]]] : []));
    return {...found, row: upper.reduce((sum, [i, size]) => sum * size + i, 0), column: index[names.indexOf("x")]};
  }

  /** Go to another map, or row and column of it. @param {{map?: number, row?: number, column?: number}} to */
  go({map, row, column}) {
    const {explorer, frame} = this, {layer, state} = explorer;
    const place = {...this.place, ...(map === undefined ? {} : {map}), ...(row === undefined ? {} : {row, column})};
    const within = (value, size) => Math.max(0, Math.min(size - 1, value));
    let upper = within(place.row ?? 0, frame.rows);
    const names = axes(layer, state.mode), all = sizes(layer, state.mode), index = explorer.index;
    for (let at = names.length - 1; at >= 0; at--) {
      if (names[at] === "i") index[at] = within(place.map, frame.channels);
      if (names[at] === "x") index[at] = within(place.column, frame.columns);
      if ("zy".includes(names[at])) {
        index[at] = upper % all[at];
        upper = Math.floor(upper / all[at]);
      }
    }
    explorer.update({unit: index.join(","), against: ""});
  }

  /** What is under the pointer where all maps are. */
  at_maps(event) {
    const {rows, columns, channels} = this.frame, canvas = this.parts["maps-canvas"];
    const box = canvas.getBoundingClientRect();
    const left = ((event.clientX - box.left) / box.width) * canvas.width - 1;
    const top = ((event.clientY - box.top) / box.height) * canvas.height - 1;
    const zoom = zoom_of_maps(columns, rows), wide = columns * zoom + 1, high = rows * zoom + 1;
    const map = Math.floor(left / wide) + this.across * Math.floor(top / high);
    if (left < 0 || top < 0 || map >= channels) return null;
    const within = (place, size) => Math.min(Math.floor(place / zoom), size - 1);  // a gap is its neighbour's
    return {map, row: within(top % high, rows), column: within(left % wide, columns)};
  }

  /** What is under the pointer in the large map. */
  at_one(event) {
    const {rows, columns} = this.frame;
    const box = this.parts["one-canvas"].getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    if (row < 0 || column < 0 || row >= rows || column >= columns) return null;
    return {map: this.place.map, row, column};
  }

  /** Read out a unit of the maps, before it is chosen. */
  point(place) {
    const text = this.parts.pointed;
    text.textContent = "Point at a unit to read its value.";
    if (!place) return;
    const {explorer: {layer, maps}, frame: {columns, channels}} = this, {map, row, column} = place;
    const value = maps.values[layer.name][(row * columns + column) * channels + map];
    const name = layer.shape.length > 1 ? `Map ${map}, (${row}, ${column})` : `Unit ${map}`;
    text.textContent = `${name}: ${number(value, 4)}.`;
  }

  keyed(event, overview) {
    if (!this.layer_is_shown) return;
    const {map, row, column} = this.place, step = ARROWS[event.key];
    if (step && overview) this.go({map: map + step[1] + this.across * step[0]});
    else if (step && row !== undefined) this.go({row: row + step[0], column: column + step[1]});
    else if (event.key === "PageUp") this.go({map: map - 1});
    else if (event.key === "PageDown") this.go({map: map + 1});
    else return;
    event.preventDefault();
  }

  // ---------------------------------------------------------------- showing

  show_choices() {
    const {explorer, parts} = this, {layer, state, net} = explorer;
    if (this.net !== net) {
      parts.layer.replaceChildren(...net.layers.map(({name, shape}) => new Option(`${name} (${shape.join(" × ")})`, name)));
      this.net = net;
    }
    const said = {RM0: "RM0: a score", RM1: "RM1: a whole map", RM2: "RM2: one unit", RM3: "RM3: a map, one in-channel", RM4: "RM4: one unit, one in-channel"};
    if ([...parts.mode.options].map((o) => o.value).join() !== layer.modes.join())
      parts.mode.replaceChildren(...layer.modes.map((mode) => new Option(said[mode], mode)));
    parts.layer.value = state.layer;
    parts.mode.value = state.mode;
    this.show_index();
  }

  show_index() {
    const {explorer, parts} = this, {layer, state, index} = explorer;
    const names = axes(layer, state.mode), all = sizes(layer, state.mode), key = `${names}|${all}`;
    if (this.axes !== key) {
      this.axes = key;
      const inputs = names.map((name, at) => {
        const label = document.createElement("label"), input = document.createElement("input");
        Object.assign(input, {type: "number", min: 0, max: all[at] - 1, step: 1});
        input.addEventListener("change", () => {
          const next = explorer.index;
          next[at] = Number(input.value);
          explorer.update({unit: next.join(","), against: ""});
        });
        label.append({i: layer.shape.length > 1 ? "map" : "unit", j: "in-channel"}[name] ?? name, " ", input);
        return label;
      });
      parts.index.replaceChildren(...inputs);
    }
    [...parts.index.querySelectorAll("input")].forEach((input, at) => (input.value = index[at]));
  }

  show_maps() {
    const {explorer, parts, frame} = this, {layer, state, table} = explorer;
    const {rows, columns, channels} = frame, values = explorer.maps.values[layer.name];
    const narrow = parts.maps.getBoundingClientRect().width < 380;
    this.across = across_for(channels, columns, rows, narrow ? 1 : 1.5);
    const scale = largest(values), {map, row, column} = this.place;
    draw_maps(parts["maps-canvas"], values, {...frame, across: this.across, scale, table});
    colour_scale(parts["maps-scale"], gradient(explorer.theme), scale);
    const zoom = zoom_of_maps(columns, rows), wide = columns * zoom + 1, high = rows * zoom + 1;
    const left = 1 + (map % this.across) * wide, top = 1 + Math.floor(map / this.across) * high;
    const whole = [parts["maps-canvas"].height, parts["maps-canvas"].width];
    set_box(parts["maps-mark"], {top, bottom: top + high - 1, left, right: left + wide - 1}, ...whole);
    parts["maps-cross"].hidden = row === undefined;
    if (row !== undefined) {
      parts["maps-cross"].style.top = `${(100 * (top + (row + 0.5) * zoom)) / whole[0]}%`;
      parts["maps-cross"].style.left = `${(100 * (left + (column + 0.5) * zoom)) / whole[1]}%`;
    }
    const flat = rows * columns === 1;
    parts["maps-name"].textContent = flat
      ? `${layer.name}: ${channels} units. Click one.`
      : `${layer.name}: ${channels} maps of ${rows} × ${columns} units, before their biases. Click anywhere.`;
    parts.maps.setAttribute("aria-label", `${flat ? "Units" : "Feature maps"} of ${layer.name}, number ${map} chosen`);
    parts["one-row"].hidden = flat;
    if (flat) return;
    this.large = {values: channel(values, channels, map), how: {rows, columns, scale, table}};
    draw_signed(parts["one-canvas"], this.large.values, this.large.how);
    parts["one-mark"].hidden = row === undefined;
    if (row !== undefined) set_box(parts["one-mark"], {top: row, bottom: row + 1, left: column, right: column + 1}, rows, columns);
    const all_in = state.mode === "RM4" ? ", over all in-channels" : "";
    const c = values[(row * columns + column) * channels + map], own = this.own_bias(map);
    const after = own === null ? "" : `, with its own bias ${number(c + own, 4)}`;
    const at = row === undefined ? "all of it" : `(${row}, ${column}) is ${number(c, 4)}${all_in}${after}`;
    parts["one-name"].textContent = `Map ${map}: ${at}`;
    parts.one.setAttribute("aria-label", parts["one-name"].textContent);
  }

  /** The bias that is added to all units of a map, if there is one for each map. @param {number} map */
  own_bias(map) {
    const {net, layer: {bias, shape}} = this.explorer;
    return bias && bias[1] - bias[0] === shape.at(-1) ? net.x_b[bias[0] + map] : null;
  }

  /** Which units of the large map had their ReLU flipped by the brightness. */
  show_comparison() {
    const {explorer, parts, frame} = this, {flips} = explorer.comparison ?? {};
    if (!flips || parts["one-row"].hidden) return;
    const crosses = channel(flips, frame.channels, this.place.map), {values, how} = this.large;
    draw_signed(parts["one-canvas"], values, {...how, crosses});
    parts["one-name"].textContent += `; × marks the ${crosses.reduce((a, b) => a + b, 0)} of ${crosses.length} that are flipped`;
  }
}
