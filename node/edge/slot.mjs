// One acquisition as its caller sees it: its phase, and the deadline of its lease.

import * as messages from "./messages.mjs";

/** The longest wait for the confirmation of a release. */
export const PATIENCE_MS = 2_000;

export class Slot {
  /** "pending", "held", "releasing", "released", "failed", "lost" or "closed". */
  phase = "pending";
  token;
  /** True once the store has answered the release, or the record has expired. */
  isFree = false;
  /** True once the store has confirmed the completion of a finish. */
  isMarked = false;
  /** True once the store has confirmed it without its result. */
  isResultDropped = false;
  /** Why the lock was not granted, as the component says it. */
  refusal;
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

  /**
   * The error of a lease that ended without a release, or of an acquisition that was not granted. Of the latter it is made here:
   * its stack then names the code that awaits it, not the loop.
   */
  get failure() {
    return (this.#failure ??= this.refusal && messages.failed(this.resource, this.refusal));
  }

  /** The completion of work that was done before, as the component shows it. */
  get completion() {
    return this.refusal?.tag === "done" ? this.refusal.val : undefined;
  }

  /** Handles an event of the component. Returns `false` if it came too late: the old deadline has passed. */
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
        this.refusal = val.failure;
        this.#become("failed");
        return true;
      case "released":
      case "finished":
        this.isFree = true;
        this.isMarked = tag === "finished" && val.confirmed;
        this.isResultDropped = tag === "finished" && val.resultDropped;
        if (this.phase !== "closed") this.#become("released");
        return true;
      default:
        // Events without effect here, such as `contended` and `expiring`.
        return true;
    }
  }

  /**
   * Validity left, in ms. A check after the deadline ends the lease for good, so that no later renewal revokes a reported loss.
   */
  remaining() {
    if (this.phase !== "held") return 0;
    const left = this.#deadlineNs - this.#machine.now().monotonicNs;
    if (left > 0n) return Number(left) / 1e6;
    this.#machine.declareLost(this);
    // The event of the component follows at once; even without it, the lease is lost.
    this.#lose("lost", messages.lost(this.resource, { tag: "expired" }, this.#trouble));
    return 0;
  }

  tooShort(left, min) {
    return messages.tooShort(this.resource, left, min, this.#trouble);
  }

  /** Ends the lease here, independently of later answers of the store. */
  endLocally() {
    if (this.phase === "held") this.#become("releasing");
  }

  /** As `endLocally`, and reports it to the holder. */
  endByClosing() {
    this.#lose("closed", messages.closed(this.resource));
  }

  /** Ends the acquisition or lease, because the machine has failed. */
  break(error) {
    if (this.phase === "held") this.#lose("lost", messages.lost(this.resource, { tag: "other", val: error }, undefined));
    else if (this.phase === "pending") {
      this.#failure = error;
      this.#become("failed");
    } else this.#become("released");
  }

  /** Resolves with the first result of `look` other than `undefined`. */
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
    // A release may find that the lock was no longer ours.
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
