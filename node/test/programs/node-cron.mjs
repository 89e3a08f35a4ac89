// Schedules a task with node-cron for each second, which runs once of all processes: store, file that records what happens.
// The first process that runs it while another one stands by stays in its middle until it is killed.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import cron from "node-cron";
import { connect } from "leasehold";
import { RunCoordinator } from "leasehold/node-cron";

const [url, file] = process.argv.slice(2);
const client = await connect(url, { requestTimeout: 10_000 });
const say = (...words) => appendFileSync(file, `${words.join(" ")}\n`);
const said = () => readFileSync(file, "utf8").split("\n").map((line) => line.split(" "));

class Noted extends RunCoordinator {
  shouldRun(key, ttl) {
    say("asked", key.slice(key.indexOf(":") + 1), process.pid);
    return super.shouldRun(key, ttl);
  }
}

const STAYS = `${file}.stays`;

/** node-cron leaves out what a loaded machine comes too late for, so not every time has a process that stands by. */
async function othersStandBy(time) {
  for (let look = 0; look < 20 && !existsSync(STAYS); look += 1) {
    if (said().some(([what, asked, pid]) => what === "asked" && asked === time && pid !== String(process.pid))) return true;
    await pause(50);
  }
  return false;
}

/** True for the first process that asks. */
function isFirst() {
  try {
    writeFileSync(STAYS, "", { flag: "wx" });
    return true;
  } catch {
    return false;
  }
}

const coordinator = new Noted(client);
const work = coordinator.job(async ({ date }, { token }) => {
  const time = date.toISOString();
  if ((await othersStandBy(time)) && isFirst()) {
    say("begun", time, process.pid, token);
    await new Promise(() => {});
  }
  say("done", time, process.pid, token);
});
cron.schedule("* * * * * *", work, { name: "noted", distributed: true, distributedLease: 1_000, runCoordinator: coordinator });
process.stdin.resume().on("end", async () => {
  coordinator.close();
  await cron.shutdown();
  await client.close();
  process.exit();
});
