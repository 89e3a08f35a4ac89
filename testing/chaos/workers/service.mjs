// A service of `cargo xtask chaos http` on Express; service.py does the same on FastAPI. The packages are where the environment
// says, so that nothing is installed beside this file.

import { randomBytes } from "node:crypto";
import { writeSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const packages = createRequire(`${process.env.LEASEHOLD_CHAOS_NODE}/`);
const libraries = createRequire(`${process.env.LEASEHOLD_CHAOS_LIBRARIES}/`);
const { connect } = packages("leasehold");
const { idempotency } = packages("leasehold/express");
const express = libraries("express");

// The longest pause before the effect and after it; one work in so many takes long.
const WORK = 40;
const LONG = 10;
const LONG_WORK = 400;
// One work in so many answers that it has failed, before its effect.
const FAILS = 12;
const MOST_PADDING = 2_000;

const task = JSON.parse(process.argv[2]);

// One write, so that a line is there whole or not at all.
const say = (line) => writeSync(1, `${line}\n`);
const pause = () => sleep(Math.random() * (Math.random() * LONG < 1 ? LONG_WORK : WORK));

const app = express();
app.use((req, res, next) => {
  // Says with which status each work has ended, from outside of the middleware.
  const { end } = res;
  res.end = (...given) => {
    if (res.locals.receipt !== undefined) say(`ended ${res.locals.receipt} ${res.statusCode}`);
    return end.apply(res, given);
  };
  next();
});
app.use(express.json({ verify: (req, _, bytes) => Object.assign(req, { rawBody: bytes }) }));
if (task.is_protected) {
  const settings = task.max_ttl_ms === null ? {} : { maxTtl: task.max_ttl_ms, quorumId: task.quorum };
  const client = await connect(task.stores, settings);
  app.use(idempotency(client, { principal: (req) => req.get("x-user"), ttl: task.ttl_ms }));
}
app.post("/charge", async (req, res) => {
  const receipt = randomBytes(8).toString("hex");
  res.locals.receipt = receipt;
  say(`begun ${req.body.key} ${req.body.eur} ${receipt}`);
  await pause();
  res.set("X-Receipt", receipt);
  if (Math.random() * FAILS < 1) {
    res.status(500).send("failed as it was told to");
    return;
  }
  say(`effect ${receipt}`);
  await pause();
  const padding = "é".repeat(Math.floor((Math.random() * MOST_PADDING) / 2));
  res.status(201).json({ ...req.body, receipt, padding });
});
const server = app.listen(0, "127.0.0.1", () => say(`listening ${server.address().port}`));
