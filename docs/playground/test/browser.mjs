// A headless Chromium that is told what to do through pipes: its program is named by LEASEHOLD_BROWSER.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const OPTIONS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--hide-scrollbars",
];
/** How long a condition is waited for, in ms. */
const PATIENCE = 60_000;
const SAID = 4_096;

export class Browser {
  #process;
  #ended;
  #profile;
  #said = "";
  #lastId = 0;
  #asked = new Map();
  #pages = new Map();

  static async start() {
    const browser = new Browser();
    browser.#profile = await mkdtemp(join(tmpdir(), "leasehold-browser-"));
    browser.#process = spawn(
      process.env.LEASEHOLD_BROWSER ?? "chromium",
      [...OPTIONS, `--user-data-dir=${browser.#profile}`, "--remote-debugging-pipe"],
      // A group of its own, since what is on the path may be a script that starts the browser and stays beside it.
      { stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"], detached: true },
    );
    browser.#process.stderr.on("data", (text) => (browser.#said = (browser.#said + text).slice(-SAID)));
    browser.#ended = once(browser.#process, "exit").then(() => browser.#isOver());
    browser.#listen(browser.#process.stdio[4]);
    return browser;
  }

  /** A page of its own, with nothing in it yet. */
  async page() {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page((method, params) => this.send(method, params, sessionId), targetId);
    this.#pages.set(sessionId, page);
    for (const domain of ["Page", "Runtime", "Log"]) await page.send(`${domain}.enable`);
    return page;
  }

  send(method, params = {}, sessionId = undefined) {
    const id = (this.#lastId += 1);
    const answer = new Promise((resolve, reject) => this.#asked.set(id, { resolve, reject, method }));
    this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return answer;
  }

  async close() {
    try {
      process.kill(-this.#process.pid, "SIGKILL");
    } catch (error) {
      if (error.code !== "ESRCH") throw error;
    }
    await this.#ended;
    for (const stream of this.#process.stdio) stream?.destroy();
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  #listen(pipe) {
    let rest = Buffer.alloc(0);
    pipe.on("data", (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        this.#heard(JSON.parse(rest.subarray(0, end).toString()));
        rest = rest.subarray(end + 1);
      }
    });
  }

  #heard({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      this.#pages.get(sessionId)?.heard(method, params);
      return;
    }
    const { resolve, reject, method: asked } = this.#asked.get(id);
    this.#asked.delete(id);
    if (error === undefined) resolve(result);
    else reject(new Error(`${asked}: ${error.message}`));
  }

  #isOver() {
    for (const { reject, method } of this.#asked.values())
      reject(new Error(`${method}: the browser has ended\n${this.#said}`));
  }
}

class Page {
  /** What the console and uncaught exceptions have said. */
  complaints = [];
  #waiting = new Set();

  constructor(send, targetId) {
    this.send = send;
    this.targetId = targetId;
  }

  heard(method, params) {
    if (method === "Runtime.exceptionThrown")
      this.complaints.push(params.exceptionDetails.exception?.description ?? "exception");
    if (method === "Log.entryAdded") this.complaints.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    if (method === "Runtime.consoleAPICalled") this.complaints.push(params.args.map(({ value }) => value).join(" "));
    for (const waiter of [...this.#waiting]) waiter(method);
  }

  async open(url) {
    const loaded = new Promise((resolve) => {
      const waiter = (method) => {
        if (method !== "Page.loadEventFired") return;
        this.#waiting.delete(waiter);
        resolve();
      };
      this.#waiting.add(waiter);
    });
    // A url that differs in its hash alone loads nothing.
    await this.send("Page.navigate", { url: "about:blank" });
    await loaded;
    await this.send("Page.navigate", { url });
    await this.until(
      "the page is there",
      "document.getElementById('scenarios')?.children.length > 0 && location.hash !== ''",
    );
  }

  /** The value of an expression in the page. */
  async ask(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      returnByValue: true,
      awaitPromise: true,
      userGesture: true,
    });
    if (exceptionDetails !== undefined) {
      throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    }
    return result.value;
  }

  /** Waits for an expression to be true, within the page, which answers when it is. */
  async until(what, expression) {
    const ends = Date.now() + PATIENCE;
    while (!(await this.ask(`Boolean(${expression})`).catch(() => false))) {
      if (Date.now() > ends) throw new Error(`it never came about that ${what}: ${this.complaints.join("; ")}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Size, theme and whether motion is welcome. */
  async look({ width = 1280, height = 800, theme = "light", motion = "no-preference" }) {
    const isPhone = width < 600;
    await this.send("Emulation.setDeviceMetricsOverride", {
      width,
      height,
      deviceScaleFactor: isPhone ? 2 : 1,
      mobile: isPhone,
    });
    const features = [
      { name: "prefers-color-scheme", value: theme },
      { name: "prefers-reduced-motion", value: motion },
    ];
    await this.send("Emulation.setEmulatedMedia", { features });
  }

  async picture() {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data, "base64");
  }

  /** A key, pressed and let go. */
  async key(key, { code = key, text, modifiers = 0 } = {}) {
    const event = { key, code, modifiers, windowsVirtualKeyCode: { Tab: 9, Enter: 13, " ": 32, ArrowRight: 39 }[key] };
    await this.send("Input.dispatchKeyEvent", { type: text === undefined ? "rawKeyDown" : "keyDown", text, ...event });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }
}
