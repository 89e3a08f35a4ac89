// The code for Node in all pages, compiled as TypeScript: strictly, as programs and as bundlers resolve modules.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const source = process.env.LEASEHOLD_SOURCE;
const BLOCK = /(?:^<!-- (?<completion>[^\n]*) -->\n)?^```(?<language>js|ts|typescript)\n(?<code>.*?)^```$/gms;
/** Parameters without a type: all that plain JavaScript leaves out, and that its users add. */
const UNTYPED = new Set([7006, 7019, 7031]);
const MODES = {
  node16: { module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16 },
  bundler: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
};
/** What a program has around a part of it, for blocks that no test runs: by page and something in the block. */
const AROUND = [
  ["docs/migrating-node.md", "retryCount", 'import { Redis } from "ioredis";'],
  [
    "docs/migrating-node.md",
    "assert.equal",
    'import assert from "node:assert/strict"; import { connect } from "leasehold"; import type { Lock } from "leasehold/compat/redlock"; declare const lock: Lock;',
  ],
  ["docs/node.md", "await using run", 'import type { Client } from "leasehold"; declare const client: Client; declare function report(given: { fence: number }): Promise<void>;'],
  ["docs/node.md", "RunCoordinator", "declare function send(day: Date, given: { fence?: number | undefined; signal?: AbortSignal | undefined }): Promise<void>;"],
  [
    "docs/node.md",
    "@Module",
    `import { Injectable, Module } from "@nestjs/common"; import { Cron, ScheduleModule } from "@nestjs/schedule";
     import { LeaseholdModule, Once, currentRun } from "leasehold/nestjs"; type Receipt = string; type Given = { fence?: number | undefined; signal?: AbortSignal | undefined };
     declare function send(given: Given): Promise<void>; declare function pay(invoice: string, given: Given): Promise<Receipt>;`,
  ],
  ["docs/node.md", "credentials: async", "declare const accessKeyId: string, secretAccessKey: string, sessionToken: string, expiration: Date, url: string;"],
  [
    "docs/idempotency.md",
    "loggedIn",
    "declare function loggedIn(request: Request, env: unknown): Promise<{ user: string }>; declare function charge(order: unknown, env: unknown): Promise<Response>;",
  ],
  [
    "docs/idempotency.md",
    "c.req.raw",
    `import { Hono, type Context } from "hono"; import { connect } from "leasehold/edge"; import { idempotency } from "leasehold/edge/idempotency";
     const app = new Hono(); const principal = (request: Request, env: unknown, c: Context) => String(c.get("user"));
     const once = idempotency((request: Request, env: any, c: Context) => connect(env.LEASEHOLD_STORE), { principal });`,
  ],
];
/** Pages whose blocks use no package of ours. */
const OTHERS = new Set(["docs/component.md"]);

function pages() {
  const docs = readdirSync(join(source, "docs"), { recursive: true }).filter((name) => name.endsWith(".md"));
  return ["README.md", "node/README.md", ...docs.map((name) => `docs/${name}`).sort()];
}

/** Each block as a module: by its own name in a folder of its page, or by the number of its line. */
function modules() {
  const found = new Map();
  for (const page of pages()) {
    const text = readFileSync(join(source, page), "utf8");
    for (const { groups, index } of OTHERS.has(page) ? [] : text.matchAll(BLOCK)) {
      const { completion = "", code } = groups;
      const line = text.slice(0, index).split("\n").length;
      const [, name = String(line)] = /^\/\/ (\S+)\.[cm]?js\n/.exec(code) ?? [];
      const after = completion.startsWith("after: ") ? completion.slice("after: ".length) : "";
      const around = AROUND.filter(([of, part]) => of === page && code.includes(part)).map(([, , text]) => text);
      found.set(`${page.replaceAll(/[^\w.]/g, "-")}/${name}.mts`, [after, ...around, code, "export {};"].join("\n"));
    }
  }
  return found;
}

const MODULES = modules();

test("there are samples", () => {
  assert.ok(MODULES.size > 35, String(MODULES.size));
});

for (const [mode, resolution] of Object.entries(MODES)) {
  test(`every sample compiles strictly, as TypeScript for ${mode}`, () => {
    // Where the package is installed; nothing is written.
    const here = fileURLToPath(new URL("../", import.meta.url));
    const files = new Map([...MODULES].map(([name, code]) => [join(here, name), code]));
    const options = { ...resolution, strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts", "lib.esnext.disposable.d.ts"], types: ["node"], skipLibCheck: true, experimentalDecorators: true };
    const host = ts.createCompilerHost(options);
    const { fileExists, readFile, getSourceFile } = host;
    host.getCurrentDirectory = () => here;
    // Folders of pages are none.
    delete host.directoryExists;
    host.fileExists = (path) => files.has(path) || fileExists(path);
    host.readFile = (path) => files.get(path) ?? readFile(path);
    host.getSourceFile = (path, ...rest) =>
      files.has(path) ? ts.createSourceFile(path, files.get(path), ...rest) : getSourceFile(path, ...rest);
    const program = ts.createProgram([...files.keys()], options, host);
    const wrong = ts.getPreEmitDiagnostics(program).filter(({ code }) => !UNTYPED.has(code));
    const said = wrong.map(({ file, start, code, messageText }) => {
      const at = file && ` ${file.fileName.slice(here.length)}:${file.getLineAndCharacterOfPosition(start).line + 1}`;
      return `TS${code}${at ?? ""}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`;
    });
    assert.deepEqual(said, []);
  });
}
