// The playground in one file that needs no server: build.mjs TRANSPILED OUTPUT.
//
// Browsers load no modules from files, so the modules become one script. Each keeps a scope of its own.

import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const [transpiled, output] = process.argv.slice(2);
const source = dirname(fileURLToPath(import.meta.url));

const IMPORT = /^import (?:(?<names>\{[^}]*\})|(?<one>\w+)) from "\.\/(?<path>[\w./-]+)";$/gm;
const EXPORT = /^export (?<kind>const|class|function|async function) (?<name>\w+)/gm;

const made = {
  "component/leasehold.mjs": await component(),
  "component/packed.mjs": `const packed = ${JSON.stringify(await packed())};\nexport default packed;`,
};

async function component() {
  const code = await readFile(join(transpiled, "leasehold.js"), "utf8");
  const parts = code.split("export function instantiate(");
  if (parts.length !== 2) throw new Error("the transpiled component exports something else than `instantiate`");
  return parts.join("\nexport function instantiate(");
}

/** The component's WebAssembly by file name, compressed, in base64. */
async function packed() {
  const names = (await readdir(transpiled)).filter((name) => name.endsWith(".wasm")).sort();
  const one = async (name) => [name, gzipSync(await readFile(join(transpiled, name)), { level: 9 }).toString("base64")];
  return Object.fromEntries(await Promise.all(names.map(one)));
}

/** Modules in an order in which each comes after those that it imports. */
async function ordered(path, done, under) {
  if (done.has(path)) return done;
  if (under.includes(path)) throw new Error(`modules import each other: ${[...under, path].join(" > ")}`);
  const code = made[path] ?? (await readFile(join(source, path), "utf8"));
  for (const { groups } of code.matchAll(IMPORT)) await ordered(groups.path, done, [...under, path]);
  done.set(path, code);
  return done;
}

/** A module as a block that leaves what it exports in `modules`. Nothing but the forms above is understood. */
function block(path, code, isLast) {
  const names = [...code.matchAll(EXPORT)].map(({ groups }) => groups.name);
  const body = code
    .replace(IMPORT, (...found) => {
      const { names, one, path } = found.at(-1);
      const wanted = names === undefined ? `{ default: ${one} }` : names.replace(/ as /g, ": ");
      return `const ${wanted} = modules[${JSON.stringify(path)}];`;
    })
    .replace(EXPORT, "$1 $2")
    .replace(/^export default (\w+);$/m, (_, name) => {
      names.push(`default: ${name}`);
      return "";
    });
  if (/^(import|export)\b/m.test(body)) throw new Error(`${path} imports or exports in a way that is not understood here`);
  const leave = isLast ? "" : `\nmodules[${JSON.stringify(path)}] = { ${names.join(", ")} };`;
  return `// ${path}\n{\n${body}${leave}\n}\n`;
}

const modules = [...(await ordered("main.mjs", new Map(), []))];
const blocks = modules.map(([path, code], at) => block(path, code, at === modules.length - 1));
const script = `const modules = {};\n${blocks.join("")}`.replaceAll("</script", "<\\/script");
const style = await readFile(join(source, "style.css"), "utf8");

// Nothing is loaded from anywhere, and nothing runs but what stands in the page.
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = [
  "default-src 'none'",
  "img-src data:",
  `script-src ${hash(script)} 'wasm-unsafe-eval'`,
  `style-src ${hash(style)}`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const replaced = [
  [
    '<meta name="color-scheme"',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">\n<meta name="color-scheme"`,
  ],
  ['<link rel="stylesheet" href="style.css">', `<style>${style}</style>`],
  ['<script type="module" src="main.mjs"></script>', `<script type="module">${script}</script>`],
];
let page = await readFile(join(source, "index.html"), "utf8");
for (const [from, to] of replaced) {
  if (page.split(from).length !== 2) throw new Error(`index.html has to say ${from} once`);
  page = page.split(from).join(to);
}

await mkdir(dirname(output), { recursive: true });
await writeFile(output, page);
console.log(`${output}: ${page.length} bytes, ${gzipSync(page).length} gzipped, ${modules.length} modules`);
