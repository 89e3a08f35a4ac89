import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The url of a SQLite store in a folder of the test's own, which goes with it. */
export function sqlite(t) {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return `sqlite:${join(folder, "locks.db")}`;
}
