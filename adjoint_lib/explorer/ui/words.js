// @ts-check
/** Numbers as a reader meets them. */

/** A number with this many digits, and a minus that is one. */
export function number(value, digits = 5) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e-4 && size < 1e7 ? value.toPrecision(digits) : value.toExponential(Math.min(digits - 1, 3));
  return text.replace("e+", "e").replaceAll("-", "−");
}

/** A number with its sign, as in a sum. */
export const signed = (value, digits) => (value > 0 ? "+" : "") + number(value, digits);

/** Numbers as a sum, all to the same decimal place: "−0.1478 + 2.5390". */
export function as_terms(values, digits = 5) {
  const most = Math.max(...values.map(Math.abs));
  const decimals = digits - 1 - Math.floor(Math.log10(most));
  if (!(most >= 1e-4 && most < 1e7) || decimals < 0) return values.map((value) => signed(value, digits)).join(" ");
  const said = values.map((value) => Math.abs(value).toFixed(decimals));
  return values.reduce((sum, value, at) => {
    const sign = value < 0 ? "−" : "+";
    return sum ? `${sum} ${sign} ${said[at]}` : (value < 0 ? sign : "") + said[at];
  }, "");
}

/** A whole number with commas. */
export const whole = (value) => value.toLocaleString("en-GB");

/** A share in percent. */
export const percent = (share) => `${(100 * share).toPrecision(share >= 0.1 ? 3 : 2)} %`;

/** A bar that begins at one number and ends at another, on a scale from low to high. */
export function bar(from, to, low, high) {
  const track = document.createElement("div"), inside = document.createElement("i");
  const at = (value) => (high > low ? (100 * (value - low)) / (high - low) : 0);
  track.className = "track";
  track.style.setProperty("--zero", `${at(0)}%`);
  inside.style.left = `${Math.min(at(from), at(to))}%`;
  inside.style.width = `${Math.abs(at(to) - at(from))}%`;
  if (to < from) inside.className = "minus";
  if (to !== from) track.append(inside);
  return track;
}

/** A row of a table: a heading, a bar, a number. */
export function row(heading, track, said) {
  const line = document.createElement("tr"), cells = [document.createElement("th"), document.createElement("td"), document.createElement("td")];
  cells[0].scope = "row";
  cells[0].append(heading);
  if (track) cells[1].append(track);
  cells[2].textContent = said;
  line.append(...cells);
  return line;
}

/** The scale of colours with its ends in numbers. */
export function colour_scale(holder, gradient, largest) {
  const strip = document.createElement("i"), ends = [-largest, largest].map((v) => {
    const end = document.createElement("span");
    end.textContent = number(v, 3);
    return end;
  });
  strip.style.background = gradient;
  holder.replaceChildren(ends[0], strip, ends[1]);
}
