// One acquisition as its caller sees it: where it stands, and until when its lease can be believed in.

import * as messages from "./messages.mjs";

/** How long the store's confirmation of a release is awaited. */
export const PATIENCE_MS = 2_000;

export class Slot {
  /** "pending", "held", "releasing", "released", "failed", "lost" or "closed". */
  phase = "pending";
  token;
  /** True once the store has answered the release, or the record has run out. */
  isFree = false;
  #machine;
  #deadlineNs;
  #trouble;
  #failure;
  #controller = new AbortController();
  #waiting = new Set();

  constructor(machine, lock, resource, owner) {
    this.#machine = machine;
    this.lock = lock;
    this.resource = resource;
    this.owner = owner;
  }

  get signal() {
    return this.#controller.signal;
  }

  /** Why a held lease is over without its holder having released it, or an acquisition without having been granted. */
  get failure() {
    return this.#failure;
  }

  /** An event of the component. Answers `false` when it came too late: the deadline that it moves has passed. */
  apply({ tag, val }) {
    switch (tag) {
      case "acquired":
        this.token = Number(val.token);
        this.#deadlineNs = val.deadlineNs;
        this.#become("held");
        return true;
      case "renewed":
      case "shortened":
        if (this.phase !== "held") return true;
        if (this.#machine.now().monotonicNs >= this.#deadlineNs) return false;
        this.#deadlineNs = val.deadlineNs;
        if (tag === "renewed") this.#trouble = undefined;
        return true;
      case "renew-delayed":
        this.#trouble = val.fault;
        return true;
      case "lost":
        this.#lose("lost", messages.lost(this.resource, val.reason, this.#trouble));
        return true;
      case "failed":
        this.#failure = messages.failed(this.resource, val.failure);
        this.#become("failed");
        return true;
      case "released":
        this.isFree = true;
        if (this.phase !== "closed") this.#become("released");
        return true;
      default:
        // That somebody else holds the lock, or that the lease will be over soon.
        return true;
    }
  }

  /**
   * Validity left, in ms. A look that sees the deadline pass ends the lease for good, so that no later renewal takes an answer
   * of "lost" back.
   */
  remaining() {
    if (this.phase !== "held") return 0;
    const left = this.#deadlineNs - this.#machine.now().monotonicNs;
    if (left > 0n) return Number(left) / 1e6;
    this.#machine.declareLost(this);
    // What the component says of it comes at once; should it not, it is no less lost.
    this.#lose("lost", messages.lost(this.resource, { tag: "expired" }, this.#trouble));
    return 0;
  }

  tooShort(left, min) {
    return messages.tooShort(this.resource, left, min, this.#trouble);
  }

  /** Ends the lease here, whatever the store says later. */
  endLocally() {
    if (this.phase === "held") this.#become("releasing");
  }

  /** As `endLocally`, for a holder who has to be told. */
  endByClosing() {
    this.#lose("closed", messages.closed(this.resource));
  }

  /** Ends whatever it was doing, because the machine is of no further use. */
  break(error) {
    if (this.phase === "held") this.#lose("lost", messages.lost(this.resource, { tag: "other", val: error }, undefined));
    else if (this.phase === "pending") {
      this.#failure = error;
      this.#become("failed");
    } else this.#become("released");
  }

  /** Fulfilled when `look` answers anything but `undefined`; with that. */
  until(look) {
    return new Promise((resolve) => {
      const waiter = () => {
        const found = look();
        if (found === undefined) return;
        this.#waiting.delete(waiter);
        resolve(found);
      };
      this.#waiting.add(waiter);
      waiter();
    });
  }

  #lose(phase, failure) {
    // A release may find that the lock was not ours any more.
    if (this.phase !== "held" && !(this.phase === "releasing" && phase === "lost")) return;
    this.#failure = failure;
    this.#become(phase);
    this.#controller.abort(failure);
  }

  #become(phase) {
    this.phase = phase;
    for (const waiter of [...this.#waiting]) waiter();
  }
}
