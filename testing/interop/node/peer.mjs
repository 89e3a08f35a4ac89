// node redlock, driven line by line: see ../README.md. The working folder is where its packages are installed, so that
// nothing is installed beside this file.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.cwd()}/`);
const { Redis } = require("ioredis");
const { default: Redlock, ExecutionError, ResourceLockedError } = require("redlock");

const redis = new Redis(process.argv[2]);
const redlock = new Redlock([redis], { retryCount: 0 });
const held = new Map();

// Redlock reports whatever went wrong as a missed quorum. Only a vote against is an answer, and only then is `no` it.
async function confirmed(action, no) {
  try {
    await action();
    return "ok";
  } catch (error) {
    if (!(error instanceof ExecutionError)) throw error;
    const votes = await Promise.all(error.attempts);
    const causes = votes.flatMap((vote) => [...vote.votesAgainst.values()]);
    const trouble = causes.find((cause) => !(cause instanceof ResourceLockedError));
    if (trouble) throw trouble;
    return no;
  }
}

const commands = {
  acquire: (key, ttlMs) =>
    confirmed(async () => held.set(key, await redlock.acquire([key], Number(ttlMs))), "busy"),
  extend: (key, ttlMs) =>
    confirmed(async () => held.set(key, await held.get(key).extend(Number(ttlMs))), "not-held"),
  release: (key) => {
    const lock = held.get(key);
    held.delete(key);
    return confirmed(() => lock.release(), "not-held");
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [command, ...words] = line.trim().split(/\s+/);
  if (command === "quit") break;
  let answer;
  try {
    answer = await commands[command](...words);
  } catch (error) {
    answer = `error ${String(error).replace(/\s+/g, " ")}`;
  }
  console.log(answer);
}
redis.disconnect();
