// What one node of the store does with one operation. The rules are those of core/src/store.rs, core/src/node.rs and
// core/src/member.rs for a single resource; test/store.json has the answers of the original.

const MS = 1_000_000n;
const MOST_TOKENS = 2n ** 53n - 1n;

export class Node {
  /** The record: a counter, the last lease, running or not, and the completion of work that is done. */
  record;
  /** What the node remembers of its quorum; gone with its data. */
  marker;
  /** The loss since which the counter was raised. */
  trusted;
  #runsOut;

  /** `runsOut`: true if the store frees a record by itself. DynamoDB does not: waiters observe the record for its ttl. */
  constructor({ runsOut = true } = {}) {
    this.#runsOut = runsOut;
  }

  /** As `leasehold quorum init` leaves it. */
  join(quorum, maxTtlMs) {
    this.marker = { quorum, maxTtlMs, stamp: new Uint8Array(16), phase: "member" };
  }

  wipe() {
    this.record = this.marker = this.trusted = undefined;
  }

  /** One operation, atomically. `now` is what the node's clocks show: `uptimeNs` and `unixMs`. */
  serve(op, now) {
    switch (op.tag) {
      case "acquire":
        return op.val.member === undefined ? this.#acquire(op.val, now) : this.#vote(op.val, now);
      case "renew":
        return this.#renew(op.val, now);
      case "release": {
        const lease = this.#leaseOf(op.val.nonce);
        if (lease === undefined || lease.released) return this.#notOurs(op.val, now);
        lease.released = true;
        return applied("released");
      }
      case "finish":
        return this.#finish(op.val, now);
      case "raise":
        return this.#raise(op.val, now);
      default: {
        const completion = this.#standing(now);
        return applied("read", { holding: this.#seen(now), done: completion && shown(completion, now) });
      }
    }
  }

  /** True if an acquire would be granted. */
  isFree(now) {
    const lease = this.record?.lease;
    return lease === undefined || lease.released || this.#isOver(lease, now);
  }

  /** What a reader is shown; nothing where the record has run out. */
  #seen(now) {
    const lease = this.record?.lease;
    if (lease === undefined || (!lease.released && this.#isOver(lease, now))) return undefined;
    const leftNs = lease.expiresNs > now.uptimeNs ? lease.expiresNs - now.uptimeNs : 0n;
    return {
      holder: { nonce: lease.nonce, seq: lease.seq },
      version: versionOf(lease),
      released: lease.released,
      counter: this.record.counter,
      owner: lease.owner,
      recordTtlMs: lease.recordTtlMs,
      leftMs: this.#runsOut ? (leftNs + MS - 1n) / MS : undefined,
      sinceUnixMs: lease.sinceUnixMs,
    };
  }

  /** The completion of work that is done, while it stands. */
  #standing(now) {
    const completion = this.record?.completion;
    return completion !== undefined && now.unixMs < completion.untilUnixMs ? completion : undefined;
  }

  #acquire(op, now) {
    const completion = this.#standing(now);
    if (op.unlessDone && completion !== undefined) return refused("done", shown(completion, now));
    const lease = this.record?.lease;
    if (lease !== undefined) {
      const isOver = this.#isOver(lease, now);
      // A delayed first send would overwrite a renewal, or take back what was released.
      if (isSame(lease.nonce, op.nonce) && (lease.released || !isOver || op.seq <= lease.seq)) return this.#conflict(now);
      const isWaitedOut = !this.#runsOut && isSame(op.expect, versionOf(lease));
      if (!(lease.released || isOver || isWaitedOut)) return this.#conflict(now);
    }
    const next = (this.record?.counter ?? 0n) + 1n;
    if (next > MOST_TOKENS) return refused("denied", { kind: "tokens-exhausted", detail: "no token is left" });
    const counter = next > op.floor ? next : op.floor;
    this.record = {
      counter,
      completion: this.record?.completion,
      lease: {
        nonce: op.nonce,
        seq: op.seq,
        released: false,
        recordTtlMs: op.recordTtlMs,
        expiresNs: now.uptimeNs + op.recordTtlMs * MS,
        sinceUnixMs: now.unixMs,
        owner: op.owner,
      },
    };
    return applied("acquired", { counter });
  }

  #renew(op, now) {
    const lease = this.#leaseOf(op.nonce);
    if (lease === undefined || lease.released || this.#isOver(lease, now) || lease.seq >= op.seq) {
      return this.#notOurs(op, now);
    }
    const expiresNs = now.uptimeNs + op.recordTtlMs * MS;
    lease.seq = op.seq;
    // Observers wait this long, so it must cover what an earlier send has promised.
    if (op.recordTtlMs > lease.recordTtlMs) lease.recordTtlMs = op.recordTtlMs;
    if (expiresNs > lease.expiresNs) lease.expiresNs = expiresNs;
    return applied("renewed");
  }

