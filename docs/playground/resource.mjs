// What the lock protects: one document. Its guard compares tokens in the same step in which it writes.

export class Resource {
  /** Whether tokens are compared. */
  isGuarded;
  /** The highest token that it has seen. */
  mark;
  /** Grows with every write. */
  version = 0;
  /** Writes and claims, oldest first, as they were answered. */
  entries = [];
  lostUpdates = 0;

  constructor(isGuarded) {
    this.isGuarded = isGuarded;
  }

  /** A new holder shows its token before it reads; from then on older ones are refused. Answers the version that it reads. */
  claim({ worker, token, atNs }) {
    const isAccepted = this.#passes(token);
    this.#note({ what: "claim", worker, token, atNs, isAccepted });
    return isAccepted ? this.version : undefined;
  }

  /** A write on top of the version that the writer has read. Answers the new version, or nothing where it is refused. */
  write({ worker, token, base, atNs }) {
    const isAccepted = this.#passes(token);
    const isLostUpdate = isAccepted && base !== this.version;
    if (isAccepted) this.version += 1;
    if (isLostUpdate) this.lostUpdates += 1;
    this.#note({ what: "write", worker, token, atNs, isAccepted, isLostUpdate });
    return isAccepted ? this.version : undefined;
  }

  #passes(token) {
    if (this.isGuarded && this.mark !== undefined && token < this.mark) return false;
    if (this.mark === undefined || token > this.mark) this.mark = token;
    return true;
  }

  #note(entry) {
    this.entries.push(entry);
  }
}
