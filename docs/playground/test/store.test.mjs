// The store of the playground answers as the core's own node does, whose answers are in store.json.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { Values, shown } from "../../../bindings/component/hosts/javascript/values.mjs";
import { read } from "../../../bindings/component/hosts/javascript/wit.mjs";
import { Node } from "../store.mjs";

const beside = (path) => readFile(new URL(path, import.meta.url), "utf8");
const values = new Values(read(await beside("../../../wit/leasehold.wit")).types);
const valueOf = (name, said) => values.of({ kind: "name", name }, said);
const QUORUM = new Uint8Array(16).fill(0x70);

/** Why a node refuses is said in other words, and of what kind the refusal is alone counts. */
function essence(outcome) {
  const denial = outcome.val?.refusal?.tag === "denied" ? outcome.val.refusal.val : undefined;
  if (denial !== undefined) delete denial.detail;
  return shown(outcome);
}

test("it answers as the original does", async () => {
  const runs = JSON.parse(await beside("store.json"));
  let compared = 0;
  for (const [number, { is_voter: isVoter, steps }] of runs.entries()) {
    const node = new Node();
    if (isVoter) node.join(QUORUM, 8_000n);
    for (const [at, step] of steps.entries()) {
      if ("wipe" in step) {
        node.wipe();
        continue;
      }
      const now = { uptimeNs: BigInt(step.at.uptime_ns), unixMs: BigInt(step.at.unix_ms) };
      const answer = node.serve(valueOf("op", step.op), now);
      const where = `run ${number}, step ${at}: ${JSON.stringify(step.op)}`;
      assert.equal(essence(answer), essence(valueOf("outcome", step.outcome)), where);
      compared += 1;
    }
  }
  assert.ok(compared > 300, `${compared} answers`);
});

const NOW = { uptimeNs: 0n, unixMs: 10n };
const LATER = { uptimeNs: 3_600_000_000_000n, unixMs: 36_010n };
const nonce = (number) => new Uint8Array(16).fill(number);
const acquire = (number, seq, expect) => ({
  tag: "acquire",
  val: {
    nonce: nonce(number),
    seq,
    recordTtlMs: 1_000n,
    floor: 10n,
    expect,
    owner: "A",
    data: undefined,
    member: undefined,
  },
});
const granted = ({ val }) => val.applied?.val?.counter;
const holding = ({ val }) => val.refusal.val.holding;

test("if records do not expire, a waiter observes one for its ttl", () => {
  const node = new Node({ runsOut: false });
  assert.equal(granted(node.serve(acquire(1, 1), NOW)), 10n);
  const seen = holding(node.serve(acquire(2, 1), LATER));
  assert.deepEqual([seen.leftMs, seen.recordTtlMs, seen.released], [undefined, 1_000n, false]);
  const renewal = { tag: "renew", val: { nonce: nonce(1), seq: 2, recordTtlMs: 1_000n, quorum: undefined } };
  assert.equal(node.serve(renewal, LATER).val.applied.tag, "renewed");
  const changed = holding(node.serve(acquire(2, 2, seen.version), LATER));
  assert.notDeepEqual(changed.version, seen.version, "the holder was alive in between");
  assert.equal(granted(node.serve(acquire(2, 3, changed.version), LATER)), 11n);
  assert.equal(node.serve(renewal, LATER).tag, "not-applied");
});
