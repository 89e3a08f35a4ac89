// Runs a job each second until its input ends, with the recipe of that name: the recipe, and a file that records the runs.

import { appendFileSync } from "node:fs";

const [recipe, file] = process.argv.slice(2);
const { scheduleOnce, close } = await import(recipe);
const election = await scheduleOnce("noted", "* * * * * *", ({ date }) => {
  appendFileSync(file, `${Math.floor(date.getTime() / 1_000)} ${process.pid}\n`);
});
process.stdin.resume().on("end", async () => {
  await election.resign();
  await close();
  process.exit();
});
