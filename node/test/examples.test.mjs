// Runs each program in examples/node and compares what it prints with the comment at its end.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startRedis, startWebdis } from "./helpers/servers.mjs";

const folder = new URL("../examples/", import.meta.url);
const examples = readdirSync(folder).filter((name) => name.endsWith(".mjs"));

test("there are examples", () => assert.ok(examples.length > 0));

for (const name of examples) {
  test(`the example ${name} prints its output`, async (t) => {
    const file = new URL(name, folder);
    const source = readFileSync(file, "utf8");
    const env = { ...process.env };
    if (source.includes("webdis")) env.LEASEHOLD_STORE = (await startWebdis(t, (await startRedis(t)).url)).url;
    const ran = await promisify(execFile)(process.execPath, [fileURLToPath(file)], { env });
    const [, output] = source.split("\n// Output:\n");
    assert.deepEqual(ran, { stdout: output.replace(/^\/\/ /gm, ""), stderr: "" });
  });
}
