// Leads a world through the steps of a scenario. What it does depends on what happens in the world alone, so that the
// same scenario takes the same course whether it is watched in one go or step by step.

/** How long the end of a step is left to be looked at. */
const SETTLES_MS = 700;
/** Steps end at whole hundredths of a second, which is how precisely a url tells the time. */
export const GRAIN_NS = 10_000_000;
/** A step that has not come to its end by then takes another course than was meant. */
const MOST_TTLS = 3;

export class Director {
  /** How many steps are over; the next one begins with `begin`. */
  done = 0;
  /** Steps that took another course, as they may with other settings. */
  missed = new Set();
  #world;
  #steps;
  #ttlMs;
  #state = "between";

  constructor(world, { steps }, ttlMs) {
    this.#world = world;
    this.#steps = steps;
    this.#ttlMs = ttlMs;
  }

  get isOver() {
    return this.done === this.#steps.length;
  }

  /** Whether a step is under way. */
  get isOn() {
    return this.#state !== "between";
  }

  /** Begins the next step, if there is one and none is under way. */
  begin() {
    if (this.isOver || this.isOn) return;
    const [number, step] = [this.done, this.#steps[this.done]];
    this.#state = "on";
    step.act?.(this.#world);
    this.#world.after((step.atMostTtls ?? MOST_TTLS) * this.#ttlMs * 1e6, () => {
      if (this.done !== number || this.#state !== "on") return;
      this.missed.add(number);
      this.#settle();
    });
  }

  /** To be called after everything that happens; answers whether a step is over now. */
  look() {
    if (this.#state === "on" && this.#steps[this.done].until(this.#world)) this.#settle();
    if (this.#state !== "over") return false;
    this.#state = "between";
    this.done += 1;
    return true;
  }

  #settle() {
    this.#state = "settling";
    const { settlesMs = SETTLES_MS } = this.#steps[this.done];
    const endNs = Math.ceil((this.#world.nowNs + settlesMs * 1e6) / GRAIN_NS) * GRAIN_NS;
    this.#world.after(endNs - this.#world.nowNs, () => {
      this.#state = "over";
    });
  }
}
