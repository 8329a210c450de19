/**
 * Figures with knobs: controls above a still picture, which show its other states.
 *
 * The build gives such a picture an attribute, the address of a script with all its frames; it is
 * loaded when the picture comes near the screen. `adjoint_book/widgets.py` says what it holds.
 */
"use strict";

for (const image of document.querySelectorAll("img[data-frames]")) {
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    const script = document.createElement("script");
    script.src = image.dataset.frames;
    script.onload = () => add_knobs(image, window.adjoint_frames[image.dataset.frames.match(/[0-9a-f]{64}/)[0]]);
    document.head.append(script);
  }, { rootMargin: "400px" });
  seen.observe(image);
}

function add_knobs(image, { knobs, frames }) {
  const at = knobs.map(({ start }) => start), alt = image.alt;
  const show = () => {
    const frame = at.reduce((number, place, n) => number * knobs[n].values.length + place, 0);
    image.src = `data:image/webp;base64,${frames[frame]}`;
    const said = knobs.map(({ name, values }, n) => `${name} = ${values[at[n]]}`).join(", ");
    image.alt = at.every((place, n) => place === knobs[n].start) ? alt : `The figure at ${said}.`;
  };
  const holder = document.createElement("div");
  holder.className = "knobs";
  holder.append(...knobs.map((knob, n) => control(knob, (place) => {
    at[n] = place;
    show();
  })));
  (image.closest("figure") ?? image.parentElement).prepend(holder);
}

/** A slider for numbers, a menu for words. */
function control({ name, values, start }, turned) {
  const label = document.createElement("label");
  if (values.every((value) => /^-?[\d./e+-]+$/.test(value))) {
    const slider = document.createElement("input"), said = document.createElement("output");
    Object.assign(slider, { type: "range", min: 0, max: values.length - 1, step: 1, value: start });
    const say = () => {
      said.textContent = values[slider.value];
      slider.setAttribute("aria-valuetext", `${name} = ${values[slider.value]}`);
    };
    slider.addEventListener("input", () => {
      say();
      turned(Number(slider.value));
    });
    say();
    label.append(name, slider, said);
    return label;
  }
  const menu = document.createElement("select");
  menu.append(...values.map((value, n) => new Option(value, n)));
  menu.value = start;
  menu.addEventListener("change", () => turned(Number(menu.value)));
  label.append(name, menu);
  return label;
}
