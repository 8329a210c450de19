// @ts-check
/** The way back: what the unit is made of at each depth, from what its layer reads to the image. */

import {largest} from "./colours.js";
import {draw_signed, frame} from "./pictures.js";
import {bar, number, signed} from "./words.js";

export class WayView {
  constructor(explorer) {
    this.explorer = explorer;
    this.parts = explorer.parts;
  }

  listen() {}

  show_unit() {
    const {way_back} = this.explorer.unit;
    const ends = way_back.flatMap(({here, biases}) => [0, here, here + biases]);
    const low = Math.min(...ends), high = Math.max(...ends);
    const {way} = this.parts;
    way.replaceChildren(...way_back.map((stop) => this.shown(stop, low, high)));
    if (way.scrollWidth > way.clientWidth) way.tabIndex = 0;  // the arrow keys scroll it
    else way.removeAttribute("tabindex");
  }

  /** One depth: its name, what its places give, and how that and the biases make the unit. */
  shown({number: node, shape, gives, here, biases}, low, high) {
    const {net, table} = this.explorer;
    const item = document.createElement("li"), name = document.createElement("b"), canvas = document.createElement("canvas");
    const readers = net.layers.filter(({reads}) => reads === node).map((layer) => layer.name);
    const size = net.nodes[node].shape.join(" × ");
    name.textContent = node === 0 ? "x" : `into ${readers.join(", ")}`;
    const scale = largest(gives), {rows, columns} = places_of(shape);
    draw_signed(canvas, gives, {rows, columns, scale, table});
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `What each place gives, at most ${number(scale, 3)}`);
    const small = (...lines) => Object.assign(document.createElement("span"), {className: "small", innerText: lines.join("\n")});
    const own = bar(0, here, low, high), rest = bar(here, here + biases, low, high);
    rest.classList.add("rest");
    item.append(name, small(size), canvas, small(`± ${number(scale, 3)}`), own, rest,
      small(`gives ${signed(here, 4)}`, `biases ${signed(biases, 4)}`));
    return item;
  }
}

/** Rows and columns of a picture of places; those in a row are folded into a square. */
function places_of(shape) {
  if (shape.length > 1) return frame([...shape, 1]);
  const columns = Math.ceil(Math.sqrt(shape[0]));
  return {rows: Math.ceil(shape[0] / columns), columns};
}
