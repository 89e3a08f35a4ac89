// The complete examples of docs/node.md, docs/once.md and docs/compare-and-set.md.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startRedis } from "./helpers/redis.mjs";
import { startWebdis } from "./helpers/webdis.mjs";

// The tests run below the target folder; the runner says where the source is.
const page = (name) => readFileSync(join(process.env.LEASEHOLD_SOURCE, "docs", name), "utf8");
const blocks = (text) => [...text.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code);
const EXAMPLES = blocks(page("node.md")).filter((code) => /leasehold\/(protocol|testing)"|\bobserve\(/.test(code));
EXAMPLES.push(...["once.md", "compare-and-set.md"].flatMap((name) => blocks(page(name))));
EXAMPLES.push(...blocks(page("fencing.md")).filter((code) => code.includes("leasehold/cas")));

test("there are examples", () => {
  for (const part of [/\.once\(/, /leasehold\/cas"/, /leasehold\/protocol"/, /leasehold\/testing"/, /\bobserve\(/]) {
    assert.ok(EXAMPLES.some((code) => part.test(code)), String(part));
  }
});

EXAMPLES.forEach((code, n) => {
  test(`example ${n} of the guide runs`, async (t) => {
    let program = code;
    if (code.includes("http://localhost:7379")) {
      const { url } = await startRedis(t);
      const webdis = await startWebdis(t, url);
      program = code.replace("http://localhost:7379", `http://127.0.0.1:${webdis.port}`);
    }
    // Beside the package, which it imports by name.
    const folder = mkdtempSync(fileURLToPath(new URL("./example-", import.meta.url)));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "example.mjs");
    writeFileSync(file, program);
    const { status, stderr } = spawnSync(process.execPath, [file], { cwd: folder, encoding: "utf8", timeout: 60_000 });
    assert.deepEqual([status, stderr], [0, ""], code);
  });
});
