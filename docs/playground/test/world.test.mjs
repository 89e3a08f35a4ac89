// The model of the playground with the real component in it: its scenarios, and any other course of events.

import assert from "node:assert/strict";
import { test } from "node:test";

import { stream } from "../random.mjs";
import { SCENARIOS, scenarioOf } from "../scenarios.mjs";
import { DEEDS, Session } from "../session.mjs";
import { read, usual, written } from "../url.mjs";
import { STORES, World } from "../world.mjs";
import { protocol } from "./component.mjs";

const told = SCENARIOS.filter(({ steps }) => steps.length > 0);

/** All that can be seen of a session, and nothing that cannot be repeated. */
function course({ world, director }) {
  const { log, witness, resource, network, nodes } = world;
  const records = nodes.map(({ node, isDown }) => [node.record, node.marker, isDown]);
  const seen = [
    log,
    witness.spans,
    witness.pauses,
    witness.breaches,
    resource,
    network.shown.length,
    records,
    director.done,
  ];
  return JSON.stringify(seen, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
}

function ended(changes) {
  const session = new Session(protocol, { ...usual(changes.scenario), ...changes });
  session.finish();
  return session;
}

const texts = ({ world }, name) =>
  world.log.filter(({ worker }) => world.workers[worker]?.name === name).map(({ text }) => text);
const tokensOf = ({ world }) =>
  world.witness.spans
    .flat()
    .sort((one, other) => one.fromNs - other.fromNs)
    .map(({ token }) => token);

function assertPromises({ world }, hint) {
  assert.deepEqual(
    world.witness.breaches.filter(({ excuse }) => excuse === undefined),
    [],
    hint,
  );
}

test("every scenario says why in two sentences", () => {
  for (const { title, why } of SCENARIOS) {
    assert.equal(why.length, 2, title);
    for (const sentence of why) assert.match(sentence, /^[A-Z][^.?!]*\.$/, title);
  }
});

for (const { id, title, store } of told) {
  for (const kind of store === undefined ? Object.keys(STORES) : [store]) {
    test(`${title}, on ${STORES[kind].title}, goes as it is told`, () => {
      const session = ended({ scenario: id, store: kind });
      assert.deepEqual([...session.director.missed], []);
      assertPromises(session);
    });
  }
}

test("the pause: the late write is refused, and without a guard an update is lost", () => {
  const guarded = ended({ scenario: "pause" });
  const [first, second] = tokensOf(guarded);
  assert.ok(second > first);
  const refused = guarded.world.resource.entries.filter(({ isAccepted }) => !isAccepted);
  assert.deepEqual(
    refused.map(({ worker, what, token }) => [worker, what, token]),
    [[0, "write", first]],
  );
  assert.equal(guarded.world.resource.lostUpdates, 0);
  assert.match(texts(guarded, "A").at(-1), /is refused by the resource/);

  const open = ended({ scenario: "pause", isGuarded: false });
  assert.ok(open.world.resource.lostUpdates > 0);
  assert.equal(
    open.world.resource.entries.every(({ isAccepted }) => isAccepted),
    true,
  );
  // Whatever the resource does, nobody believed to hold the lock beside another.
  assertPromises(open);
});

test("the lost reply: the worker recognises its own grant, long before the record has run out", () => {
  const session = ended({ scenario: "reply" });
  assert.ok(texts(session, "A").some((text) => text.startsWith("finds its own name in the store")));
  const [[{ fromNs, token }], [{ token: next }]] = session.world.witness.spans;
  assert.ok(fromNs < session.settings.ttlMs * 1e6 * 0.5);
  assert.ok(next > token);
});

test("the split vote: nobody has a majority at first, and a counter is raised", () => {
  const session = ended({ scenario: "split" });
  const { replies } = session.world.network;
  assert.ok(replies.release >= 5);
  assert.ok(replies.raise > 0);
  assert.equal(tokensOf(session).length, 1);
});

test("the amnesiac node: it abstains while the first lease lasts, and votes again once its counter was raised", () => {
  const session = new Session(protocol, usual("amnesia"));
  const [, , forgetful] = session.world.nodes;
  session.next();
  const votes = forgetful.node.record;
  assert.ok(votes !== undefined);
  session.next();
  assert.equal(forgetful.node.record, undefined);
  assert.equal(forgetful.node.marker.phase, "joining");
  assert.deepEqual(session.world.witness.holders(), [0]);
  session.next();
  assert.deepEqual(session.world.witness.holders(), []);
  session.next();
  assert.deepEqual(session.world.witness.holders(), [1]);
  assert.equal(forgetful.node.record, undefined);
  session.next();
  assert.equal(forgetful.node.marker.phase, "rejoined");
  const [first, second] = tokensOf(session);
  assert.ok(second > first && forgetful.node.record.counter >= second);
  assertPromises(session);
});

test("the nightly run: it is done once, and who comes late or wakes up does nothing", () => {
  const session = ended({ scenario: "run" });
  const writers = session.world.resource.entries.filter(({ what, isAccepted }) => what === "write" && isAccepted);
  assert.deepEqual([...new Set(writers.map(({ worker }) => worker))], [0, 1]);
  assert.equal(texts(session, "C").at(-1), "is told that B has done the run, and does nothing");
  assert.equal(session.world.nodes[0].node.record.completion.owner, "B");
  session.deed("ask", "a");
  session.advance(session.nowNs + 3e9);
  assert.equal(session.world.worker("A").phase, "done");
});

/** A world without a scenario, and what lets its time pass. */
function bare(changes) {
  const world = new World(protocol, { ...usual(), ...changes });
  const pass = (seconds) => world.runUntil(world.nowNs + seconds * 1e9);
  return { world, pass };
}

test("a run whose finish was never answered is finished all the same", () => {
  const { world, pass } = bare({ workers: 1, isRun: true });
  const [worker] = world.workers;
  worker.ask();
  pass(2);
  world.network.rule = ({ kind, isReply }) => (kind === "finish" && isReply ? { lose: true } : undefined);
  worker.finish();
  pass(1);
  assert.equal(worker.phase, "finishing");
  world.network.rule = () => undefined;
  pass(7);
  assert.equal(worker.phase, "done");
  assert.match(world.log.at(-1).text, /^has it in writing/);
});

test("the hand-over: turns come in the order of the queue, and one that is not taken passes on", () => {
  const session = ended({ scenario: "turn" });
  const { log, workers } = session.world;
  const called = log.filter(({ text }) => text.startsWith("is next in the queue")).map(({ worker }) => workers[worker].name);
  assert.deepEqual(called.slice(0, 2), ["B", "C"]);
  const [, , [stopped]] = session.world.witness.spans;
  assert.equal(stopped, undefined, "C stood still and never had the lock");
});

test("a waiter that gives up leaves the queue, and passes its turn on", () => {
  const { world, pass } = bare({ workers: 3, store: "queue" });
  const [a, b, c] = world.workers;
  const queued = () => world.nodes[0].queue.tickets().map((ticket) => ticket.split("/")[0]);
  for (const worker of [a, b, c]) {
    worker.ask();
    pass(2);
  }
  assert.deepEqual(queued(), ["1", "2"]);
  // B gives up while the word that its turn has come is on its way.
  a.release();
  pass(0.45);
  assert.match(world.log.at(-1).text, /^is next in the queue/);
  b.release();
  pass(1.5);
  assert.deepEqual([c.phase, queued()], ["held", []]);
  a.ask();
  b.ask();
  pass(2);
  assert.deepEqual(queued().toSorted(), ["0", "1"]);
  b.release();
  pass(1);
  assert.deepEqual(queued(), ["0"]);
});

test("a scenario takes the same course in one go, frame by frame, step by step, and from a link", () => {
  for (const { id } of SCENARIOS) {
    const settings = { ...usual(id), lossPercent: 10 };
    const atNs = 21_370_000_000;
    const inOneGo = new Session(protocol, { ...settings, atNs });
    const byFrame = new Session(protocol, settings);
    while (byFrame.nowNs < atNs) byFrame.advance(Math.min(atNs, byFrame.nowNs + 16_700_000));
    assert.equal(course(byFrame), course(inOneGo), id);
    const byStep = new Session(protocol, settings);
    while (byStep.nowNs < atNs) byStep.advance(atNs, true);
    assert.equal(course(byStep), course(inOneGo), id);
    const { settings: linked, notes } = read(written(settings, atNs, []));
    assert.deepEqual(notes, []);
    assert.equal(course(new Session(protocol, linked)), course(inOneGo), id);
  }
});

/** Presses buttons as chance will have it. */
function played({ store, seed, scenario, deeds, verbs }) {
  const random = stream(seed, "somebody who presses buttons");
  const pick = (list) => list[Math.floor(random() * list.length)];
  const session = new Session(protocol, {
    ...usual(scenario),
    store,
    seed,
    ttlMs: pick([2_000, 8_000, 30_000]),
    driftPercent: pick([0, 1, 10]),
  });
  const { world } = session;
  const numbers = { latency: [5, 80, 300, 1_000], loss: [0, 5, 30], guard: [0, 1] };
  for (let n = 0; n < deeds; n += 1) {
    session.advance(session.nowNs + random() * 3e9);
    const verb = pick(verbs);
    session.deed(verb, pick(numbers[verb] ?? DEEDS[verb].to.among(world)));
  }
  session.advance(session.nowNs + 20e9);
  return session;
}

test("whatever is pressed, there are never two holders, and tokens grow", () => {
  const all = Object.keys(DEEDS);
  // A single store that loses its records excuses what comes of it, and would hide other reasons.
  const withoutWipe = all.filter((verb) => verb !== "wipe");
  let grants = 0;
  for (let seed = 0; seed < 20; seed += 1) {
    for (const store of Object.keys(STORES)) {
      const scenario = seed % 4 === 0 ? scenarioFor(store, seed) : "free";
      const verbs = store === "quorum" || seed % 2 === 0 ? all : withoutWipe;
      const session = played({ store, seed, scenario, deeds: 60, verbs });
      assertPromises(session, `${store}, seed ${seed}: ${written(session.settings, session.nowNs, session.deeds)}`);
      grants += tokensOf(session).length;
    }
  }
  assert.ok(grants > 200, `${grants} grants`);
});

const scenarioFor = (store, seed) =>
  (store === "quorum" ? told : told.filter((each) => each.store === undefined))[seed % 2].id;

test("a single store that loses its records is told apart from a broken promise", () => {
  const seen = new Set();
  for (let seed = 0; seed < 20; seed += 1) {
    const { world } = played({
      store: "single",
      seed,
      scenario: "free",
      deeds: 60,
      verbs: ["wipe", "pause", "wake", "cut", "mend"],
    });
    for (const { excuse, what } of world.witness.breaches) {
      assert.match(excuse, /lost its records/);
      seen.add(what);
    }
  }
  assert.ok(seen.has("holders"), "the witness has to be able to see it");
});

test("a holder that stood still for a moment works on", () => {
  const stopAt = (work) => {
    const world = new World(protocol, { ...usual(), workers: 1 });
    const [worker] = world.workers;
    const pass = (ms) => world.runUntil(world.nowNs + ms * 1e6);
    worker.ask();
    while (worker.work !== work) pass(10);
    worker.pause();
    pass(2_000);
    worker.wake();
    const before = world.resource.version;
    pass(8_000);
    return [world.resource.version - before, worker.phase];
  };
  for (const work of ["claiming", "ready", "checked", "writing"]) {
    const [written, phase] = stopAt(work);
    assert.equal(phase, "held", work);
    assert.ok(written >= 3 && written <= 6, `${work}: ${written} writes`);
  }
});

test("two holders are seen, and told once", () => {
  const session = new Session(protocol, usual("pause"));
  session.next();
  session.next();
  session.deed("wipe", 1);
  session.next();
  const seen = session.world.witness.breaches.map(({ what, workers, excuse }) => [what, workers, excuse !== undefined]);
  assert.deepEqual(seen, [["holders", [0, 1], true]]);
});

test("what was forgotten excuses two holders for as long as a lease, and no longer", () => {
  const { world } = new Session(protocol, usual("pause"));
  const [worker] = world.workers;
  const believing = (is) => Object.assign(worker, { believes: () => is });
  Object.assign(world.workers[1], { believes: () => true });
  world.wipe(world.nodes[0]);
  believing(true);
  for (const ns of [1e9, 2e9, 8.1e9, 9e9]) {
    world.runUntil(ns);
    world.witness.look();
  }
  assert.deepEqual(
    world.witness.breaches.map(({ excuse }) => excuse),
    ["the only store has lost its records", undefined],
  );
});

test("a slider that is moved in many steps is one deed", () => {
  const session = new Session(protocol, usual("free"));
  for (const [verb, to] of [
    ["latency", 305],
    ["latency", 310],
    ["loss", 1],
    ["latency", 315],
    ["cut", "a"],
    ["mend", "a"],
    ["cut", "a"],
  ]) {
    session.deed(verb, to);
  }
  const done = session.deeds.map(({ verb, to }) => `${verb} ${to}`);
  assert.deepEqual(done, ["latency 310", "loss 1", "latency 315", "cut a", "mend a", "cut a"]);
});

test("a quorum never has two holders, even if it forgets everything", () => {
  for (let seed = 100; seed < 112; seed += 1) {
    const verbs = ["wipe", "wipe", "wipe", "kill", "revive", "cut", "mend", "pause", "wake"];
    const { world } = played({ store: "quorum", seed, scenario: "free", deeds: 60, verbs });
    assert.deepEqual(
      world.witness.breaches.filter(({ what }) => what === "holders"),
      [],
    );
  }
});

test("what a visitor did is in the link, and happens again", () => {
  for (const scenario of ["free", "pause", "split"]) {
    const session = played({
      store: scenarioOf(scenario).store ?? "single",
      seed: 3,
      scenario,
      deeds: 30,
      verbs: Object.keys(DEEDS),
    });
    session.align();
    const link = written(session.settings, session.nowNs, session.deeds);
    const { settings, notes } = read(link);
    assert.deepEqual(notes, []);
    const again = new Session(protocol, settings);
    assert.equal(course(again), course(session));
    assert.equal(written(again.settings, again.nowNs, again.deeds), link);
  }
});
