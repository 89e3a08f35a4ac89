import assert from "node:assert/strict";
import { once, EventEmitter } from "node:events";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CallbackError, ConfigError, connect, observe } from "leasehold";
import { sqlite } from "./helpers/folder.mjs";
import { until } from "./helpers/until.mjs";

const OPTIONS = { ttl: 20_000 };

test("a candidate leads, resigns, and the next one follows", async (t) => {
  const url = sqlite(t);
  const [first, second] = await Promise.all([connect(url), connect(url)]);
  const heard = [];
  const stage = new EventEmitter();
  const stand = (client, name) =>
    client.elect("leader", {
      ...OPTIONS,
      owner: name,
      onStart: async (lease) => {
        await Promise.resolve();
        heard.push([name, "start", lease.owner, lease.token > 0]);
        stage.emit(name);
      },
      onStop: async (loss) => {
        await new Promise(setImmediate);
        heard.push([name, "stop", loss]);
      },
    });
  let elected = once(stage, "first");
  const one = await stand(first, "first");
  assert.equal(one.resource, "leader");
  await elected;
  assert.ok(Number.isSafeInteger(one.token));
  elected = once(stage, "second");
  const two = await stand(second, "second");
  assert.equal(two.token, null);
  await one.resign();
  assert.equal(one.token, null);
  await elected;
  await two[Symbol.asyncDispose]();
  await two.resign();
  assert.deepEqual(heard, [
    ["first", "start", "first", true],
    ["first", "stop", null],
    ["second", "start", "second", true],
    ["second", "stop", null],
  ]);
  await Promise.all([first.close(), second.close()]);
});

test("a callback that throws ends the term and is reported, and the candidate stands again", async () => {
  const client = await connect("memory:");
  const warned = once(process, "warning");
  const stopped = [];
  const election = await client.elect("leader", {
    ...OPTIONS,
    onStart: () => {
      if (stopped.length === 0) throw new Error("on purpose");
    },
    onStop: (loss) => stopped.push(loss),
  });
  const [warning] = await warned;
  assert.equal(warning.name, "LeaseholdWarning");
  assert.match(warning.message, /onStart of the election leader has thrown: Error: on purpose/);
  await (await client.acquire("leader", OPTIONS)).release();
  assert.ok(election.lastError instanceof CallbackError);
  assert.equal(election.lastError.cause.message, "on purpose");
  await until(() => election.lastError === null);
  await election.resign();
  assert.deepEqual(stopped, [null, null]);
  assert.equal(election.token, null);
  await client.close();
});

test("what a callback has thrown is thrown at the end", async () => {
  const client = await connect("memory:");
  const events = [];
  const end = observe({ event: (event) => void events.push(event) });
  const fails = () => {
    throw new RangeError("on purpose");
  };
  const election = await client.elect("leader", { ...OPTIONS, onStop: fails });
  await until(() => election.token !== null);
  await assert.rejects(election.resign(), RangeError);
  // Text that cannot be had stops nothing.
  const odd = await client.elect("odd", { ...OPTIONS, onStart: () => Promise.reject(Object.create(null)) });
  await until(() => odd.lastError !== null);
  assert.match(odd.lastError.message, /onStart has thrown a value without a text/);
  await assert.rejects(odd.resign());
  const told = () => events.find(({ event, level }) => event === "callback.failed" && level === "error");
  await until(told);
  assert.match(told().fields.error, /onStop has thrown RangeError: on purpose/);
  end();
  await client.close();
});

test("closing the client ends its candidacies", async () => {
  const client = await connect("memory:");
  const stage = new EventEmitter();
  const [started, stopped] = [once(stage, "start"), once(stage, "stop")];
  const election = await client.elect("leader", {
    ...OPTIONS,
    onStart: () => stage.emit("start"),
    onStop: () => stage.emit("stop"),
  });
  await started;
  await client.close();
  await stopped;
  await election.resign();
});

test("a callback may resign, and waits for nothing", async () => {
  const client = await connect("memory:");
  const heard = [];
  const stage = new EventEmitter();
  const over = once(stage, "over");
  const election = await client.elect("leader", {
    ...OPTIONS,
    onStart: async () => {
      await once(stage, "stands");
      await election.resign();
      heard.push("start");
    },
    onStop: async () => {
      await election[Symbol.asyncDispose]();
      heard.push("stop");
      stage.emit("over");
    },
  });
  while (stage.listenerCount("stands") === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  stage.emit("stands");
  await over;
  // Outside the callback, resigning waits for the end.
  await election.resign();
  assert.deepEqual(heard, ["start", "stop"]);
  assert.equal(await client.inspect("leader"), null);
  await client.close();
});

test("a term that is over is null, though its callback still runs", async () => {
  const client = await connect("memory:");
  const stage = new EventEmitter();
  const terms = [];
  const released = once(stage, "released");
  const election = await client.elect("leader", {
    ...OPTIONS,
    onStart: async (lease) => {
      await lease.release();
      const mayGoOn = once(stage, "go on");
      stage.emit("released");
      await mayGoOn;
    },
    onStop: () => terms.push(election.token),
  });
  await released;
  assert.equal(election.token, null);
  stage.emit("go on");
  await election.resign();
  assert.ok(terms.length > 0 && terms.every((term) => term === null));
  await client.close();
});

test("an election without references continues, as a lease does", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const client = await connect("memory:");
  const stage = new EventEmitter();
  const elected = once(stage, "elected");
  const stopped = [];
  const kept = new WeakRef(
    await client.elect("leader", {
      ...OPTIONS,
      onStart: () => void stage.emit("elected"),
      onStop: (loss) => stopped.push(loss),
    }),
  );
  await elected;
  for (let n = 0; n < 5; n++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(kept.deref()?.token > 0);
  assert.deepEqual(stopped, []);
  assert.notEqual(await client.inspect("leader"), null);
  await kept.deref().resign();
  await client.close();
});

test("an invalid candidacy is refused", async () => {
  const client = await connect("memory:");
  await assert.rejects(client.elect(""), ConfigError);
  await assert.rejects(client.elect("a", { ttl: 1 }), ConfigError);
  await assert.rejects(client.elect("a", { onstart: () => {} }), { name: "TypeError", message: /no option onstart/ });
  await client.close();
});
