"use strict";

// Tasks of node-cron that run once on many machines. Documented in node-cron.d.ts.

const { builtin } = require("./lib/builtin.cjs");
const { setMaxListeners } = builtin("node:events", () => require("node:events"));
const { fail } = require("./lib/lease.cjs");
const { NATIVE_RUN, options } = require("./lib/options.cjs");

/** How long a process stands by while another one runs, in ms. */
const STAND_BY = 3_600_000;
/** How long the completion of a time stands that only its key names. */
const WEEK = 604_800_000;
/**
 * Without the settings that the schedule says already, and without a pause between attempts: the processes that stand by would not come
 * back after it, since each time of the schedule is another run.
 */
const { key, every, offset, at, tz, cron, cooldown, ttl, signal, replace, retryAfter, ...SETTINGS } = NATIVE_RUN;

class RunCoordinator {
  #client;
  #settings;
  #runs = new Map();
  #ends = new AbortController();

  constructor(client, given) {
    if (typeof client?.beginRun !== "function") throw new TypeError("a RunCoordinator needs a client: await connect(...)");
    this.#client = client;
    this.#settings = { wait: STAND_BY, ...options(given, SETTINGS) };
    // Each time of a schedule may wait for it.
    setMaxListeners(0, this.#ends.signal);
  }

  async shouldRun(key, ttlMs) {
    const { signal } = this.#ends;
    if (signal.aborted) return false;
    try {
      const { run } = await this.#client.beginRun(...occurrence(key, { ...this.#settings, ttl: ttlMs, signal }));
      if (run !== null) this.#runs.set(key, run);
      return run !== null;
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    }
  }

  async onComplete(key) {
    await this.#take(key)?.finish();
  }

  job(work) {
    if (typeof work !== "function") throw new TypeError("job needs the function of the task");
    return async (context) => {
      const key = `${context.task?.name}:${context.date.toISOString()}`;
      const run = this.#runs.get(key);
      try {
        return await work(context, run);
      } catch (error) {
        // node-cron calls onComplete after errors too. The error is reported by node-cron, in place of that of the release.
        await this.#take(key)?.[fail](error).catch(() => {});
        throw error;
      }
    };
  }

  close() {
    this.#ends.abort();
  }

  #take(key) {
    const run = this.#runs.get(key);
    this.#runs.delete(key);
    return run;
  }
}

/** The name and the settings of the run of a key: the name of the task and the time for which it is scheduled. */
function occurrence(key, settings) {
  const [, task, time] = /^(.*):([^:]*T\d\d:\d\d:\d\d\.\d{3}Z)$/s.exec(key) ?? [];
  return time === undefined ? [`node-cron/${key}`, { keep: WEEK, ...settings }] : [`node-cron/${task}`, { ...settings, key: time }];
}

module.exports = { RunCoordinator };
