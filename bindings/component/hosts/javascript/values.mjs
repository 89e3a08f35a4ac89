// What a golden vector says, as values of the transpiled component, guided by the types of the WIT.

/** Of fields that a file leaves out where the WIT has no option. */
const DEFAULTS = {
  owner: "",
  "lock-delay-ms": 0n,
  durability: "not-declared",
  birth: "no",
  "retention-ms": 604_800_000n,
  "unless-done": false,
  "trust-quorum": false,
  "even-if-done": false,
  unsettled: false,
  "result-dropped": false,
};
/** Bytes that a file has as text; others are hexadecimal. */
const TEXTS = new Set(["body", "replies"]);
/** Cases that are called otherwise. */
const CASES = { answered: "outcomes" };

const kebab = (name) => name.replaceAll("_", "-");
const camel = (name) => name.replace(/-([a-z0-9])/g, (_, letter) => letter.toUpperCase());

export class Values {
  #types;

  /** `types` as `wit.mjs` reads them. */
  constructor(types) {
    this.#types = types;
  }

  /** What a file says, as a value of a type. */
  of(type, said) {
    switch (type.kind) {
      case "name":
        return this.#named(type.name, said);
      case "option":
        if (said === null || said === undefined || "foreign" in Object(said)) return undefined;
        return this.of(type.of, "lease" in Object(said) ? said.lease : said);
      case "list":
        return typeof said === "string" ? unhex(said) : said.map((item) => this.of(type.of, item));
      case "enum":
        return kebab(said);
      case "variant": {
        const [[name, content]] = Object.entries(said);
        const tag = CASES[name] ?? kebab(name);
        const found = type.cases.find(([name]) => name === tag);
        if (found === undefined) throw new Error(`no such case: ${tag}`);
        return found[1] ? { tag, val: this.of(found[1], content) } : { tag };
      }
      case "record":
        return this.#record(type.fields, said);
      default:
        throw new Error(`a value of the kind ${type.kind}`);
    }
  }

  /** One value of a type that the WIT has a name for. */
  #named(name, said) {
    if (name === "u64") return BigInt(said);
    return this.#types.has(name) ? this.of(this.#types.get(name), said) : said;
  }

  #record(fields, said) {
    const names = fields.map(([name]) => name);
    if (names.join() === "args") return { args: said.map((text) => new TextEncoder().encode(text)) };
    // A header or a sort key.
    if (Array.isArray(said)) return Object.fromEntries(names.map((name, at) => [name, said[at]]));
    if (names.join() === "lock,event") {
      // A file has the lock within the event.
      const [content] = Object.values(said);
      return { lock: BigInt(content.lock), event: this.of(fields[1][1], said) };
    }
    // A record around a variant, which a file does without.
    if (names.length === 1 && this.#isVariant(fields[0][1]) && !(names[0] in said)) {
      return { [names[0]]: this.of(fields[0][1], said) };
    }
    return Object.fromEntries(fields.map(([name, type]) => [camel(name), this.#field(name, type, said)]));
  }

  #field(name, type, said) {
    const key = name.replaceAll("-", "_");
    const inNs = key.replace(/_ms$/, "_ns");
    if (TEXTS.has(name) && key in said) return new TextEncoder().encode(said[key]);
    if (key in said) return this.of(type, said[key]);
    // Rounded up, as the component does.
    if (inNs !== key && inNs in said) return this.of(type, Math.ceil(said[inNs] / 1_000_000));
    return type.kind === "option" ? undefined : DEFAULTS[name];
  }

  #isVariant(type) {
    return type.kind === "name" && this.#types.get(type.name)?.kind === "variant";
  }
}

export const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

/** Text that is the same for equal values, whatever order their fields and headers have. */
export function shown(value) {
  return JSON.stringify(ordered(value), null, 1);
}

function ordered(value) {
  if (typeof value === "bigint") return `${value} (u64)`;
  if (value instanceof Uint8Array) return `bytes ${Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(
    fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, field]) => [name, name === "headers" ? headers(field) : ordered(field)]),
  );
}

const headers = (list) => list.map(({ name, value }) => `${name}: ${value}`).sort();
