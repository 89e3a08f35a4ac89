// The built page in Chromium, from a file: LEASEHOLD_PLAYGROUND names its folder, where pictures are left as well.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { stream } from "../random.mjs";
import { SCENARIOS } from "../scenarios.mjs";
import { Browser } from "./browser.mjs";
import { contrasts } from "./contrast.mjs";

const folder = process.env.LEASEHOLD_PLAYGROUND;
const address = pathToFileURL(join(folder, "index.html")).href;
const told = SCENARIOS.filter(({ steps }) => steps.length > 0);
const THEMES = ["light", "dark"];
const SIZES = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
];

let browser;
let page;

before(async () => {
  browser = await Browser.start();
  page = await browser.page();
});
after(() => browser.close());
afterEach(() => {
  assert.deepEqual(page.complaints.splice(0), [], "the console is silent");
});

const open = (hash = "") => page.open(`${address}${hash}`);
const text = (selector) => page.ask(`document.querySelector(${JSON.stringify(selector)}).textContent`);
const press = (selector) => page.ask(`document.querySelector(${JSON.stringify(selector)}).click()`);
const hash = () => page.ask("location.hash");
const time = async () => Number.parseFloat(await text("#clock"));
const isWhole = async () => assert.match(await text("#verdict"), /^✓/);

