// `leasehold/edge` on cloud storage: Azurite, fake-gcs-server, moto as S3, and an emulator of Cosmos DB.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, describe, test } from "node:test";
import { connect as connectNative } from "leasehold";
import { connect, LeaseLostError, StoreRefusedError, StoreUnavailableError } from "leasehold/edge";
import { startAzure, startCosmos, startDynamodb, startGcs, startS3 } from "./helpers/servers.mjs";
import { FAULT_NAMES, startProxy } from "./helpers/proxy.mjs";
import { aborted } from "./helpers/signals.mjs";

/** Longer than the delays of a loaded machine: each request that times out makes the client retry, and the machine slower. */
const SLOW = { requestTimeout: 10_000 };
/** Requests under these faults end by their timeout. */
const ENDLESS = ["hang", "half"];
const LONG = { ttl: 30_000 };
/** Longer than any test. */
const VERY_LONG = { ttl: 600_000, wait: 180_000 };

const [azure, gcs, s3, cosmos, dynamodb] = await Promise.all(
  [startAzure, startGcs, startS3, startCosmos, startDynamodb].map((start) => start({ after })),
);
const STORES = { "Azure Blob Storage": azure, "Google Cloud Storage": gcs, S3: s3, "Cosmos DB": cosmos };
for (const { env } of Object.values(STORES)) Object.assign(process.env, env);
Object.assign(process.env, dynamodb.env);

/** A signature for the container, as the portal makes one. */
function signature(minutes) {
  const [account, key] = ["devstoreaccount1", azure.credentials.accountKey];
  const until = `${new Date(Date.now() + minutes * 60_000).toISOString().slice(0, 19)}Z`;
  const [rights, version, resource] = ["rcwl", "2021-12-02", "c"];
  const fields = [rights, "", until, `/blob/${account}/locks`, "", "", "", version, resource, "", "", "", "", "", "", ""];
  const sig = createHmac("sha256", Buffer.from(key, "base64")).update(fields.join("\n"), "utf8").digest("base64");
  return { sas: `?${new URLSearchParams({ sp: rights, se: until, sv: version, sr: resource, sig })}` };
}

for (const [name, { url, credentials }] of Object.entries(STORES)) {
  test(`a lock and a run on ${name} are shared with native code`, async () => {
    const client = await connect(url, { ...SLOW, owner: "edge", credentials });
    const other = await connectNative(url, { ...SLOW, owner: "native" });
    const lease = await client.acquire("invoice/42", { ...LONG, data: new Uint8Array([7]) });
    assert.equal(await other.tryAcquire("invoice/42"), null);
    const info = await other.inspect("invoice/42");
    assert.deepEqual([info.owner, info.token, info.data], ["edge", lease.token, Buffer.from([7])]);
    const waiting = other.acquire("invoice/42", LONG);
    await lease.release();
    const theirs = await waiting;
    assert.ok(theirs.token > lease.token);
    await assert.rejects(client.acquire("invoice/42", { wait: 0 }), ({ holder }) => holder.owner === "native");
    await theirs.release();
    const job = { key: `${Date.now()}`, ...LONG };
    const first = await client.once("job", job, () => "done");
    assert.deepEqual([first.ran, first.value], [true, "done"]);
    assert.equal((await other.once("job", job, () => assert.fail("twice"))).reason, "done");
    await Promise.all([client.close(), other.close()]);
  });
}

