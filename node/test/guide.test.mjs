// The programs of the README and of the pages below docs, and the commands of those pages that start them. A comment in a page says of other
// blocks which test runs them, or why none does; or it has the code that makes a block whole.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startRedis, startWebdis } from "./helpers/servers.mjs";

// The tests run below the target folder; the runner says where the source is.
const docs = join(process.env.LEASEHOLD_SOURCE, "docs");
const BLOCK = /(?:^<!-- (?<mark>[^\n]*) -->\n)?^```(?<language>\w+)\n(?<code>.*?)^```$/gms;
const FILE = /^\/\/ (\S+\.mjs)\n/;
const HERE = "<!-- console run by node/test/guide.test.mjs -->";
const isMark = (mark) => /^(run by|not run|from)\b/.test(mark);

/** The blocks of a page that this suite runs. */
function blocks(text, language) {
  const marks = [...text.matchAll(new RegExp(`^<!-- ${language} (.*) -->$`, "gm"))].map(([, mark]) => mark);
  if (marks.some(isMark) && !(language === "console" && text.includes(HERE))) return [];
  const found = [...text.matchAll(BLOCK)].map(({ groups }) => groups);
  const own = found.filter((block) => block.language === language && !isMark(block.mark ?? ""));
  return own.map(({ mark, code }) => (mark?.startsWith("after: ") ? `${mark.slice("after: ".length)}\n${code}` : code));
}

const PAGES = ["../README.md", ...readdirSync(docs, { recursive: true }).filter((name) => name.endsWith(".md")).sort()];
const TEXTS = new Map(PAGES.map((name) => [name, readFileSync(join(docs, name), "utf8")]));
const EXAMPLES = PAGES.flatMap((name) => blocks(TEXTS.get(name), "js").map((code) => ({ name, code })));
const STARTED = PAGES.filter((name) => TEXTS.get(name).includes(HERE));

test("there are examples", () => {
  for (const page of ["../README.md", "node.md", "once.md", "compare-and-set.md", "start-node.md"]) assert.ok(EXAMPLES.some(({ name }) => name === page), page);
  for (const part of [/\.once\(/, /leasehold\/cas"/, /leasehold\/protocol"/, /leasehold\/testing"/, /leasehold\/edge"/, /\bobserve\(/]) {
    assert.ok(EXAMPLES.some(({ code }) => part.test(code)), String(part));
  }
  for (const page of ["start-node.md", "start-edge.md"]) assert.ok(STARTED.includes(page), page);
});

EXAMPLES.forEach(({ name, code }, n) => {
  if (STARTED.includes(name) && FILE.test(code)) return;
  test(`example ${n} of the pages runs, in ${name}`, async (t) => {
    const folder = folderFor(t);
    writeFileSync(join(folder, "example.mjs"), await withServers(t, code));
    const { status, stderr } = spawnSync(process.execPath, ["example.mjs"], { cwd: folder, encoding: "utf8", timeout: 60_000 });
    assert.deepEqual([status, stderr], [0, ""], code);
  });
});

for (const name of STARTED) {
  test(`commands print what the page says, in ${name}`, async (t) => {
    const text = await withServers(t, TEXTS.get(name));
    const folder = folderFor(t);
    for (const code of blocks(text, "js")) if (FILE.test(code)) writeFileSync(join(folder, FILE.exec(code)[1]), code);
    // This version of Node, whatever is on the path.
    mkdirSync(join(folder, "bin"));
    writeFileSync(join(folder, "bin", "node"), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`);
    chmodSync(join(folder, "bin", "node"), 0o755);
    const env = { ...process.env, PATH: `${join(folder, "bin")}${delimiter}${process.env.PATH}` };
    for (const command of blocks(text, "console").flatMap((block) => block.replace(/^\$ /, "").split("\n$ "))) {
      const [line, ...expected] = command.trimEnd().split("\n");
      const { stdout } = spawnSync("sh", ["-c", `exec 2>&1; ${line}`], { cwd: folder, env, encoding: "utf8", timeout: 60_000 });
      assert.match(stdout.trimEnd(), pattern(expected.join("\n")), line);
    }
  });
}

/** A folder beside the package, which programs import by name. */
function folderFor(t) {
  const folder = mkdtempSync(fileURLToPath(new URL("./example-", import.meta.url)));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function withServers(t, text) {
  if (!/redis:\/\/localhost|http:\/\/localhost:7379/.test(text)) return text;
  const { url } = await startRedis(t);
  let changed = text.replaceAll("redis://localhost", url);
  if (changed.includes("http://localhost:7379")) {
    const { port } = await startWebdis(t, url);
    changed = changed.replaceAll("http://localhost:7379", `http://127.0.0.1:${port}`);
  }
  return changed;
}

/** Dots stand for any text. */
function pattern(output) {
  const parts = output.split("...").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".+")}$`);
}
