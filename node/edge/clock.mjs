// The clocks and timers of the runtime, for a protocol that needs suspended time to count.

/**
 * How far the wall clock may gain on the monotonic clock before the difference counts as missed time. A smaller difference is
 * not detected, so a lock stays closed to others for this long after its lease has expired here.
 */
export const SUSPENDED_MS = 500;

/**
 * A clock over `performance.now()` and `Date.now()`. The first stands still in some runtimes while the machine is suspended;
 * people can set the second. So a sudden gain of the wall clock counts as time that has passed. If the wall clock was set, a
 * lease ends too early, which is safe. Missed time is not detected if the wall clock is set back by the same amount.
 */
export function clock(steady = () => performance.now(), wall = () => Date.now()) {
  let gained = 0;
  let ahead = wall() - steady();
  return () => {
    const [steadyMs, wallMs] = [steady(), wall()];
    const leads = wallMs - steadyMs;
    if (leads - ahead > SUSPENDED_MS) gained += leads - ahead;
    if (leads < ahead || leads - ahead > SUSPENDED_MS) ahead = leads;
    return { monotonicNs: BigInt(Math.floor((steadyMs + gained) * 1e6)), unixMs: BigInt(Math.floor(wallMs)) };
  };
}

/**
 * Calls `step` after `ms`, once the runtime has delivered what arrived until then. Node runs timers before it reads sockets: where
 * a busy machine always has one that is due, each answer would be timed out unread, and each retry would set the next timer.
 */
export function after(ms, step) {
  return setTimeout(() => (globalThis.setImmediate ?? queueMicrotask)(step), ms);
}
