// Somebody who sees the true time, which no worker does, and holds every moment against what the lock promises.

export class Witness {
  /** Who believed to hold the lock, and when: for each worker `{ fromNs, untilNs, token, end }`. */
  spans;
  /** When a worker stood still. */
  pauses;
  /** What was seen that should not be: `{ atNs, what, workers }`. */
  breaches = [];
  /** What is promised no more, until when, and why: of "holders" and "token", `{ why, untilNs }`. */
  excuses = {};
  #highest = 0n;
  #wereTooMany = false;
  #world;

  constructor(world) {
    this.#world = world;
    this.spans = world.workers.map(() => []);
    this.pauses = world.workers.map(() => []);
  }

  granted({ index, token, untilNs }) {
    if (token <= this.#highest) this.#breach("token", [index]);
    else this.#highest = token;
    this.spans[index].push({ fromNs: this.#world.nowNs, untilNs, token, end: undefined });
  }

  prolonged({ index, untilNs }) {
    this.#open(index).untilNs = untilNs;
  }

  /** A worker believes no more. Between its deadline and the moment in which it learns of that it believed nothing. */
  ended({ index }, how) {
    const span = this.#open(index);
    span.end = how;
    span.untilNs = Math.min(span.untilNs, this.#world.nowNs);
  }

  paused(index) {
    this.pauses[index].push({ fromNs: this.#world.nowNs, untilNs: undefined });
  }

  woken(index) {
    this.pauses[index].at(-1).untilNs = this.#world.nowNs;
  }

  /** Who believes at this moment, by its own clock, that it holds the lock. */
  holders() {
    return this.#world.workers.filter((worker) => worker.believes()).map(({ index }) => index);
  }

  /** Called after everything that happens. */
  look() {
    const holders = this.holders();
    const areTooMany = holders.length > 1;
    const wasExcused = this.#last("holders")?.excuse !== undefined;
    // What was excused when it began is one of its own once the excuse is over.
    const isNew = !this.#wereTooMany || (wasExcused && this.#excuse("holders") === undefined);
    if (areTooMany && isNew) this.#breach("holders", holders);
    this.#wereTooMany = areTooMany;
  }

  #open(index) {
    return this.spans[index].at(-1);
  }

  #breach(what, workers) {
    this.breaches.push({ atNs: this.#world.nowNs, what, workers, excuse: this.#excuse(what) });
  }

  #excuse(what) {
    const excuse = this.excuses[what];
    return excuse?.untilNs >= this.#world.nowNs ? excuse.why : undefined;
  }

  #last(what) {
    return this.breaches.findLast((breach) => breach.what === what);
  }
}
