"use strict";

// Held leases of the fake clients of testing.cjs.

const errors = require("./errors.cjs");
const { unconfirmed } = require("./fake-runs.cjs");
const { lose } = require("./lease.cjs");
const { number } = require("./options.cjs");

/** A held lock; a lease uses it as its native lease. */
class Held {
  isOver = false;
  #process;
  #lock;
  #loss;
  /** True once the store has answered, or the record has expired. */
  #isFree = false;
  #isUnconfirmed = false;
  #watcher;

  constructor(process, lock, { resource, owner }, token) {
    Object.assign(this, { resource, owner, token });
    this.#process = process;
    this.#lock = lock;
  }

  isLost() {
    // Report it to watchers at once.
    return false;
  }

  get loss() {
    return this.#loss;
  }

  remaining() {
    return this.isOver ? 0 : this.#process.remaining(this.#lock);
  }

  check(min) {
    const { resource } = this;
    if (this.#loss !== undefined) throw this.#loss;
    if (this.isOver) throw new errors.NotOwnedError(`the lease of "${resource}" was released`, { resource });
    const left = this.remaining();
    if (left >= Number(nanoseconds(min)) / 1e6) return;
    throw new errors.LeaseLostError(`"${resource}" has only ${left} ms left`, { resource });
  }

  watch(lease) {
    if (this.#loss !== undefined) lease[lose](this.#loss);
    this.#watcher = lease;
  }

  forget() {
    this.#watcher = undefined;
  }

  async release() {
    this.releaseNow();
  }

  async leave() {
    this.leaveNow();
  }

  async finish() {
    const { resource } = this;
    this.check(0);
    const left = this.remaining();
    this.isOver = true;
    this.#process.finish(this.#lock, left, () => this.#isSettled());
    if (this.#loss !== undefined) throw this.#loss;
    this.forget();
    if (this.#isUnconfirmed || !this.#isFree) throw unconfirmed(resource);
  }

  completionIn() {
    const { resource } = this;
    throw new errors.ConfigError(`"${resource}": a fake store has no transactions`, { resource });
  }

  async finishLeft() {
    if (!this.isOver || this.#loss !== undefined) await this.finish();
  }

  releaseNow() {
    try {
      this.#release();
    } finally {
      this.forget();
    }
  }

  leaveNow() {
    if (this.isOver && this.#loss === undefined) return;
    try {
      this.releaseNow();
    } catch (error) {
      // The work was done under the lock.
      if (!(error instanceof errors.StoreUnavailableError)) throw error;
    }
  }

  giveBack() {
    this.isOver = true;
    this.#process.release(this.#lock, () => this.#isSettled());
  }

  #isSettled() {
    return this.#isFree || this.#loss !== undefined;
  }

  /** For a lease whose work has ended: a record that was revoked has kept others out until now. */
  letGo() {
    if (this.#loss?.reason === "revoked") this.#process.letGo(this.#lock);
  }

  #release() {
    const { resource } = this;
    this.letGo();
    this.check(0);
    this.giveBack();
    if (this.#loss !== undefined) throw this.#loss;
    if (!this.#isFree) {
      const message = `the store has not confirmed that "${resource}" is released`;
      throw new errors.StoreUnavailableError(message, { resource, temporary: true });
    }
  }

  end(event) {
    if (event.type !== "lost") {
      this.#isFree = true;
      this.#isUnconfirmed = event.confirmed === false;
      return;
    }
    const { resource } = this;
    const loss = new errors.LeaseLostError(`the lease of "${resource}" is over: ${event.reason.type}`, { resource });
    loss.reason = event.reason.type.replaceAll("-", "_");
    this.#tell(loss);
  }

  close() {
    const { resource } = this;
    this.#tell(new errors.NotOwnedError(`the client that held "${resource}" was closed`, { resource }));
  }

  #tell(loss) {
    this.isOver = true;
    this.#loss = loss;
    this.#watcher?.[lose](loss);
  }
}

/** Several held locks; leases use them as their native leases. */
class Several {
  #leases;

  constructor(leases) {
    this.#leases = leases;
  }

  each() {
    return this.#leases;
  }

  check(min) {
    this.#leases.forEach((lease) => lease.check(min));
  }

  release() {
    return this.#all("releaseNow");
  }

  leave() {
    return this.#all("leaveNow");
  }

  #all(how) {
    const begin = () => {
      const failures = this.#leases.toReversed().map((lease) => attempt(() => lease[how]()));
      const first = failures.find((failure) => failure !== undefined);
      if (first !== undefined) throw first;
    };
    return { begin };
  }
}

function attempt(call) {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}

function nanoseconds(ms) {
  if (!(number("a duration", ms) >= 0 && ms < Number.MAX_SAFE_INTEGER)) {
    throw new errors.ConfigError(`${ms} is not a duration: give milliseconds, 0 or more`);
  }
  return BigInt(Math.round(ms * 1e6));
}

module.exports = { Held, Several, nanoseconds };
