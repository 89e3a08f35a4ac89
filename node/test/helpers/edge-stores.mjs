// Stores that `leasehold/edge` and native code reach alike.

import { connect } from "leasehold";
import { startEtcd, startRedis, startWebdis } from "./servers.mjs";
import { startRest } from "./rest.mjs";

/** What starts each of them, by name: the answer has its url for the edge, and for native code. DynamoDB Local is the one given. */
export const edgeStores = (dynamodb) => ({
  async Webdis(t) {
    const redis = await startRedis(t);
    const { url } = await startWebdis(t, redis.url);
    return { url, native: redis.url };
  },
  async "a REST server"(t) {
    const redis = await startRedis(t);
    const { url } = await startRest(t, redis.url);
    return { url, native: redis.url };
  },
  async etcd(t) {
    const { url } = await startEtcd(t);
    return { url, native: url };
  },
  async "DynamoDB Local"() {
    return { url: dynamodb.url, native: dynamodb.url, credentials: dynamodb.credentials };
  },
});

/** Three of them that are one quorum. */
export async function startQuorum(t) {
  const quorumId = "00112233445566778899aabbccddeeff";
  const nodes = [];
  for (const _ of "abc") {
    const redis = await startRedis(t);
    nodes.push({ redis: redis.url, webdis: (await startWebdis(t, redis.url)).url });
  }
  const [native, url] = ["redis", "webdis"].map((kind) => nodes.map((node) => node[kind]));
  const made = await connect(native, { requestTimeout: 5_000, quorumId, createQuorum: true });
  await (await made.acquire("first")).release();
  await made.close();
  return { url, native, quorumId };
}
