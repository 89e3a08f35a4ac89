// Takes a permit, and keeps it until it is killed: store.

import { connect } from "leasehold";

const client = await connect(process.argv[2], { requestTimeout: 10_000 });
const permit = await client.semaphore("license", 1).acquire({ ttl: 3_000 });
console.log(`held ${permit.token}`);
process.stdin.resume();
