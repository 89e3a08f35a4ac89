// The settings of a world as a form.

import { change, make, one, say } from "./dom.mjs";
import { NUMBERS } from "./url.mjs";
import { STORES } from "./world.mjs";

const SLIDERS = {
  ttl: { title: "Time to live", shown: (value) => `${value} s` },
  drift: { title: "Clock drift", shown: (value) => `${value} %` },
  latency: { title: "Latency, one way", shown: (value) => `${value} ms` },
  loss: { title: "Messages lost", shown: (value) => `${value} %` },
};
/** What can change while the world runs. */
const LIVE = ["latency", "loss"];

export class Controls {
  #store = make("select", { id: "store" });
  #seed = make("input", { id: "seed", type: "number", inputMode: "numeric" });
  #sliders = new Map();

  /** `anew(change)` begins with other settings, `deed(verb, to)` changes the running world. */
  constructor(anew, deed) {
    for (const [id, { title }] of Object.entries(STORES)) this.#store.append(make("option", { value: id }, title));
    this.#store.addEventListener("change", () => anew({ store: this.#store.value }));
    const { least, most } = NUMBERS.seed;
    Object.assign(this.#seed, { min: least, max: most });
    this.#seed.addEventListener("change", () => {
      const seed = Math.min(most, Math.max(least, Math.floor(Number(this.#seed.value)) || 0));
      anew({ seed });
    });
    const rows = [row("Store", this.#store)];
    for (const [name, { title }] of Object.entries(SLIDERS)) rows.push(this.#slider(name, title, anew, deed));
    const dice = make("button", { type: "button" }, "Another");
    dice.setAttribute("aria-label", "Another seed");
    dice.addEventListener("click", () => anew({ seed: (Number(this.#seed.value) + 1) % (most + 1) }));
    rows.push(row("Seed", this.#seed, dice));
    one("settings").replaceChildren(...rows);
    one("settings").addEventListener("submit", (event) => event.preventDefault());
  }

  show({ settings, scenario }) {
    this.#store.value = settings.store;
    this.#store.disabled = scenario.store !== undefined;
    this.#store.title = scenario.store === undefined ? "" : "This scenario needs this store.";
    this.#seed.value = settings.seed;
    for (const [name, { input, output }] of this.#sliders) {
      const { of, factor } = NUMBERS[name];
      input.value = settings[of] / factor;
      tell(name, input, output);
    }
  }

  #slider(name, title, anew, deed) {
    const { least, most, step, of, factor } = NUMBERS[name];
    const input = make("input", { type: "range", id: name, min: least, max: most, step });
    const output = make("output", { for: name });
    input.addEventListener("input", () => tell(name, input, output));
    input.addEventListener("change", () => {
      const value = Number(input.value);
      if (LIVE.includes(name)) deed(name, value);
      else anew({ [of]: value * factor });
    });
    this.#sliders.set(name, { input, output });
    return row(title, input, output);
  }
}

/** What a slider stands at, for those who see it and those who hear it. */
function tell(name, input, output) {
  const shown = SLIDERS[name].shown(Number(input.value));
  say(output, shown);
  change(input, { "aria-valuetext": shown });
}

function row(title, input, ...more) {
  return make("div", { className: "row" }, make("label", { for: input.id }, title), input, ...more);
}