/** What must be seen at the end of each scenario. */
const ENDS = {
  pause: async () => {
    assert.equal(await text(".entries [data-fate=refused] .name"), "A");
    assert.match(await text("#ending"), /The guard refused A's write/);
    const [old, newer] = await page.ask(
      "[...document.querySelectorAll('.lane .span span')].map((span) => Number(span.textContent))",
    );
    assert.ok(newer > old, `${old} < ${newer}`);
  },
  reply: async () => assert.match(await text("#log"), /A finds its own name in the store/),
  split: async () => assert.equal(await page.ask("document.querySelectorAll('.lane .span').length"), 1),
  run: async () => {
    assert.deepEqual(await page.ask("[...document.querySelectorAll('.worker .state')].map((state) => state.textContent)"), [
      "has lost the lock",
      "knows it is done",
      "knows it is done",
    ]);
    assert.equal(await text(".node .more"), "done by B");
    assert.equal(await text(".entries [data-fate=refused] .name"), "A");
  },
  turn: async () => {
    assert.match(await text("#log"), /B is next in the queue.*B has the lock.*C is next in the queue.*A has the lock/);
  },
  amnesia: async () => assert.match(await text("#log"), /Node 3 has lost its data.*A has lost the lock.*B has the lock/),
};

for (const { id, title, steps } of told) {
  test(`${title}, watched step by step`, async () => {
    await page.look({});
    await open(`#scenario=${id}`);
    await page.ask("document.getElementById('speed').value = '16'");
    for (let done = 0; done < steps.length; done += 1) {
      assert.equal(await page.ask("document.querySelectorAll('#steps [data-state=done]').length"), done);
      await press("#next");
      await page.until(
        `step ${done + 1} is over`,
        `document.querySelectorAll('#steps [data-state=done]').length === ${done + 1}`,
      );
      await page.until("the time stands still", "document.getElementById('play').textContent === 'Play'");
      await isWhole();
    }
    assert.equal(await page.ask("document.querySelectorAll('#steps em').length"), 0);
    await ENDS[id]();
    const link = await hash();
    await open(link);
    assert.equal(await hash(), link);
    await ENDS[id]();
  });
}

test("all is played in one go, and stops at its end", async () => {
  await open("#scenario=pause");
  await page.ask("document.getElementById('speed').value = '16'");
  await press("#play");
  await page.until("it has ended", "document.getElementById('ending').textContent !== ''");
  await page.until("the time stands still", "document.getElementById('play').textContent === 'Play'");
  await ENDS.pause();
});

test("wires end at the cards, from the start and after another", async () => {
  for (const size of SIZES) {
    await page.look(size);
    await open("#scenario=split");
    for (const again of ["#restart", "[data-id=pause]", "[data-id=split]"]) {
      await press(again);
      assert.deepEqual(await page.ask(`(${astray})()`), [], `${again} at ${size.width}`);
    }
  }
  await page.look({});
});

test("without its guard the resource loses an update", async () => {
  await open("#scenario=pause");
  await press("#guard");
  await press("#finish");
  assert.equal(await text(".entries [data-worker=A][data-fate=overwrites] .name"), "A");
  assert.match(await text("#ending"), /Without a guard/);
  // What was lost is never told in green.
  assert.match(await text("#verdict"), /^✕ At [0-9.]+ s: an update was lost/);
  const colours = await page.ask(
    "['#verdict', '#ending', '.entries [data-fate=overwrites] b'].map((each) => getComputedStyle(document.querySelector(each)).color)",
  );
  assert.equal(new Set(colours).size, 1, colours.join(", "));
  await press("#guard");
  await press("#finish");
  assert.equal(await text("#replay"), "Replay without the guard", "as the guard stands now");
  await press("#guard");
  await press("#restart");
  assert.match(await hash(), /guard=off&t=0$/);
  assert.equal(await page.ask("document.getElementById('guard').checked"), false);
});

test("the story is replayed without its guard, and with it again", async () => {
  await open("#scenario=pause");
  await press("#finish");
  await page.ask("document.getElementById('speed').value = '16'");
  for (const [words, isGuarded, fate] of [
    ["Replay without the guard", false, "overwrites"],
    ["Replay with the guard", true, "refused"],
  ]) {
    assert.equal(await text("#replay"), words);
    await press("#replay");
    assert.equal(await page.ask("document.getElementById('guard').checked"), isGuarded);
    await page.until("it has ended", "document.getElementById('ending').textContent !== ''");
    assert.equal(await page.ask(`document.querySelectorAll('.entries [data-worker=A][data-fate=${fate}]').length`), 1);
  }
  await press("[data-id=free]");
  assert.equal(await page.ask("document.getElementById('replay').hidden"), true);
});

test("on a phone every target is large enough for a finger, and the refusal is in sight", async () => {
  for (const id of SCENARIOS.map((scenario) => scenario.id)) {
    await page.look({ width: 390, height: 844 });
    await open(`#scenario=${id}`);
    await press("#finish");
    const small = await page.ask(`[...document.querySelectorAll("button, select, input:not(#guard), .switch")]
      .map((each) => [each.id || each.textContent, each.getBoundingClientRect()])
      .filter(([, { width, height }]) => width > 0 && (width < 44 || height < 44))
      .map(([name, { width, height }]) => name + " " + width + "x" + height)`);
    assert.deepEqual(small, [], id);
  }
  for (const id of ["pause", "run"]) {
    await open(`#scenario=${id}`);
    await press("#finish");
    const [entry, bar] = await page.ask(
      "['.entries [data-fate=refused]', '.bar'].map((each) => document.querySelector(each).getBoundingClientRect().toJSON())",
    );
    assert.ok(entry.top > 0 && entry.bottom <= bar.top, `${id}: ${JSON.stringify({ entry, bar })}`);
  }
  await page.look({});
});

test("the empty list of writes says so, until somebody writes", async () => {
  await open("#scenario=pause");
  const hint = "getComputedStyle(document.querySelector('.entries'), '::before').content";
  assert.equal(await page.ask(hint), '"No writes yet"');
  await press("#finish");
  assert.equal(await page.ask(hint), "none");
});

test("each sign on the stage stands in the legend, and no two of them are alike", async () => {
  await open();
  const signs = await page.ask(`[...document.querySelectorAll("#stage #legend .sign")].map((sign) => {
    const { backgroundColor, backgroundImage, borderStyle } = getComputedStyle(sign);
    return [sign.textContent, backgroundColor, backgroundImage, borderStyle].join(" ");
  })`);
  assert.equal(signs.length, 6);
  assert.equal(new Set(signs).size, 6, signs.join("; "));
});

test("every button, pressed as chance will have it, breaks no promise", async () => {
  const random = stream(11, "buttons of the page");
  const pick = (list) => list[Math.floor(random() * list.length)];
  for (const store of ["single", "quorum", "dynamodb"]) {
    await open(`#scenario=free&store=${store}&loss=5&latency=200`);
    await page.ask("document.getElementById('speed').value = '16'");
    // A single store that is wiped breaks them, and says so.
    const mayWipe = store === "quorum" ? "" : ":not([aria-label*='loses its data'])";
    const count = await page.ask(`document.querySelectorAll(".stage .buttons button${mayWipe}").length`);
    for (let n = 0; n < 40; n += 1) {
      const button = Math.floor(random() * count);
      await page.ask(`document.querySelectorAll(".stage .buttons button${mayWipe}")[${button}].click()`);
      await press(pick(["#next", "#play", "#guard", "#next"]));
    }
    await page.ask("document.getElementById('play').textContent === 'Pause' && document.getElementById('play').click()");
    assert.ok((await time()) > 5);
    assert.doesNotMatch(await text("#verdict"), /must never be/);
    const [link, log] = [await hash(), await text("#log")];
    await open(link);
    assert.equal(await hash(), link);
    assert.equal(await text("#log"), log, "the link leads to the same course of events");
  }
});

test("a store that forgot everything is the only excuse for two holders", async () => {
  await open("#scenario=pause&t=4&do=3.5-wipe-1,3.9-release-b");
  await press("#play");
  await page.ask("document.querySelector('[data-worker=B] .buttons button').click()");
  await page.ask("document.getElementById('speed').value = '4'");
  await page.until("two hold the lock", "document.getElementById('verdict').dataset.broken === 'excused'");
  assert.match(await text("#verdict"), /two holders at once, for the only store has lost its records/);
  await press("#play");
});

test("settings change the world, and stand in the link", async () => {
  await open();
  assert.match(await hash(), /^#scenario=pause&store=single&ttl=8&drift=1&latency=300&loss=0&seed=7&t=0$/);
  const set = (id, value) =>
    page.ask(
      `{ const input = document.getElementById("${id}"); input.value = "${value}"; input.dispatchEvent(new Event("change")); }`,
    );
  await set("store", "quorum");
  await set("ttl", 5);
  await set("drift", 2);
  assert.match(await hash(), /store=quorum&ttl=5&drift=2&.*t=0$/);
  assert.equal(await page.ask("document.querySelectorAll('.node').length"), 5);
  await press("#finish");
  await set("latency", 80);
  await set("loss", 10);
  assert.match(await hash(), /do=[0-9.]+-latency-80,[0-9.]+-loss-10$/);
  await press("#restart");
  assert.match(await hash(), /latency=80&loss=10&seed=7&t=0$/);
  // Another link, typed into the address bar.
  await page.ask("location.hash = '#scenario=split&t=2'");
  await page.until("the other scenario is there", "document.getElementById('title').textContent === 'The split vote'");
  assert.equal(await text("#clock"), "2.0 s");
});

test("links that make no sense are told, and do no harm", async () => {
  await open("#scenario=<img src=x onerror=alert(1)>&ttl=1e9&store=oracle&t=-5&do=9-eval-x&what");
  assert.equal(await page.ask("document.querySelectorAll('#notes p').length"), 5);
  assert.match(await text("#notes"), /ttl=1e9 is not one of 2 to 30, 8 is used/);
  assert.equal(await page.ask("document.querySelectorAll('#notes img').length"), 0);
  assert.equal(await text("#title"), "The pause");
  await press("#finish");
  await ENDS.pause();
});

test("all of it can be done with the keyboard alone, and the focus is seen", async () => {
  await page.look({});
  await open("#scenario=free");
  const seen = new Set();
  const focus = `(() => { const { activeElement: e } = document; const style = getComputedStyle(e);
    return { id: e.id || e.getAttribute("aria-label") || e.textContent, outline: style.outlineStyle + " " + style.outlineWidth }; })()`;
  for (let n = 0; n < 60; n += 1) {
    await page.key("Tab");
    const { id, outline } = await page.ask(focus);
    if (seen.has(id)) break;
    if (id === (await page.ask("document.body.textContent"))) break;
    seen.add(id);
    assert.equal(outline, "solid 3px", id);
  }
  for (const id of [
    "share",
    "theme",
    "The pause",
    "play",
    "next",
    "restart",
    "speed",
    "guard",
    "log",
    "store",
    "ttl",
    "drift",
    "latency",
    "loss",
    "seed",
  ]) {
    assert.ok(seen.has(id), `${id} is reached: ${[...seen].join(", ")}`);
  }
  for (const name of ["A", "B", "C"]) assert.ok(seen.has(`Pause ${name}`) && seen.has(`Cut ${name} off from the store`));

  await page.ask("document.querySelector('[aria-label=\"Pause A\"]').focus()");
  await page.key("Enter", { text: "\r" });
  assert.equal(await page.ask("document.activeElement.getAttribute('aria-label')"), "Wake A", "the focus stays");
  assert.match(await text("#log"), /A stops/);
  await page.ask("document.getElementById('latency').focus()");
  for (let n = 0; n < 3; n += 1) await page.key("ArrowRight");
  assert.match(await hash(), /do=[^,]*,[^,]*-latency-315$/);
  await page.ask("document.getElementById('play').focus()");
  await page.key(" ", { code: "Space", text: " " });
  await page.until("time passes", "Number.parseFloat(document.getElementById('clock').textContent) > 0.5");
  await page.key(" ", { code: "Space", text: " " });
  assert.equal(await text("#play"), "Play");
});

test("who cannot see is told as much", async () => {
  await open("#scenario=pause&store=quorum");
  await press("#finish");
  const { nodes } = await page.send("Accessibility.getFullAXTree");
  const named = nodes
    .filter(
      ({ ignored, role }) =>
        !ignored && ["button", "checkbox", "slider", "combobox", "spinbutton", "image"].includes(role?.value),
    )
    .map(({ role, name }) => `${role.value}: ${name?.value}`);
  for (const each of named) assert.doesNotMatch(each, /: $|undefined/);
  assert.equal(new Set(named).size, named.length, `each has a name of its own: ${named.join(", ")}`);
  assert.ok(named.includes("checkbox: Guard: refuse older tokens"), named.join(", "));
  assert.ok(
    named.some((each) => /^image: A with token \d+ from 0\.\d s to 10\.\d s; B with token \d+ from/.test(each)),
    named.join(", "),
  );
  assert.deepEqual(
    await page.ask("['log', 'verdict', 'ending', 'notes'].map((id) => document.getElementById(id).getAttribute('role'))"),
    ["log", "status", "status", "status"],
  );
  assert.equal(nodes.filter(({ role }) => role?.value === "timer").length, 1, "a clock that nobody has read out");
  const spoken = () =>
    page.ask("[...document.querySelectorAll('#settings input[type=range]')].map((input) => input.ariaValueText)");
  assert.deepEqual(await spoken(), ["8 s", "1 %", "300 ms", "0 %"]);
  await open("#scenario=pause&ttl=12&latency=80");
  assert.deepEqual(await spoken(), ["12 s", "1 %", "80 ms", "0 %"]);
  assert.equal(await page.ask("document.getElementById('log').getAttribute('aria-live')"), "polite");
  await open("#scenario=free&t=60");
  assert.equal(await page.ask("document.getElementById('log').getAttribute('aria-live')"), "off", "sixty seconds at once");
});

test("where motion is not welcome nothing moves, and everything is still seen", async () => {
  await page.look({ motion: "reduce" });
  await open("#scenario=pause&t=0");
  await press("#play");
  await page.until("a wire is lit", "document.querySelector('.wire[data-lit]') !== null");
  assert.equal(await page.ask("document.querySelectorAll('.dot:not([data-lost])').length"), 0);
  await press("#play");
  await press("#finish");
  await ENDS.pause();
  await page.look({});
  await open("#scenario=pause&t=0.2");
  assert.equal(await page.ask("document.querySelectorAll('.dot').length"), 1);
  assert.equal(await page.ask("document.querySelectorAll('.wire[data-lit]').length"), 0);
});

test("colours follow the system until somebody chooses", async () => {
  const background = () => page.ask("getComputedStyle(document.documentElement).backgroundColor");
  await page.look({ theme: "light" });
  await open();
  const light = await background();
  await page.look({ theme: "dark" });
  const dark = await background();
  assert.notEqual(dark, light);
  await page.until("the button knows", "document.getElementById('theme').textContent === 'Light'");
  await press("#theme");
  assert.equal(await background(), light);
  assert.equal(await text("#theme"), "Dark");
});

test("nothing is asked of any server", async () => {
  await open();
  assert.equal(await page.ask("location.protocol"), "file:");
  assert.equal(await page.ask("performance.getEntriesByType('resource').length"), 0);
});

test("pictures: nothing overlaps, nothing is cut off, and all of it can be read", async () => {
  const pictures = join(folder, "screenshots");
  await mkdir(pictures, { recursive: true });
  for (const theme of THEMES) {
    for (const size of SIZES) {
      for (const { id, steps } of SCENARIOS) {
        const what = `${id} ${theme} ${size.width}`;
        await page.look({ ...size, theme });
        await open(steps.length > 0 ? `#scenario=${id}` : `#scenario=${id}&store=quorum&t=31&do=20-pause-a,25-cut-c`);
        if (steps.length > 0) await press("#finish");
        assert.equal(
          await page.ask("document.documentElement.scrollWidth"),
          size.width,
          `${what} is not wider than its window`,
        );
        assert.deepEqual(await page.ask(`(${cutOff})()`), [], what);
        assert.deepEqual(await page.ask(`(${contrasts})()`), [], what);
        await writeFile(join(pictures, `${id}-${theme}-${size.width}.png`), await page.picture());
      }
    }
  }
});

test("on the smallest of phones everything is still there", async () => {
  for (const id of ["pause", "split"]) {
    await page.look({ width: 320, height: 568 });
    await open(`#scenario=${id}&store=quorum&ttl=99&t=3`);
    assert.equal(await page.ask("document.documentElement.scrollWidth"), 320);
    assert.deepEqual(await page.ask(`(${cutOff})()`), []);
  }
  await page.look({});
});

/** In the page: wires that do not end at a card. */
function astray() {
  const stage = document.getElementById("stage").getBoundingClientRect();
  const cards = [...document.querySelectorAll(".stage .card, #resource")].map((card) => card.getBoundingClientRect());
  const isAtOne = (x, y) =>
    cards.some(
      ({ left, width, top, bottom }) =>
        Math.abs(left - stage.left + width / 2 - x) < 1 &&
        Math.min(Math.abs(top - stage.top - y), Math.abs(bottom - stage.top - y)) < 1,
    );
  return [...document.querySelectorAll(".wire")]
    .map((wire) => ["x1", "y1", "x2", "y2"].map((name) => Number(wire.getAttribute(name))))
    .filter(([x1, y1, x2, y2]) => !isAtOne(x1, y1) || !isAtOne(x2, y2));
}

/** In the page: buttons and labels whose text does not fit, and cards that lie on each other. */
function cutOff() {
  const found = [];
  for (const element of document.querySelectorAll("button, .state, .token, .counter, h1, h2, label, output")) {
    // Where there is a box at all, and not one that is kept for those who hear the page.
    const hasBox = element.clientWidth > 1;
    if (hasBox && element.scrollWidth > element.clientWidth + 1) found.push(`${element.textContent} does not fit`);
  }
  const cards = [...document.querySelectorAll(".card, .resource")].map((card) => card.getBoundingClientRect());
  cards.forEach((one, at) => {
    for (const other of cards.slice(at + 1)) {
      const isApart =
        one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
      if (!isApart) found.push("two cards overlap");
    }
  });
  return found;
}
