// Elements without markup in strings, and changes only where something has changed.

export const one = (id) => document.getElementById(id);

/** An element with properties, attributes (`aria-…`, `data-…`, `role`) and content. */
export function make(name, properties = {}, ...content) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "for") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...content);
  return element;
}

/**
 * What became of a request, one sign for each: on wires, in lists and in the legend. The letter of a worker is the request
 * itself, and a dashed ring that is struck through is a message lost on its way.
 */
export const GLYPHS = { yes: "✓", no: "–", harm: "✕", abstains: "?", down: "!", turn: "→", done: "✓" };

/** A sign in text. */
export const sign = (tone, inside = GLYPHS[tone]) =>
  make("i", { className: "sign", "data-tone": tone, "aria-hidden": "true" }, inside);

const SVG = "http://www.w3.org/2000/svg";

export function shape(name, attributes = {}, ...content) {
  const element = document.createElementNS(SVG, name);
  change(element, attributes);
  element.append(...content);
  return element;
}

/** Sets attributes; `undefined` takes one away. */
export function change(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined) element.removeAttribute(key);
    else if (element.getAttribute(key) !== String(value)) element.setAttribute(key, value);
  }
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A style property, or one of one's own. */
export function style(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

export function enable(button, is) {
  // A button that has the focus keeps it, so that the keyboard is not thrown back to the top of the page.
  change(button, { "aria-disabled": is ? undefined : "true" });
}

export const isEnabled = (button) => button.getAttribute("aria-disabled") !== "true";

export const seconds = (ns, digits = 1) => `${(Math.max(0, ns) / 1e9).toFixed(digits)} s`;
