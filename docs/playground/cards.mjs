// What stands on the stage, with its buttons: nodes, workers, and the resource.

import { change, enable, isEnabled, make, one, say, seconds, sign, style } from "./dom.mjs";

const percent = (part, whole) => `${(100 * Math.min(1, Math.max(0, part / whole))).toFixed(1)}%`;
/** Writes that the resource shows. */
const MOST_ENTRIES = 6;

/** Cards for a session. `deed(verb, to)` is called when a button is pressed. */
export class Cards {
  #parts;

  constructor(session, deed) {
    const { world } = session;
    const button = (text, label, act) => {
      const element = make("button", { type: "button" }, text);
      element.setAttribute("aria-label", label);
      element.addEventListener("click", () => isEnabled(element) && act());
      return element;
    };
    const worker = ({ name }) => workerCard(name, button, (verb) => deed(verb, name.toLowerCase()));
    const node = (node) => nodeCard(world.nodeName(node), button, (verb) => deed(verb, node.index + 1));
    const parts = { workers: world.workers.map(worker), nodes: world.nodes.map(node) };
    this.#parts = { ...parts, resource: resourceCard(deed) };
    one("workers").replaceChildren(...parts.workers.map(({ card }) => card));
    one("nodes").replaceChildren(...parts.nodes.map(({ card }) => card));
    one("resource").replaceChildren(...this.#parts.resource.content);
  }

  /** Where messages start and end, by place. */
  places() {
    const { workers, nodes } = this.#parts;
    const of = (name) => (parts) => parts.map(({ card }, index) => [`${name}/${index}`, card]);
    return new Map([...of("worker")(workers), ...of("node")(nodes), ["resource", one("resource")]]);
  }

  show({ world, settings }) {
    world.workers.forEach((worker, at) => showWorker(this.#parts.workers[at], worker, world, settings));
    world.nodes.forEach((node, at) => showNode(this.#parts.nodes[at], node, world));
    showResource(this.#parts.resource, world);
  }
}

/** A word that has no room on a phone. */
const long = (word) => make("span", { className: "long" }, word);

function bar() {
  const fill = make("span", { className: "fill" });
  return { fill, element: make("span", { className: "lease", "aria-hidden": "true" }, fill) };
}

function workerCard(name, button, deed) {
  const parts = {
    state: make("span", { className: "state" }),
    token: make("span", { className: "token" }),
    left: make("span", { className: "left" }),
    drift: make("span", { className: "drift" }),
    bar: bar(),
    ask: button("Ask", `${name}: ask for the lock`, () => deed(parts.ask.dataset.verb)),
    pause: button("Pause", `Pause ${name}`, () => deed(parts.pause.dataset.verb)),
    cut: button("Cut off", `Cut ${name} off from the store`, () => deed(parts.cut.dataset.verb)),
  };
  const card = make(
    "article",
    { className: "card worker", "data-worker": name, "aria-label": `Worker ${name}` },
    make(
      "div",
      { className: "who" },
      make("span", { className: "name", "aria-hidden": "true" }, name),
      parts.state,
      parts.token,
    ),
    make("div", { className: "validity" }, parts.bar.element, parts.left),
    parts.drift,
    make("div", { className: "buttons" }, parts.ask, parts.pause, parts.cut),
  );
  return { ...parts, card };
}

function showWorker(parts, worker, world, { ttlMs }) {
  const { phase, isPaused, isCut, name } = worker;
  const leftNs = phase === "held" ? worker.untilNs - world.nowNs : 0;
  const isValid = leftNs > 0;
  change(parts.card, { "data-phase": phase, "data-valid": isValid, "data-paused": isPaused, "data-cut": isCut });
  say(parts.state, stateOf(worker, isValid));
  const isShown = phase === "held" || phase === "lost";
  say(parts.token, isShown ? `${worker.token}` : "");
  change(parts.token, {
    "aria-label": isShown ? `token ${worker.token}` : undefined,
    title: isShown ? "its token" : undefined,
  });
  style(parts.bar.fill, "inline-size", percent(leftNs, ttlMs * 1e6));
  say(parts.left, isValid ? seconds(leftNs) : "");
  say(parts.drift, driftOf(worker, isCut));
  const isBusy = phase === "held" || worker.isAsking;
  becomes(parts.ask, isBusy, ["ask", "Ask", `${name}: ask for the lock`], endWords(phase, name, world.isRun));
  enable(parts.ask, !isPaused);
  becomes(parts.pause, isPaused, ["pause", "Pause", `Pause ${name}`], ["wake", "Wake", `Wake ${name}`]);
  becomes(
    parts.cut,
    isCut,
    ["cut", "Cut off", `Cut ${name} off from the store`],
    ["mend", "Mend", `Mend the network of ${name}`],
  );
}

function endWords(phase, name, isRun) {
  if (phase !== "held") return ["release", "Give up", `${name}: give up waiting`];
  return isRun ? ["finish", "Finish", `${name}: finish the run`] : ["release", "Release", `${name}: release the lock`];
}

/** One button for a deed and for what takes it back. */
function becomes(button, isDone, doIt, undoIt) {
  const [verb, text, label] = isDone ? undoIt : doIt;
  button.dataset.verb = verb;
  say(button, text);
  change(button, { "aria-label": label });
}

function stateOf({ phase, isPaused }, isValid) {
  if (isPaused) return phase === "held" ? (isValid ? "stands still, holding" : "stands still, lease over") : "stands still";
  return {
    idle: "rests",
    asking: "asks",
    waiting: "waits",
    held: "has the lock",
    releasing: "gives back",
    finishing: "finishes",
    done: "knows it is done",
    lost: "has lost the lock",
  }[phase];
}

function driftOf({ drift }, isCut) {
  const clock = drift === 0 ? "clock is right" : `clock ${Math.abs(drift * 100).toFixed(1)}% ${drift > 0 ? "fast" : "slow"}`;
  return isCut ? "cut off from the store" : clock;
}

function nodeCard(name, button, deed) {
  const parts = {
    state: make("span", { className: "state" }),
    before: long("counter "),
    counter: make("span"),
    more: make("span", { className: "more" }),
    bar: bar(),
    kill: button("Kill", `Take ${name} down`, () => deed(parts.kill.dataset.verb)),
    wipe: button("Wipe", `${name} loses its data`, () => deed("wipe")),
  };
  const [, word, number] = /^(Node )?(.+)$/.exec(name);
  const title = make(
    "div",
    { className: "title" },
    make("span", { className: "name" }, long(word ?? ""), number),
    parts.state,
  );
  const counter = make("span", { className: "counter" }, parts.before, parts.counter, parts.more);
  const buttons = make("div", { className: "buttons" }, parts.kill, parts.wipe);
  const card = make("article", { className: "card node", "aria-label": name }, title, parts.bar.element, counter, buttons);
  return { ...parts, card, name };
}

function showNode(parts, { node, queue, isDown, rate }, world) {
  const { record, marker } = node;
  const lease = record?.lease;
  const uptimeNs = world.nowNs * rate;
  const isKept = lease !== undefined && !lease.released;
  const leftNs = isKept ? Number(lease.expiresNs) - uptimeNs : 0;
  const abstains = world.nodes.length > 1 && (marker === undefined || marker.phase === "joining");
  const holder = isKept && (leftNs > 0 || !world.runsOut) ? lease.owner : undefined;
  change(parts.card, { "data-down": isDown, "data-abstains": abstains, "data-holder": holder ?? "" });
  say(parts.state, isDown ? "down" : abstains ? "abstains" : holder === undefined ? "free" : `${holder} has it`);
  style(parts.bar.fill, "inline-size", holder === undefined ? "0%" : percent(leftNs, Number(lease.recordTtlMs) * 1e6));
  say(parts.counter, record === undefined ? "–" : `${record.counter}`);
  const waiting = queue?.tickets().map((ticket) => world.workers[Number(ticket.split("/")[0])].name) ?? [];
  const completion = record?.completion;
  say(parts.more, completion !== undefined ? `done by ${completion.owner}` : waiting.length > 0 ? `queue: ${waiting.join(", ")}` : "");
  const { name } = parts;
  becomes(parts.kill, isDown, ["kill", "Kill", `Take ${name} down`], ["revive", "Revive", `Bring ${name} back`]);
}

function resourceCard(deed) {
  const guard = make("input", { type: "checkbox", id: "guard" });
  guard.addEventListener("change", () => deed("guard", guard.checked ? 1 : 0));
  const parts = {
    guard,
    mark: make("strong", { className: "token" }),
    version: make("span", { className: "version" }),
    entries: make("ol", { className: "entries", "aria-label": "Claims and writes, the newest first" }),
    shown: 0,
  };
  const facts = make(
    "div",
    { className: "facts" },
    make("h2", {}, "The report they all write"),
    make("p", {}, "newest token seen ", parts.mark, " ", parts.version),
    make("label", { className: "switch" }, guard, make("span", {}, "Guard: refuse older tokens")),
  );
  return { ...parts, content: [facts, parts.entries] };
}

function showResource(parts, { resource, workers }) {
  parts.guard.checked = resource.isGuarded;
  say(parts.mark, resource.mark === undefined ? "none" : `${resource.mark}`);
  say(parts.version, `version ${resource.version}`);
  const { entries } = resource;
  for (; parts.shown < entries.length; parts.shown += 1) {
    parts.entries.prepend(entryOf(entries[parts.shown], workers));
    if (parts.entries.children.length > MOST_ENTRIES) parts.entries.lastChild.remove();
  }
}

function entryOf({ what, worker, token, isAccepted, isLostUpdate, atNs }, workers) {
  const fate = isLostUpdate ? "overwrites" : isAccepted ? "accepted" : "refused";
  const tone = isLostUpdate ? "harm" : isAccepted ? "yes" : "no";
  const { name } = workers[worker];
  return make(
    "li",
    { "data-worker": name, "data-fate": fate },
    make("span", { className: "name" }, name),
    make("span", { className: "token" }, `${token}`),
    make("span", {}, what),
    sign(tone),
    make("b", {}, fate),
    make("time", {}, seconds(atNs)),
  );
}
