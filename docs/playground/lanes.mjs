// Who believed to hold the lock, and when, as bars over true time; and what the witness makes of it.

import { change, make, one, say, seconds, style } from "./dom.mjs";

/** How much time is shown. */
const WINDOW_NS = 24e9;
/** What is still to come of it. */
const AHEAD = 0.25;
const TICK_NS = 5e9;
const ENDS = { released: "released", lost: "lost", undefined: "running" };

export class Lanes {
  #lanes;
  #marks = new Map();
  #ticks = make("div", { className: "ticks" });
  #now = make("div", { className: "now" });
  #future = make("div", { className: "future" });

  constructor({ world }) {
    this.#lanes = world.workers.map(({ name }) => make("div", { className: "lane", "data-worker": name }));
    const rows = world.workers.map(({ name }, at) =>
      make("div", { className: "row", "data-worker": name }, make("span", { className: "name" }, name), this.#lanes[at]),
    );
    const over = make("div", { className: "over" }, this.#ticks, this.#future, this.#now);
    one("lanes").replaceChildren(...rows, over);
  }

  show({ world }) {
    const fromNs = Math.max(0, world.nowNs - WINDOW_NS * (1 - AHEAD));
    const at = (ns) => `${((100 * (ns - fromNs)) / WINDOW_NS).toFixed(2)}%`;
    const seen = new Set();
    const put = (key, lane, className, span, text) => {
      const untilNs = span.untilNs ?? world.nowNs;
      if (untilNs < fromNs || span.fromNs > fromNs + WINDOW_NS) return;
      seen.add(key);
      const mark = this.#marks.get(key) ?? this.#made(key, lane, className, text);
      const beginNs = Math.max(fromNs, span.fromNs);
      style(mark, "inset-inline-start", at(beginNs));
      style(mark, "inline-size", at(fromNs + Math.max(0, Math.min(untilNs, fromNs + WINDOW_NS) - beginNs)));
      change(mark, { "data-end": ENDS[span.end] });
    };
    const { spans, pauses } = world.witness;
    spans.forEach((each, lane) => each.forEach((span, n) => put(`${lane} span ${n}`, lane, "span", span, `${span.token}`)));
    pauses.forEach((each, lane) => each.forEach((span, n) => put(`${lane} pause ${n}`, lane, "still", span, "")));
    this.#forget(seen);
    this.#showTicks(fromNs, at);
    for (const mark of [this.#now, this.#future]) style(mark, "inset-inline-start", at(world.nowNs));
    showVerdict(world.witness, world.resource);
  }

  /** In words, for when the time stands still: nobody could follow them while it runs. */
  tell({ world }) {
    const spans = world.witness.spans.flatMap((each, index) => each.map((span) => ({ ...span, index })));
    const told = spans
      .sort((one, other) => one.fromNs - other.fromNs)
      .slice(-8)
      .map(({ index, token, fromNs, untilNs, end }) => {
        const until = end === undefined && untilNs > world.nowNs ? "until now" : `to ${seconds(untilNs)}`;
        return `${world.workers[index].name} with token ${token} from ${seconds(fromNs)} ${until}`;
      });
    change(one("lanes"), { "aria-label": told.length === 0 ? "Nobody yet." : `${told.join("; ")}.` });
  }

  #made(key, lane, className, text) {
    const mark = make("div", { className }, make("span", {}, text));
    this.#lanes[lane].append(mark);
    this.#marks.set(key, mark);
    return mark;
  }

  #forget(seen) {
    for (const [key, mark] of this.#marks) {
      if (seen.has(key)) continue;
      mark.remove();
      this.#marks.delete(key);
    }
  }

  #showTicks(fromNs, at) {
    const wanted = [];
    for (let ns = Math.ceil(fromNs / TICK_NS) * TICK_NS; ns < fromNs + WINDOW_NS * 0.97; ns += TICK_NS) wanted.push(ns);
    while (this.#ticks.children.length < wanted.length) this.#ticks.append(make("span"));
    [...this.#ticks.children].forEach((tick, index) => {
      tick.hidden = index >= wanted.length;
      if (tick.hidden) return;
      say(tick, `${wanted[index] / 1e9} s`);
      style(tick, "inset-inline-start", at(wanted[index]));
    });
  }
}

function showVerdict({ breaches }, resource) {
  const verdict = one("verdict");
  const breach = breaches.find(({ excuse }) => excuse === undefined) ?? breaches[0];
  const harm = resource.entries.find(({ isLostUpdate }) => isLostUpdate);
  const broken = breach === undefined ? harm && "resource" : breach.excuse === undefined ? "bug" : "excused";
  change(verdict, { "data-broken": broken });
  if (breach === undefined && harm !== undefined) {
    return say(verdict, `✕ At ${seconds(harm.atNs)}: an update was lost, since nobody compared the tokens`);
  }
  if (breach === undefined) return say(verdict, "✓ Never two at once; tokens only grew");
  const what = breach.what === "holders" ? "two holders at once" : "a token that did not grow";
  const why = breach.excuse === undefined ? "this must never be: please report the link" : `for ${breach.excuse}`;
  say(verdict, `✕ At ${seconds(breach.atNs)}: ${what}, ${why}`);
}
