// The loop that drives the component: it performs the outputs of the component, and decides nothing.

import { after, clock } from "./clock.mjs";
import { perform } from "./http.mjs";
import * as messages from "./messages.mjs";
import { Slot } from "./slot.mjs";

/** The longest sleep, since timers do not count suspended time. */
const LONGEST_SLEEP_MS = 1_000;
/** The pause after a source of credentials has failed. */
const PAUSE_MS = 1_000;

export class Machine {
  now = clock();
  #client;
  #fetch;
  /** The source of credentials for each node that has one. */
  #sources;
  #slots = new Map();
  /** Those who wait for what all nodes were asked, by its id, and how to take the answers. */
  #reads = new Map();
  #isClosed = false;
  #lastLock = 0n;
  #timer;
  #awaited = 0;
  #asking = new Set();
  /** The reason why a node has no credentials now. */
  #troubles = new Map();
  #idle = new Set();
  #broken;

  /**
   * `protocol` has the component's class `Client`. Each node has the `store` for the component, its `durability`,
   * and its `credentials` or their `source`.
   */
  constructor(protocol, config, nodes, fetch) {
    this.#fetch = fetch;
    this.#sources = nodes.map(({ source }) => source);
    const stores = nodes.map(({ store }) => store);
    this.#client = asked(undefined, () => protocol.Client.createWired(config, stores, random(32), this.now()));
    nodes.forEach(({ credentials }, node) => {
      if (credentials !== undefined) asked(undefined, () => this.#client.setCredentials(node, credentials, this.now()));
    });
  }

  /** Begins an acquisition. */
  acquire(resource, owner, options) {
    this.#checkWhole();
    const lock = (this.#lastLock += 1n);
    const slot = new Slot(this, lock, resource, owner);
    this.#call(resource, () => this.#client.acquire(lock, resource, options, random(16), this.now()));
    this.#slots.set(lock, slot);
    // The component asks for credentials once, so a source that failed then is asked again here.
    for (const node of this.#troubles.keys()) this.#renew(node);
    this.#pump();
    return slot;
  }

  /** Releases a lock, or abandons its acquisition. */
  release(slot) {
    slot.endLocally();
    this.#command(slot, () => this.#client.release(slot.lock, this.now()));
  }

  /** Releases the record of a lease that was revoked, if it has not run out. */
  letGo(slot) {
    this.#command(slot, () => this.#client.release(slot.lock, this.now()));
  }

  /** Finishes a run, with a result or none. */
  finish(slot, result) {
    slot.endLocally();
    this.#command(slot, () => this.#client.finish(slot.lock, result, this.now()));
  }

  /** Reads a record on all nodes, and answers what each of them has said. */
  async read(resource) {
    const ask = () => this.#client.read(resource, this.now());
    const { outcomes } = await this.#asked(resource, ask, (id) => this.#client.takeRead(id));
    return outcomes;
  }

  /** Asks the holder of a lease to let go. Answers `true` if it is revoked, and `false` if it was over. */
  async revoke(resource, nonce) {
    const ask = () => this.#client.revoke(resource, nonce, this.now());
    const { isRevoked, troubles } = await this.#asked(resource, ask, (id) => this.#client.takeRevoke(id));
    if (isRevoked === undefined) throw messages.notRevoked(resource, troubles, this.#sources.length);
    return isRevoked;
  }

  /** The attempt by which a lease is held; `undefined` if it is not held. */
  nonce(slot) {
    this.#checkWhole();
    return this.#call(slot.resource, () => this.#client.nonce(slot.lock));
  }

  /** The loss of the lease has been reported to the caller. */
  declareLost(slot) {
    this.#command(slot, () => this.#client.declareLost(slot.lock, this.now()));
  }

  /** Releases everything. */
  close() {
    if (this.#broken !== undefined) return;
    this.#isClosed = true;
    this.#call(undefined, () => this.#client.close(this.now()));
    for (const slot of [...this.#slots.values()]) slot.endByClosing();
    this.#pump();
  }

  /** True if nothing is left to do within `patienceMs`. */
  async isIdleWithin(patienceMs) {
    if (this.#isIdle()) return true;
    let told;
    const idle = new Promise((resolve) => this.#idle.add((told = () => resolve(true))));
    try {
      return await this.within(patienceMs, idle, false);
    } finally {
      this.#idle.delete(told);
    }
  }

  /** Keeps the process alive, if there is one, while the promise is awaited. */
  async awaited(promise) {
    this.#awaited += 1;
    this.#hold();
    try {
      return await promise;
    } finally {
      this.#awaited -= 1;
      this.#hold();
    }
  }

  /** The value of the promise, or `otherwise` after a timeout. */
  async within(patienceMs, promise, otherwise) {
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(() => resolve(otherwise), patienceMs);
    });
    try {
      return await this.awaited(Promise.race([promise, late]));
    } finally {
      clearTimeout(timer);
    }
  }

  /** The reason for missing credentials, for errors of the store. */
  get trouble() {
    const [trouble] = this.#troubles.values();
    return trouble;
  }

  /** Asks all nodes, and answers what `take` has once they have answered. */
  async #asked(resource, ask, take) {
    this.#checkWhole();
    if (this.#isClosed) throw messages.failed(resource, { tag: "cancelled", val: undefined });
    const id = this.#call(resource, ask);
    const answered = new Promise((resolve, reject) => this.#reads.set(id, { take, resolve, reject }));
    this.#pump();
    return this.awaited(answered);
  }

  #command(slot, command) {
    if (this.#broken !== undefined) return;
    try {
      command();
    } catch (error) {
      // The lock is no longer alive, so nobody needs the event.
      if (error?.payload?.tag !== "unknown-lock") throw this.#break(error);
    }
    this.#pump();
  }

  /** Performs all outputs of the component, and sleeps until the next due time. */
  #pump() {
    if (this.#broken !== undefined) return;
    for (;;) {
      const now = this.now();
      const output = this.#call(undefined, () => this.#client.pollOutput(now));
      if (output.tag !== "wake-at") {
        this.#perform(output);
        if (this.#broken !== undefined) return;
        continue;
      }
      this.#answer();
      const { atNs } = output.val;
      if (atNs === undefined || atNs > now.monotonicNs) return this.#sleep(atNs, now);
      this.#call(undefined, () => this.#client.handleTimeout(random(16), now));
    }
  }

  /** Answers those whose nodes have all answered. */
  #answer() {
    for (const [id, { take, resolve }] of this.#reads) {
      const taken = this.#call(undefined, () => take(id));
      if (taken === undefined) continue;
      this.#reads.delete(id);
      resolve(taken);
    }
  }

  #perform({ tag, val }) {
    switch (tag) {
      case "http-request":
        this.#send(val);
        return;
      case "event": {
        const slot = this.#slots.get(val.lock);
        if (slot === undefined) return;
        if (["failed", "lost", "released", "finished"].includes(val.event.tag)) this.#slots.delete(val.lock);
        // The machine got a renewal at the same moment, and must not rely on it.
        if (!slot.apply(val.event)) slot.remaining();
        return;
      }
      case "need-credentials":
        this.#renew(val.node);
        return;
      default:
        // Outputs for stores that this package does not support.
        throw this.#break(new Error(`the component returned the unsupported output ${tag}`));
    }
  }

  async #send(request) {
    const patienceMs = Math.max(Number(request.deadlineNs - this.now().monotonicNs) / 1e6, 0);
    const response = await perform(this.#fetch, request, patienceMs);
    if (this.#broken !== undefined) return;
    this.#quietly(() => this.#client.handleResponse(request.id, response, this.now()));
  }

  /** Fetches credentials, once at a time for each node, and again after a while when that fails. */
  async #renew(node) {
    const source = this.#sources[node];
    if (source === undefined || this.#asking.has(node)) return;
    this.#asking.add(node);
    try {
      const credentials = await source();
      if (this.#broken !== undefined) return;
      this.#call(undefined, () => this.#client.setCredentials(node, credentials, this.now()));
    } catch (error) {
      this.#troubles.set(node, error);
      const again = setTimeout(() => {
        this.#asking.delete(node);
        // A later request fetches them again.
        if (!this.#isIdle()) this.#renew(node);
      }, PAUSE_MS);
      /** @type {any} */ (again).unref?.();
      return;
    }
    this.#troubles.delete(node);
    this.#asking.delete(node);
    this.#quietly(() => {});
  }

  #sleep(atNs, { monotonicNs }) {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isIdle()) for (const told of this.#idle) told();
    if (atNs === undefined) return;
    // A timer may be early by a fraction of a millisecond, which would cost only one more turn.
    const ms = Math.min(Math.ceil(Number(atNs - monotonicNs) / 1e6), LONGEST_SLEEP_MS);
    this.#timer = after(ms, () => {
      if (this.#broken === undefined) this.#quietly(() => this.#client.handleTimeout(random(16), this.now()));
    });
    this.#hold();
  }

  /** For calls by timers: an instance that fails rejects all waiting callers, and throws nothing here. */
  #quietly(step) {
    try {
      this.#call(undefined, step);
      this.#pump();
    } catch (error) {
      if (this.#broken === undefined) this.#break(error);
    }
  }

  #hold() {
    if (this.#awaited > 0) this.#timer?.ref?.();
    else this.#timer?.unref?.();
  }

  #isIdle() {
    return this.#broken !== undefined || this.#client.isIdle();
  }

  /** Translates errors of the interface; after any other error the instance is lost with all of its leases. */
  #call(resource, step) {
    try {
      return step();
    } catch (error) {
      if (error?.payload !== undefined) throw messages.refused(error.payload, resource);
      throw this.#break(error);
    }
  }

  #break(error) {
    if (this.#broken === undefined) {
      this.#broken = error;
      clearTimeout(this.#timer);
      for (const slot of [...this.#slots.values()]) slot.break(error);
      this.#slots.clear();
      for (const { reject } of this.#reads.values()) reject(error);
      this.#reads.clear();
      for (const told of this.#idle) told();
    }
    return error;
  }

  #checkWhole() {
    if (this.#broken !== undefined) throw this.#broken;
  }
}

function asked(resource, step) {
  try {
    return step();
  } catch (error) {
    throw error?.payload === undefined ? error : messages.refused(error.payload, resource);
  }
}

export function random(bytes) {
  return crypto.getRandomValues(new Uint8Array(bytes));
}
