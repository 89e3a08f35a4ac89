// All golden vectors of core/vectors, against leasehold/protocol: JSON values become plain objects, guided by
// the names of its fields, and compared as such.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Client, CommandRejectedError } from "leasehold/protocol";

// The tests run below the target folder; the runner says where the source is.
const VECTORS = new URL("core/vectors/", `file://${process.env.LEASEHOLD_SOURCE}/`);
function files(folder) {
  const names = readdirSync(new URL(folder, VECTORS));
  return names.filter((name) => name.endsWith(".json")).map((name) => folder + name);
}
const OPERATIONS = files("./");
const REQUESTS = files("./wire/");

const camel = (name) => name.replaceAll(/_(.)/g, (_, letter) => letter.toUpperCase());
const kebab = (name) => name.replaceAll("_", "-");

/** Fields whose value is one of several cases. */
const CASES = new Set(["wait", "renewal", "op", "applied", "refusal", "event", "failure", "reason", "error"]);
/** Cases around another variant, which a file leaves out. */
const AROUND = { applied: "applied", not_applied: "refusal" };
const HEX = new Set(["id", "nonce", "version", "expect", "data", "quorum", "fresh", "waited_out", "stamp", "loss", "seed", "about", "bytes"]);
/** Operations on a record that a node of a quorum may have forgotten. */
const REMEMBERED = new Set(["renew", "release", "finish"]);
const NAMES = new Set(["kind", "durability", "birth", "quorum", "access", "when"]);
const TEXTS = new Set(["body", "replies"]);
/** Durations in settings; other times have their unit in their name. */
const LENGTHS = new Set(
  ["ttl", "wait", "interval", "lock_delay", "max_hold", "request_timeout", "max_ttl", "retention", "keep"],
);
/** Outputs with such durations. */
const OUTPUTS = new Set(["member", "above_max_ttl", "above_max_keep", "finish"]);
const INSTANTS = new Set(["at_ns", "deadline_ns", "monotonic_ns"]);
const EACH = { outcomes: "outcome", outputs: "output", stores: "store", params: "sql-value", columns: "sql-value" };
/** Fields that a file leaves out although they exist. */
const DEFAULTS = {
  acquire: { owner: "", unlessDone: false },
  finish: { owner: "" },
  done: { owner: "", unsettled: false },
  member: { durability: "not-declared", birth: "no", retentionMs: 604_800_000 },
};

function one(name, said, within) {
  if (CASES.has(name) && typeof said === "object") return variant(name, said);
  if (EACH[name]) return said.map((item) => variant(EACH[name], item));
  if (name === "commands") return said.map((args) => args.map((arg) => new Uint8Array(Buffer.from(arg))));
  if (name === "headers") return said;
  if (name === "sort_key") return { name: said[0], value: said[1] };
  if (name === "holder") return said.foreign ? undefined : fields(said.lease, "lease");
  if (TEXTS.has(name)) return new Uint8Array(Buffer.from(said));
  // In some operations `quorum` is the knowledge about the node.
  const isHex = HEX.has(name) && typeof said === "string" && !(name === "quorum" && REMEMBERED.has(within));
  if (isHex || within === "bytes") return new Uint8Array(Buffer.from(said, "hex"));
  if (Array.isArray(said)) return said.map((item) => fields(item, name));
  if (typeof said === "object" && said !== null) return fields(said, name);
  return NAMES.has(name) ? kebab(said) : said;
}

function fields(said, within) {
  const made = { ...DEFAULTS[within] };
  for (const [name, value] of Object.entries(said)) {
    const stem = name.replace(/_ns$/, "");
    if (stem === name) made[camel(name)] = one(name, value, within);
    else if (INSTANTS.has(name) || (within === "renewed" && name === "left_ns")) {
      if (value !== null) made[camel(name)] = BigInt(value);
    } else {
      // Rounded up, as for any host.
      const ms = Math.ceil(value / 1e6);
      if (LENGTHS.has(stem) && !OUTPUTS.has(within)) made[camel(stem)] = ms;
      else made[camel(`${stem}_ms`)] = ms;
    }
  }
  for (const [name, value] of Object.entries(made)) if (value === undefined) delete made[name];
  return made;
}

