// What the clocks of the runtime show, for a protocol that wants time to go on while the machine is suspended.

/**
 * How far the wall clock may run ahead of the other one before that is taken for time that the other one has missed. So much
 * can be missed unseen: others have to keep away from a lock for as long after its lease has run out here.
 */
export const SUSPENDED_MS = 500;

/**
 * A clock over `performance.now()` and `Date.now()`. The first stands still in some runtimes while the machine is suspended,
 * and the second is set by people: so a wall clock that has suddenly gained counts as time that has passed. Should it have
 * been set, a lease ends too early, which harms nobody. A wall clock that is set back by as much as has been missed hides it.
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
