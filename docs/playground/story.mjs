// The scenario in words, the log, and which buttons of the time make sense.

import { change, enable, make, one, say, seconds } from "./dom.mjs";
import { SCENARIOS } from "./scenarios.mjs";
import { NAMES } from "./world.mjs";

/** Of what happened, as much as anybody would scroll back. */
const MOST_LINES = 200;
/** Lines at once, or faster than life: nobody could listen to more. */
const MOST_TOLD = 5;

export class Story {
  #steps;
  #logged = 0;

  constructor({ scenario }) {
    say(one("title"), scenario.title);
    say(one("why"), scenario.why.join(" "));
    this.#steps = scenario.steps.map(({ say }, at) => make("li", { "data-number": at + 1 }, make("span", {}, say)));
    one("steps").replaceChildren(...this.#steps);
    list().replaceChildren();
    one("finish").hidden = scenario.steps.length === 0;
    for (const button of one("scenarios").children) {
      change(button, { "aria-current": button.dataset.id === scenario.id ? "true" : undefined });
    }
  }

  show(session, isRunning) {
    const { director, scenario, world } = session;
    this.#steps.forEach((item, at) => {
      const state = at < director.done ? "done" : at === director.done ? (director.isOn ? "on" : "next") : "later";
      if (item.dataset.state === state) return;
      item.dataset.state = state;
      change(item, { "aria-current": state === "on" || state === "next" ? "step" : undefined });
      if (director.missed.has(at))
        item.append(make("em", {}, " It went otherwise: these settings, or what you did, led elsewhere."));
    });
    const isOver = director.isOver && scenario.steps.length > 0;
    const isTold = isOver && director.missed.size === 0;
    say(one("ending"), isTold ? scenario.end(world) : "");
    change(one("ending"), { "data-tone": world.resource.lostUpdates > 0 ? "bad" : undefined });
    one("replay").hidden = !(isTold && scenario.canReplay);
    say(one("replay"), world.resource.isGuarded ? "Replay without the guard" : "Replay with the guard");
    say(one("play"), isRunning ? "Pause" : "Play");
    enable(one("next"), !session.isAtEnd);
    enable(one("play"), !session.isAtEnd);
    enable(one("finish"), !director.isOver);
    say(one("clock"), seconds(world.nowNs));
    this.#showLog(world);
  }

  #showLog({ log, nodes }) {
    if (this.#logged === log.length) return;
    const [box, lines] = [one("log"), list()];
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    const isTooMuch = log.length - this.#logged > MOST_TOLD || Number(one("speed").value) > 1;
    change(box, { "aria-live": isTooMuch ? "off" : "polite" });
    lines.append(...log.slice(this.#logged).map((line) => lineOf(line)));
    this.#logged = log.length;
    while (lines.children.length > MOST_LINES) lines.firstChild.remove();
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  }
}

const list = () => one("log").firstElementChild;

function lineOf({ atNs, worker, text, tone }) {
  const name = NAMES[worker];
  const who = worker === undefined ? [] : [make("b", {}, name), " "];
  const line = make("li", { "data-tone": tone }, make("time", {}, seconds(atNs)), make("span", {}, ...who, text));
  if (name !== undefined) line.dataset.worker = name;
  return line;
}

/** A button for each scenario. */
export function scenarioButtons(choose) {
  return SCENARIOS.map(({ id, title }) => {
    const button = make("button", { type: "button", "data-id": id }, title);
    button.addEventListener("click", () => choose(id));
    return button;
  });
}
