// Schedules a task with node-cron for each second, which runs once of all processes: store, file that records what happens.
// The first process that runs it stays in its middle until it is killed.

import { appendFileSync, readFileSync } from "node:fs";
import cron from "node-cron";
import { connect } from "leasehold";
import { RunCoordinator } from "leasehold/node-cron";

const [url, file] = process.argv.slice(2);
const client = await connect(url, { requestTimeout: 10_000 });
const coordinator = new RunCoordinator(client);
const work = coordinator.job(async ({ date }, { token }) => {
  const isFirst = !readFileSync(file, "utf8").includes("begun");
  const say = (what) => appendFileSync(file, `${what} ${date.toISOString()} ${process.pid} ${token}\n`);
  say("begun");
  if (isFirst) await new Promise(() => {});
  say("done");
});
cron.schedule("* * * * * *", work, { name: "noted", distributed: true, distributedLease: 1_000, runCoordinator: coordinator });
process.stdin.resume().on("end", async () => {
  coordinator.close();
  await cron.shutdown();
  await client.close();
  process.exit();
});