test("a lease is renewed beyond its ttl", async () => {
  const client = await connect(azure.url, { ...SLOW, credentials: azure.credentials });
  const lease = await client.acquire("renewed", { ttl: 20_000, renewEvery: 500 });
  const end = Date.now() + 20_000;
  for (let left = lease.remaining(); lease.remaining() <= left; left = Math.min(left, lease.remaining())) {
    assert.ok(Date.now() < end, "no renewal came");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await lease.release();
  await client.close();
});

test("a quorum of three clouds is shared with native code, and one of them may go", async (t) => {
  const quorumId = "00112233445566778899aabbccddeeff";
  const away = await startGcs(t);
  const urls = [dynamodb.url, azure.url.replace("/tests?", "/quorum?"), away.url.replace("/tests?", "/quorum?")];
  const credentials = (store) => (store.startsWith("dynamodb") ? dynamodb.credentials : store.startsWith("azblob") ? azure.credentials : undefined);
  const other = await connectNative(urls, { ...SLOW, quorumId, createQuorum: true });
  const client = await connect(urls, { ...SLOW, quorumId, credentials });
  const lease = await client.acquire("a", LONG);
  assert.equal(await other.tryAcquire("a"), null);
  await lease.release();
  const theirs = await other.acquire("a", LONG);
  assert.equal(await client.tryAcquire("a"), null);
  await away.stop();
  await theirs.release();
  const next = await client.acquire("a", LONG);
  assert.ok(next.token > theirs.token);
  await next.release();
  // The absent node confirms no release.
  await Promise.allSettled([client.close(), other.close()]);
  const inQuorum = [dynamodb.url, azure.url, cosmos.url];
  await assert.rejects(connect(inQuorum, { quorumId, credentials: () => undefined }).then((made) => made.acquire("a", { wait: 0 })), {
    code: "config",
  });
});

test("a shared access signature opens a container until it ends", async () => {
  const client = await connect(azure.url, { ...SLOW, credentials: signature(10) });
  await (await client.acquire("signed", LONG)).release();
  await client.close();
  // Azure answers with AuthenticationFailed, upon which the vector objects_azure asks for the next; Azurite does not.
  const late = await connect(azure.url, { ...SLOW, credentials: signature(-10) });
  await assert.rejects(late.acquire("signed", { wait: 0 }), { name: "StoreRefusedError", message: /AuthorizationFailure/ });
  await late.close().catch(() => {});
});

test("wrong credentials are told without secrets", async () => {
  for (const [{ url }, credentials] of [
    [azure, { accountKey: Buffer.from("hunter2").toString("base64") }],
    [azure, { sas: "sv=2021-12-02&sig=hunter2" }],
    [cosmos, { accountKey: Buffer.from("hunter2").toString("base64") }],
  ]) {
    const client = await connect(url, { requestTimeout: 2_000, credentials });
    await assert.rejects(client.acquire("a", { wait: 0 }), (error) => {
      assert.ok(error instanceof StoreUnavailableError || error instanceof StoreRefusedError, error.stack);
      // Azurite gives Azure's code for a firewall.
      assert.match(error.message, /credentials|AuthorizationFailure/);
      assert.doesNotMatch(error.message, /hunter2|aHVudGVyMg/);
      return true;
    });
    await client.close().catch(() => {});
  }
});

/** On a loaded machine a release may not be confirmed in time, which is told. */
async function release(lease) {
  await lease.release().catch(({ code }) => assert.equal(code, "store_unavailable"));
}

// Most of it is waiting.
describe("faults of cloud storage", { concurrency: 2 }, () => {
  for (const [name, { url, credentials }] of Object.entries({ azure, gcs })) {
    test(`an acquisition on ${name} that breaks leaves no record, and a lease without renewals is lost`, async (t) => {
      const rival = await connectNative(url, SLOW);
      const next = FAULT_NAMES.values();
      // Some at once: requests of more of them would delay each other.
      const inTurn = async () => {
        for (const fault of next) {
          const proxy = await startProxy(t, url);
          const client = await connect(proxy.url, { ...(ENDLESS.includes(fault) ? { requestTimeout: 3_000 } : SLOW), credentials });
          const held = await client.acquire(`held under ${fault}`, { ...VERY_LONG, ttl: 9_000 });
          proxy.fault = fault;
          await assert.rejects(client.acquire(`under ${fault}`, { ...VERY_LONG, wait: 0 }), ({ code }) => {
            assert.ok(["store_unavailable", "store_refused"].includes(code), `${fault}: ${code}`);
            return true;
          });
          await aborted(held.signal);
          assert.ok(held.signal.reason instanceof LeaseLostError);
          proxy.fault = undefined;
          const theirs = await rival.acquire(`under ${fault}`, VERY_LONG);
          await release(theirs);
          const lease = await client.acquire(`under ${fault}`, VERY_LONG);
          assert.ok(lease.token > theirs.token);
          await client.close().catch((error) => assert.ok(error instanceof StoreUnavailableError));
        }
      };
      await Promise.all(Array.from({ length: 4 }, inTurn));
      await rival.close();
    });
  }
});
