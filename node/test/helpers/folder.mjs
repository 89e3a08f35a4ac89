import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of the test's own, which goes with it. */
export function folder(t) {
  const made = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  // A server that ends in this moment may still write.
  t.after(() => rmSync(made, { recursive: true, force: true, maxRetries: 10 }));
  return made;
}

/** The url of a SQLite store in a folder of the test's own. */
export function sqlite(t) {
  return `sqlite:${join(folder(t), "locks.db")}`;
}
