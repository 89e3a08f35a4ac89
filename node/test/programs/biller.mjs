// Bills once, in one transaction with the completion: `biller.mjs URL SETTINGS STOP`. Says where it stops, and stays there.

import { connect } from "leasehold";
import pg from "pg";

const [url, settings, stop] = process.argv.slice(2);
const locks = await connect(url);
const db = new pg.Client(JSON.parse(settings));
await db.connect();

async function pause(at) {
  if (at !== stop) return;
  console.log(at);
  await new Promise((resolve) => process.stdin.on("end", resolve).resume());
}

const { ran } = await locks.once("bill", { key: "2026-11", ttl: 2_000, wait: 60_000 }, async (run) => {
  await db.query("BEGIN");
  await db.query("INSERT INTO bills VALUES ('2026-11')");
  await pause("at work");
  await db.query(run.completionIn());
  await pause("marked");
  await db.query("COMMIT");
  await pause("committed");
});
console.log(ran ? "done" : "done before");
await db.end();
await locks.close();
