// Stores that `leasehold/edge` and native code reach alike.

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
