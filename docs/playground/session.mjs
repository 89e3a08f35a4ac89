// One visit to the playground: a world, its scenario, and what the visitor has done to it. All of it can be written down
// in a url, and be had again from there.

import { GRAIN_NS, Director } from "./director.mjs";
import { scenarioOf } from "./scenarios.mjs";
import { NAMES, World } from "./world.mjs";

/** A world that nobody stops ends here, so that it can be had again in a moment. */
export const MOST_SECONDS = 600;
/** More of them fit into no url that people would share. */
export const MOST_DEEDS = 100;

const on = (list) => ({
  among: (world) => world[list].map((_, index) => (list === "workers" ? NAMES[index].toLowerCase() : String(index + 1))),
  of: (world, name) => world[list][list === "workers" ? NAMES.indexOf(name.toUpperCase()) : Number(name) - 1],
});
const WORKERS = on("workers");
const NODES = on("nodes");
const number = (least, most) => ({
  among: undefined,
  of: (_, text) => (/^\d{1,4}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined),
});

/** What leaves nothing of what was set before, at the same instant. */
const SETTINGS = ["latency", "loss", "guard"];

/** What a visitor can do, by its name in a url. */
export const DEEDS = {
  ask: { to: WORKERS, act: (_, worker) => worker.ask() },
  release: { to: WORKERS, act: (_, worker) => worker.release() },
  finish: { to: WORKERS, act: (world, worker) => world.isRun && worker.finish() },
  pause: { to: WORKERS, act: (_, worker) => worker.pause() },
  wake: { to: WORKERS, act: (_, worker) => worker.wake() },
  cut: { to: WORKERS, act: (_, worker) => worker.cut() },
  mend: { to: WORKERS, act: (_, worker) => worker.mend() },
  kill: { to: NODES, act: (world, node) => world.kill(node) },
  revive: { to: NODES, act: (world, node) => world.revive(node) },
  wipe: { to: NODES, act: (world, node) => world.wipe(node) },
  latency: { to: number(5, 1_000), act: (world, ms) => (world.network.latencyMs = ms) },
  loss: { to: number(0, 50), act: (world, percent) => (world.network.lossPercent = percent) },
  guard: { to: number(0, 1), act: (world, is) => (world.resource.isGuarded = is === 1) },
};

export class Session {
  /** Deeds that were done: `{ atNs, verb, to }`. */
  deeds = [];
  #pending;

  /** `settings` as `url.mjs` reads them; goes to its time at once. */
  constructor(protocol, settings) {
    this.settings = settings;
    this.scenario = scenarioOf(settings.scenario);
    const { workers, isBusy = false, isRun = false } = this.scenario;
    this.world = new World(protocol, { ...settings, workers, isBusy, isRun });
    this.director = new Director(this.world, this.scenario, settings.ttlMs);
    this.#pending = [...settings.deeds];
    this.advance(settings.atNs);
    this.#pending = [];
  }

  get nowNs() {
    return this.world.nowNs;
  }

  get isAtEnd() {
    return this.nowNs >= MOST_SECONDS * 1e9;
  }

  /** Lets time pass until then; with `isStepwise`, no further than to the end of a step. Answers whether one has ended. */
  advance(untilNs, isStepwise = false) {
    const endNs = Math.min(untilNs, MOST_SECONDS * 1e9);
    for (;;) {
      this.#doPending();
      if (this.nowNs >= endNs) return false;
      this.director.begin();
      const stopNs = Math.min(this.#pending[0]?.atNs ?? Infinity, endNs);
      let isOver = false;
      this.world.runUntil(stopNs, () => (isOver = this.director.look()));
      if (isOver && isStepwise) return true;
    }
  }

  /** To the end of the step that is under way, or that comes next; in free play a moment. */
  next() {
    const { isOver } = this.director;
    this.advance(isOver ? this.nowNs + 500_000_000 : Infinity, !isOver);
  }

  /** To the end of the scenario. */
  finish() {
    while (!this.director.isOver && !this.isAtEnd) this.advance(Infinity, true);
  }

  /** Something that the visitor does, now. Answers whether there was anything to do it to. */
  deed(verb, to) {
    this.align();
    const deed = { atNs: this.nowNs, verb, to: String(to) };
    if (!this.#perform(deed)) return false;
    // A slider that is moved by keys is set once for each.
    if (this.#isSetAnew(deed)) this.deeds.pop();
    this.deeds.push(deed);
    return true;
  }

  #isSetAnew({ atNs, verb }) {
    const last = this.deeds.at(-1);
    return SETTINGS.includes(verb) && last?.verb === verb && last.atNs === atNs;
  }

  /** To an instant that can be written down. */
  align() {
    this.advance(Math.ceil(this.nowNs / GRAIN_NS) * GRAIN_NS);
  }

  #doPending() {
    while (this.#pending[0]?.atNs <= this.nowNs) {
      const deed = this.#pending.shift();
      if (this.#perform(deed)) this.deeds.push(deed);
    }
  }

  #perform({ verb, to }) {
    const { to: kind, act } = DEEDS[verb];
    const target = kind.of(this.world, to);
    if (target === undefined) return false;
    act(this.world, target);
    this.world.witness.look();
    return true;
  }
}
