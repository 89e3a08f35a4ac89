// Works on the jobs of a queue with the recipe of that name: the recipe, the port of the queue's Redis, a file that records what
// happens. The name of a job says how it ends.

import { appendFileSync, readFileSync } from "node:fs";

const [recipe, port, file] = process.argv.slice(2);
const { workOnce } = await import(recipe);

async function work({ name }, { fence }) {
  const isFirst = !readFileSync(file, "utf8").includes(`begun ${name} `);
  const say = (what) => appendFileSync(file, `${what} ${name} ${process.pid} ${fence}\n`);
  say("begun");
  if (name === "throws-once" && isFirst) throw new Error("on purpose");
  if (name === "stays" && isFirst) await new Promise(() => {});
  say("done");
  // Between the completion and the acknowledgement.
  return name === "dies-late" ? { toJSON: () => process.kill(process.pid, "SIGKILL") } : name;
}

workOnce("charges", work, { connection: { host: "127.0.0.1", port }, lockDuration: 1_000, stalledInterval: 500 });
