// Plays golden vectors against the component. Nothing here belongs to one JavaScript runtime.

import { Values, shown, unhex } from "./values.mjs";
import { read } from "./wit.mjs";

const ANSWERS = new Set(["http_response", "redis_replies", "rows", "server_error"]);
/** Calls that are no method of that name. */
const METHODS = { timeout: "handle-timeout", response: "handle-response", ...named(ANSWERS, "handle-response") };
/** Inputs of `step` that are called otherwise. */
const INPUTS = named(ANSWERS, "response");
const camel = (name) => name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
const REQUESTS = new Set(["transmit"]);

function named(names, name) {
  return Object.fromEntries([...names].map((from) => [from, name]));
}

/** How a host may drive a client; the same must come of both. */
export const WAYS = ["call by call", "step by step"];

/**
 * Plays all `vectors`, a map of texts by file name, both ways. `component` makes a new instance; `wit` is the text of the
 * interface. Answers what to print, or throws what differs.
 */
export function playAll({ component, wit, vectors }) {
  const names = [...vectors.keys()];
  const wired = names.filter((name) => name.startsWith("wire/")).length;
  if (names.length - wired <= 20 || wired <= 10) throw new Error("the vectors are not there");
  const { types, methods } = read(wit);
  return WAYS.map((way) => {
    let steps = 0;
    let calls = 0;
    for (const [name, text] of vectors) {
      const vector = JSON.parse(text);
      if (vector.format !== 1) throw new Error(`${name} has another format`);
      const played = new Played(component(), new Values(types), methods, vector);
      played.play(name, way);
      steps += vector.steps.length;
      calls += played.calls;
    }
    return `${names.length} golden vectors, ${steps} steps in ${calls} calls, ${way}`;
  });
}

class Played {
  calls = 1;
  #client;
  #values;
  #methods;
  #vector;
  #now;

  constructor({ Client }, values, methods, vector) {
    this.#values = values;
    this.#methods = methods;
    this.#vector = vector;
    this.#tell(vector.start);
    const create = "stores" in vector ? "create-wired" : "create";
    this.#client = Client[camel(create)](...this.#arguments(create, vector));
  }

  play(name, way) {
    const steps = [...this.#vector.steps];
    for (let n = 0; steps.length > 0; n += 1) {
      const step = steps.shift();
      try {
        if (way === "call by call") this.#compare(step, this.#call(step), step);
        else this.#step(step, steps);
      } catch (error) {
        throw new Error(`${name}, ${way}, step ${n}: ${this.#vector.why}\n${JSON.stringify(step.do)}\n${error.stack}`);
      }
    }
  }

  /** One method call, and everything that comes of it. */
  #call(step) {
    this.#tell({ monotonic_ns: step.at_ns, unix_ms: step.unix_ms });
    const [[name, said]] = Object.entries(step.do);
    const method = METHODS[name] ?? name.replaceAll("_", "-");
    const given = this.#arguments(method, { ...said, fresh: step.entropy, response: response(name, said) });
    const outputs = [];
    this.calls += 1;
    try {
      this.#client[camel(method)](...given);
    } catch (error) {
      if (error.payload === undefined) throw error;
      outputs.push({ tag: "rejected", val: { lock: BigInt(said.lock), error: error.payload } });
    }
    for (;;) {
      this.calls += 1;
      const output = this.#client.pollOutput(this.#now);
      if (output.tag === "wake-at") return { outputs, wakeAtNs: output.val.atNs };
      outputs.push(output);
    }
  }

  /** The same as the only input of a step, together with the timeout after it where that is due at once. */
  #step(step, later) {
    this.#tell({ monotonic_ns: step.at_ns, unix_ms: step.unix_ms });
    const [[name, said]] = Object.entries(step.do);
    const fresh = unhex(step.entropy ?? "00".repeat(16));
    const isDue = step.wake_at_ns !== null && step.wake_at_ns <= step.at_ns;
    const isJoined = isDue && later[0]?.at_ns === step.at_ns && "timeout" in later[0].do;
    let expected = step;
    if (isJoined) {
      const next = later.shift();
      fresh.set(unhex(next.entropy));
      expected = { outputs: [...step.outputs, ...next.outputs], wake_at_ns: next.wake_at_ns };
    } else if (name === "acquire") {
      fresh[0] ^= 1;
    }
    const input = { [INPUTS[name] ?? name]: { ...said, response: response(name, said) } };
    const inputs = name === "timeout" ? [] : [this.#values.of({ kind: "name", name: "input" }, input)];
    this.calls += 1;
    this.#compare(expected, this.#client.step(fresh, this.#now, inputs), { isJoined });
  }

  #compare(step, found, { isJoined = false }) {
    const { outputs, wakeAtNs } = found;
    const expected = step.outputs.map((output) => this.#values.of({ kind: "name", name: "output" }, output));
    const wanted = { outputs: isJoined ? requestsLast(expected) : expected, wakeAtNs: step.wake_at_ns };
    const got = { outputs: isJoined ? requestsLast(outputs) : outputs, wakeAtNs: number(wakeAtNs) };
    if (shown(wanted) !== shown(got)) throw new Error(`expected ${shown(wanted)}\nfound ${shown(got)}`);
  }

  /** What a method takes, by the names of its parameters. */
  #arguments(method, said) {
    return this.#methods.get(method).map(([name, type]) => (name === "now" ? this.#now : this.#values.of(type, said[name.replaceAll("-", "_")])));
  }

  /** A wall clock that is left out shows what it showed before. */
  #tell({ monotonic_ns: monotonic, unix_ms: unix }) {
    this.#now = { monotonicNs: BigInt(monotonic), unixMs: unix === undefined ? this.#now.unixMs : BigInt(unix) };
  }
}

function response(name, said) {
  return ANSWERS.has(name) ? { [name]: said } : said.result;
}

function requestsLast(outputs) {
  const [requests, others] = [true, false].map((is) => outputs.filter(({ tag }) => REQUESTS.has(tag) === is));
  return [...others, ...requests];
}

const number = (ns) => (ns === undefined ? null : Number(ns));
