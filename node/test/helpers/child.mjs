// Programs in separate processes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../programs/", import.meta.url));

/** Starts one of the programs; unhandled rejections and warnings end up in its stderr. */
export function start(program, ...args) {
  const child = spawn(process.execPath, [`${folder}${program}`, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  const kill = () => child.kill("SIGKILL");
  process.on("exit", kill);
  const ended = once(child, "close").then(([code, signal]) => {
    process.off("exit", kill);
    return { code, signal, stdout: said.stdout, stderr: said.stderr };
  });
  const said = { stdout: "", stderr: "" };
  const hear = new EventTarget();
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8").on("data", (text) => {
      said[name] += text;
      hear.dispatchEvent(new Event("said"));
    });
  }
  /** Waits until the program has written this. */
  const until = (text) =>
    new Promise((resolve, reject) => {
      const look = () => {
        if (said.stdout.includes(text)) resolve();
      };
      hear.addEventListener("said", look);
      ended.then((end) => reject(new Error(`it ended without ${text}: ${JSON.stringify(end)}`)));
      look();
    });
  return { child, ended, until };
}

export async function run(program, ...args) {
  return start(program, ...args).ended;
}
