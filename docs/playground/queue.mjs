// The queue of waiters beside the record of a single store. The rules are those of core/src/queue.rs: it never grants
// anything, and only keeps others from a lock whose turn it is not.

/** How long a lock that is free is kept for the first in the queue. The core keeps it for less, for faster networks than this. */
export const RESERVED_NS = 3_000_000_000n;
/** How long a waiter keeps its place without asking. */
const UNSEEN_NS = 10_000_000_000n;

export class Queue {
  /** The first in the queue first: `{ ticket, seenNs, reservedUntilNs }`. */
  #waiting = [];

  /** Tickets of those who wait, in their order. */
  tickets() {
    return this.#waiting.map(({ ticket }) => ticket);
  }

  /** One operation of a ticket on a node. Answers the outcome, and whose `turn` it is now if that has changed. */
  serve(node, ticket, op, now) {
    this.#forget(now.uptimeNs);
    const first = this.#waiting[0];
    const isPassedOver = op.tag === "acquire" && first !== undefined && first.ticket !== ticket;
    if (isPassedOver && node.isFree(now)) {
      const turn = this.#call(now.uptimeNs);
      this.#join(ticket, now.uptimeNs);
      return { outcome: { tag: "not-applied", val: { refusal: { tag: "conflict", val: {} } } }, turn };
    }
    const outcome = node.serve(op, now);
    const isDone = outcome.tag === "applied";
    if (op.tag === "acquire" && isDone) this.#drop(ticket);
    else if (op.tag === "acquire" && isHeldByAnother(outcome, op)) this.#join(ticket, now.uptimeNs);
    const isFreed = isDone && (op.tag === "release" || op.tag === "finish");
    return { outcome, turn: isFreed ? this.#call(now.uptimeNs) : undefined };
  }

  /** Gives up a place, and passes on what is kept for it. Answers whose turn it is now. */
  leave(ticket, { uptimeNs }) {
    const hadTheTurn = this.#waiting.find((waiter) => waiter.ticket === ticket)?.reservedUntilNs !== undefined;
    this.#drop(ticket);
    this.#forget(uptimeNs);
    return hadTheTurn ? this.#call(uptimeNs) : undefined;
  }

  #join(ticket, seenNs) {
    const waiter = this.#waiting.find((each) => each.ticket === ticket);
    if (waiter === undefined) this.#waiting.push({ ticket, seenNs, reservedUntilNs: undefined });
    else waiter.seenNs = seenNs;
  }

  #drop(ticket) {
    this.#waiting = this.#waiting.filter((waiter) => waiter.ticket !== ticket);
  }

  /** Drops those who have not asked for long, and those who did not take their turn. */
  #forget(nowNs) {
    this.#waiting = this.#waiting.filter(
      ({ seenNs, reservedUntilNs }) =>
        nowNs - seenNs <= UNSEEN_NS && (reservedUntilNs === undefined || nowNs < reservedUntilNs),
    );
  }

  /** Keeps the lock for the first in the queue, and answers its ticket unless it was told before. */
  #call(nowNs) {
    const first = this.#waiting[0];
    if (first === undefined || first.reservedUntilNs !== undefined) return undefined;
    first.reservedUntilNs = nowNs + RESERVED_NS;
    return first.ticket;
  }
}

/** True if the record in the way is not the asker's own. */
function isHeldByAnother({ val }, { val: { nonce } }) {
  if (val.refusal?.tag !== "conflict") return false;
  const holder = val.refusal.val.holding?.holder;
  return holder === undefined || holder.nonce.some((byte, at) => byte !== nonce[at]);
}
