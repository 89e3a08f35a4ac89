// Messages on their way, some of which never arrive. Places are called "worker/0", "node/2", "resource".

/** How long a message that was lost is still shown. */
export const FADES_NS = 900_000_000;
/** Where on its way a lost message ends. */
const LOST_AT = 0.55;
/** Messages take from 1 - SPREAD to 1 + SPREAD of the latency. */
const SPREAD = 0.25;

export class Network {
  latencyMs;
  lossPercent;
  /** What a scenario does to single messages: answers `{ lose: true }`, `{ latencyMs }` or nothing. */
  rule = () => undefined;
  /** Messages to be drawn: under way, or lost a moment ago. */
  shown = [];
  /** How many replies of each kind have been sent. */
  replies = {};
  #world;
  #random;
  #lastId = 0;

  constructor(world, { latencyMs, lossPercent }, random) {
    this.#world = world;
    this.latencyMs = latencyMs;
    this.lossPercent = lossPercent;
    this.#random = random;
  }

  /**
   * Sends a message: `from`, `to`, the `worker` that it belongs to, `kind`, and `token` if it carries one. `isSafe` ones are
   * not lost by chance. `arrive` is called where and when it arrives.
   */
  send(message, arrive) {
    const [late, lost] = [this.#random(), this.#random()];
    const rule = this.rule(message) ?? {};
    const latencyMs = rule.latencyMs ?? this.latencyMs * (1 - SPREAD + 2 * SPREAD * late);
    const sent = {
      ...message,
      id: (this.#lastId += 1),
      sentNs: this.#world.nowNs,
      dueNs: this.#world.nowNs + Math.round(latencyMs * 1e6),
      lostNs: undefined,
    };
    this.shown.push(sent);
    if (message.isReply) this.replies[message.kind] = (this.replies[message.kind] ?? 0) + 1;
    const isLost = rule.lose || (!message.isSafe && lost * 100 < this.lossPercent);
    const lose = () => {
      sent.lostNs = this.#world.nowNs;
      sent.lostAt = LOST_AT;
      this.#world.after(FADES_NS, () => this.#forget(sent));
    };
    const isCut = () => !message.isSafe && message.worker.isCut;
    this.#world.after((sent.dueNs - sent.sentNs) * LOST_AT, () => {
      if (isLost || isCut()) lose();
    });
    this.#world.after(sent.dueNs - sent.sentNs, () => {
      if (sent.lostNs !== undefined) return;
      this.#forget(sent);
      arrive();
    });
  }

  #forget(message) {
    this.shown = this.shown.filter((other) => other !== message);
  }
}