function variant(of, said) {
  const [[name, content]] = Object.entries(said);
  const type = name === "answered" ? "outcomes" : kebab(name);
  if (of === "output" && name === "event") {
    const event = variant("event", content);
    const { lock } = event;
    delete event.lock;
    return { type, lock, event };
  }
  if (of === "outcome" && AROUND[name]) return { type, [AROUND[name]]: variant(AROUND[name], content) };
  const made = { type, ...fields(content, name) };
  // What a store answers to a finish is called so as well.
  return of === "event" && name === "finished" ? { resultDropped: false, ...made } : made;
}

function comparable(output) {
  return output.type === "http-request" ? { ...output, headers: output.headers.toSorted() } : output;
}

class Played {
  constructor(vector) {
    this.now = fields(vector.start);
    const config = { ...fields(vector.config, "config"), nodes: vector.config.nodes.map((node) => fields(node)) };
    const seed = one("seed", vector.seed);
    this.client = vector.stores
      ? Client.createWired(config, one("stores", vector.stores), seed, this.now)
      : Client.create(config, seed, this.now);
  }

  step({ at_ns, unix_ms, entropy, do: call, outputs, wake_at_ns }) {
    this.now = { monotonicNs: BigInt(at_ns), unixMs: unix_ms ?? this.now.unixMs };
    const found = this.call(Object.entries(call)[0], entropy && new Uint8Array(Buffer.from(entropy, "hex")));
    let output;
    while ((output = this.client.pollOutput(this.now)).type !== "wake-at") found.push(output);
    assert.deepStrictEqual(found.map(comparable), one("outputs", outputs).map(comparable));
    assert.equal(output.atNs, wake_at_ns === null ? undefined : BigInt(wake_at_ns));
  }

  /** One call; a refusal becomes an output. */
  call([name, said], fresh) {
    const { client, now } = this;
    const calls = {
      timeout: () => client.handleTimeout(fresh, now),
      acquire: () => client.acquire(said.lock, said.resource, fields(said.options, "options"), fresh, now),
      release: () => client.release(said.lock, now),
      finish: () => client.finish(said.lock, said.run_result && one("run_result", said.run_result), now),
      declare_lost: () => client.declareLost(said.lock, now),
      response: () => client.handleResponse(said.id, variant("response", said.result), now),
      http_response: () => this.answer(name, said),
      redis_replies: () => this.answer(name, said),
      rows: () => this.answer(name, said),
      server_error: () => this.answer(name, said),
      notified: () => client.notified(said.resource, now),
      subscribed: () => client.subscribed(said.node, said.resource, now),
      credentials_renewed: () => client.credentialsRenewed(said.node, now),
      set_credentials: () => client.setCredentials(said.node, variant("credentials", said.credentials), now),
      node_votes: () => client.nodeVotes(said.node, said.loss && one("loss", said.loss), now),
      reseed: () => client.reseed(one("seed", said.seed)),
      close: () => client.close(now),
    };
    try {
      calls[name]();
      return [];
    } catch (error) {
      if (!(error instanceof CommandRejectedError)) throw error;
      return [{ type: "rejected", lock: said.lock, error: error.reason }];
    }
  }

  answer(name, { id, ...said }) {
    this.client.handleResponse(id, { type: kebab(name), ...fields(said) }, this.now);
  }
}

test("all vectors are there", () => {
  assert.ok(OPERATIONS.length >= 36 && REQUESTS.length >= 14);
});

for (const file of [...OPERATIONS, ...REQUESTS]) {
  const vector = JSON.parse(readFileSync(new URL(file, VECTORS), "utf8"));
  test(`vector ${vector.name}: ${vector.why}`, () => {
    assert.equal(vector.format, 1);
    const played = new Played(vector);
    vector.steps.forEach((step, n) => {
      try {
        played.step(step);
      } catch (error) {
        error.message = `step ${n} (${JSON.stringify(step.do)}): ${error.message}`;
        throw error;
      }
    });
  });
}
