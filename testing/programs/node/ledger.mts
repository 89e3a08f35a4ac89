/** The client of the service that owns the data, which refuses all who hold an older token than the newest it has seen. */

import type { Lease } from "leasehold";

/** Somebody else has the lock by now: stop, and discard the work. */
export class StaleError extends Error {}

/** The lines of the item that a lease protects: claimed before the first read, and checked with each write. */
export class Ledger {
  lines: string[] = [];

  private constructor(private readonly lease: Lease) {}

  static async using<T>(lease: Lease, work: (ledger: Ledger) => Promise<T>): Promise<T> {
    const ledger = new Ledger(lease);
    ledger.lines = await ledger.post("claim");
    try {
      return await work(ledger);
    } finally {
      await ledger.post("leave");
    }
  }

  async write(line: string): Promise<void> {
    this.lease.check(1_000);
    await this.post("write", { line });
    this.lines.push(line);
  }

  private async post(path: string, body: object = {}): Promise<string[]> {
    const answer = await fetch(`${process.env.LEDGER}/${path}`, {
      method: "POST",
      headers: { "x-fence": String(this.lease.token), "x-worker": String(process.pid) },
      body: JSON.stringify({ item: this.lease.resource, ...body }),
    });
    if (answer.status === 409) throw new StaleError(await answer.text());
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return ((await answer.json()) as { lines: string[] }).lines;
  }
}