  /** Writes down that the work is done and frees the record, in one step. */
  #finish(op, now) {
    const lease = this.#leaseOf(op.nonce);
    const isGranted = lease !== undefined && this.record.counter === op.counter;
    if (isGranted && !lease.released && !this.#isOver(lease, now)) {
      lease.released = true;
      const { nonce, token, owner, keepMs } = op;
      this.record.completion = { nonce, token, owner, atUnixMs: now.unixMs, untilUnixMs: now.unixMs + keepMs };
      return applied("finished");
    }
    // The answer to an earlier send was lost.
    if (isSame(this.#standing(now)?.nonce, op.nonce)) return applied("finished");
    return this.#conflict(now);
  }

  /** The record that stands in the place of ours, or an abstention where this node of a quorum may have forgotten it. */
  #notOurs(op, now) {
    const isInDoubt = op.quorum !== undefined && (this.marker === undefined || this.marker.phase === "joining");
    return isInDoubt ? refused("abstains", { stamp: undefined }) : this.#conflict(now);
  }

  #raise(op, now) {
    const lease = this.#leaseOf(op.nonce);
    if (lease === undefined || lease.released || this.#isOver(lease, now)) return this.#conflict(now);
    if (op.token > this.record.counter) this.record.counter = op.token;
    if (this.marker?.phase === "rejoined" && isSame(op.loss, this.marker.stamp)) this.trusted = this.marker.stamp;
    return applied("raised", { counter: this.record.counter });
  }

  /** An acquire at a node of a quorum, whose memory may be in doubt. */
  #vote(op, now) {
    const { answer, stamp } = this.#admit(op.member, now);
    if (answer === "abstains") return refused("abstains", { stamp });
    if (answer === "stranger") return refused("denied", { kind: "membership", detail: "it belongs to another quorum" });
    const outcome = this.#acquire(op, now);
    const isTrusted = stamp === undefined || isSame(this.trusted, stamp);
    return isTrusted ? outcome : inDoubt(outcome, stamp);
  }

  /** Whether the node votes, and under which loss of memory it stands. */
  #admit(member, now) {
    const marker = this.marker;
    if (marker === undefined) {
      const { quorum, maxTtlMs, fresh: stamp } = member;
      this.marker = { quorum, maxTtlMs, stamp, phase: "joining" };
      return { answer: "abstains", stamp };
    }
    if (!isSame(marker.quorum, member.quorum) || marker.maxTtlMs !== member.maxTtlMs) return { answer: "stranger" };
    switch (marker.phase) {
      case "joining":
        if (!isSame(member.waitedOut, marker.stamp)) return { answer: "abstains", stamp: marker.stamp };
        if (member.birth === "yes") {
          marker.phase = "member";
          return { answer: "votes" };
        }
        marker.phase = "rejoined";
        marker.trustedFromUnixMs = now.unixMs + member.retentionMs;
        return { answer: "votes", stamp: marker.stamp };
      case "rejoined":
        return { answer: "votes", stamp: now.unixMs >= marker.trustedFromUnixMs ? undefined : marker.stamp };
      default:
        return { answer: "votes" };
    }
  }

  #leaseOf(nonce) {
    const lease = this.record?.lease;
    return lease !== undefined && isSame(lease.nonce, nonce) ? lease : undefined;
  }

  #isOver(lease, now) {
    return this.#runsOut && now.uptimeNs >= lease.expiresNs;
  }

  #conflict(now) {
    return refused("conflict", { holding: this.#seen(now) });
  }
}

/** The same answer of a node whose counter is in doubt: a grant with a warning, a conflict without the counter. */
function inDoubt(outcome, stamp) {
  const { applied: granted, refusal } = outcome.val;
  if (granted?.tag === "acquired") return applied("acquired-in-doubt", { counter: granted.val.counter, stamp });
  if (refusal?.tag === "conflict" && refusal.val.holding !== undefined) refusal.val.holding.counter = undefined;
  return outcome;
}

/** A completion as readers are shown it. */
function shown({ token, owner, atUnixMs, untilUnixMs }, now) {
  return { token, owner, atUnixMs, leftMs: untilUnixMs - now.unixMs, unsettled: false };
}

function applied(tag, val) {
  return { tag: "applied", val: { applied: val === undefined ? { tag } : { tag, val } } };
}

function refused(tag, val) {
  return { tag: "not-applied", val: { refusal: { tag, val } } };
}

function isSame(one, other) {
  if (one === undefined || other === undefined) return false;
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

/** Names one state of the record: the attempt, and its last send. */
function versionOf({ nonce, seq }) {
  const version = new Uint8Array(20);
  version.set(nonce);
  new DataView(version.buffer).setUint32(16, seq);
  return version;
}
