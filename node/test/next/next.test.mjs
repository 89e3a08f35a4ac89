// Applications of Next.js, without settings of ours: `cargo xtask prove next` runs this.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder } from "../helpers/folder.mjs";
import { installed } from "../helpers/others.mjs";
import { freePort } from "../helpers/server.mjs";
import { undo } from "../helpers/undo.mjs";
import { until } from "../helpers/until.mjs";

const USES = `import { connect } from "leasehold";
async function token() {
  const client = await connect("memory:");
  try {
    return await client.using("a", (lease) => lease.token);
  } finally {
    await client.close();
  }
}`;
const FILES = {
  "package.json": "{}",
  "app/layout.js": "export default ({ children }) => <html><body>{children}</body></html>;",
  "app/lock/route.js": `${USES}\nexport const dynamic = "force-dynamic";\nexport const GET = async () => Response.json({ token: await token() });`,
  "pages/api/lock.js": `${USES}\nexport default async (_, response) => response.json({ token: await token() });`,
};
const quiet = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };

/** Takes a lock in both kinds of routes. */
async function answers(t, cwd, ...command) {
  const port = await freePort();
  const env = { ...quiet, PORT: String(port), HOSTNAME: "127.0.0.1" };
  const server = spawn(process.execPath, command, { cwd, env, stdio: ["ignore", "inherit", "inherit"] });
  const ended = once(server, "exit");
  undo(t, () => ended);
  undo(t, () => void server.kill());
  for (const path of ["lock", "api/lock"]) {
    const response = await until(() => fetch(`http://127.0.0.1:${port}/${path}`).catch(() => undefined));
    assert.equal(response.status, 200, path);
    assert.ok(Number.isSafeInteger((await response.json()).token), path);
  }
}

for (const bundler of ["webpack", "turbopack"]) {
  for (const standalone of [false, true]) {
    test(`locks in Next.js by ${bundler}${standalone ? ", standalone" : ""}`, async (t) => {
      const config = `export default { ${standalone ? 'output: "standalone"' : ""} };`;
      const root = installed(t, { ...FILES, "next.config.mjs": config });
      // Real folders: what is traced is what lies below the application's own.
      cpSync(join(process.env.LEASEHOLD_NEXT, "node_modules"), join(root, "node_modules"), { recursive: true });
      const next = join(root, "node_modules/next/dist/bin/next");
      const flags = bundler === "turbopack" ? ["--turbopack"] : [];
      execFileSync(process.execPath, [next, "build", ...flags], { cwd: root, env: quiet, stdio: ["ignore", "inherit", "inherit"] });
      if (!standalone) return answers(t, root, next, "start");
      const alone = folder(t);
      cpSync(join(root, ".next/standalone"), alone, { recursive: true });
      await answers(t, alone, "server.js");
    });
  }
}
