import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system in memory: a busy disk takes seconds to confirm hundreds of writes. */
const MEMORY = "/dev/shm";

/** A folder for one test, deleted after it. */
export function folder(t, within = tmpdir()) {
  const made = mkdtempSync(join(within, "leasehold-node-"));
  remove(t, made);
  return made;
}

/** Deletes a folder after the test. */
export function remove(t, made) {
  // Windows deletes no file that a client still has open. A server that is stopping may still write.
  if (process.platform !== "win32") t.after(() => rmSync(made, { recursive: true, force: true, maxRetries: 10 }));
}

/** The url of a SQLite store in a folder for one test. */
export function sqlite(t) {
  return `sqlite:${join(folder(t, existsSync(MEMORY) ? MEMORY : undefined), "locks.db")}`;
}
