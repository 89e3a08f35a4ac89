// The types of a WIT as data: enough of its grammar to read `leasehold.wit`, and no more.

const BLOCK = /\b(record|variant|enum|resource)\s+(%?[a-z0-9-]+)\s*\{/g;
const ALIAS = /\btype\s+(%?[a-z0-9-]+)\s*=\s*([^;]+);/g;
const FUNCTION = /(%?[a-z0-9-]+):\s*(?:static\s+)?func\(([^)]*)\)(?:\s*->\s*([^;]+))?;/g;

/** What a WIT defines: `types` by name, and of the resource `client` its `methods`. */
export function read(text) {
  const code = text.replace(/\/\/.*$/gm, "");
  const types = new Map();
  const define = (name, type) => {
    if (types.has(name)) throw new Error(`${name} is defined twice, and names here have no scope`);
    types.set(name, type);
  };
  for (const [, name, type] of code.matchAll(ALIAS)) define(plain(name), parsed(type));
  const methods = new Map();
  for (const found of code.matchAll(BLOCK)) {
    const [opening, kind, name] = found;
    const start = found.index + opening.length;
    const body = code.slice(start, code.indexOf("}", start));
    if (kind === "record") define(plain(name), { kind, fields: entries(body, field) });
    if (kind === "variant") define(plain(name), { kind, cases: entries(body, variantCase) });
    if (kind === "enum") define(plain(name), { kind });
    if (kind === "resource" && name === "client") {
      for (const [, method, parameters] of body.matchAll(FUNCTION)) methods.set(method, entries(parameters, field));
    }
  }
  return { types, methods };
}

const entries = (body, entry) => body.split(",").map((text) => text.trim()).filter(Boolean).map(entry);

function field(text) {
  const [, name, type] = /^(%?[a-z0-9-]+)\s*:\s*(.+)$/.exec(text);
  return [plain(name), parsed(type)];
}

function variantCase(text) {
  const [, name, payload] = /^(%?[a-z0-9-]+)(?:\((.+)\))?$/.exec(text);
  return [plain(name), payload && parsed(payload)];
}

function parsed(text) {
  const [, outer, inner] = /^(option|list|result)<(.+)>$/.exec(text.trim()) ?? [];
  if (outer === "result") return { kind: "result" };
  return outer ? { kind: outer, of: parsed(inner) } : { kind: "name", name: plain(text.trim()) };
}

/** Names that would be keywords carry a sign that does not belong to them. */
const plain = (name) => name.replace("%", "");
