// The page: it shows a session, lets its time pass, and keeps it in the url.

import { Cards } from "./cards.mjs";
import { Controls } from "./controls.mjs";
import { change, isEnabled, make, one, say } from "./dom.mjs";
import { Wires, legend } from "./draw.mjs";
import { Lanes } from "./lanes.mjs";
import { load } from "./load.mjs";
import { DEEDS, MOST_DEEDS, MOST_SECONDS, Session } from "./session.mjs";
import { Story, scenarioButtons } from "./story.mjs";
import { read, usual, written } from "./url.mjs";

/** How often a page is painted on which nothing moves. */
const CALM_MS = 250;
const REMEMBERS_EVERY_MS = 2_000;
/** A tab that was in the background has missed nothing. */
const LONGEST_FRAME_MS = 100;

const protocol = await load();
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");
const controls = new Controls(anew, deed);
let session;
let views;
/** "no", "on", or "to the end of the step". */
let running = "no";
let lastFrame;
let remembered = 0;
let hash;

function begin(settings, notes = []) {
  stop();
  session = new Session(protocol, settings);
  const cards = new Cards(session, deed);
  // Wires are measured between cards as large as they will be.
  cards.show(session);
  views = { cards, wires: new Wires(session, cards.places()), lanes: new Lanes(session), story: new Story(session) };
  note(notes);
  show();
  controls.show({ settings: current(), scenario: session.scenario });
  remember();
}

/** The settings as they are now: some of them change while the world runs. */
function current() {
  const { settings, world } = session;
  const { latencyMs, lossPercent } = world.network;
  return { ...settings, latencyMs, lossPercent, isGuarded: world.resource.isGuarded };
}

/** The same scenario from its beginning, with other settings. */
function anew(changes) {
  begin({ ...current(), ...changes, atNs: 0, deeds: [] });
}

function deed(verb, to) {
  if (session.deeds.length === MOST_DEEDS || session.isAtEnd) {
    note([
      `this course of events is full: no more than ${MOST_DEEDS} deeds and ${MOST_SECONDS} s fit in a link; start over`,
    ]);
  } else {
    session.deed(verb, to);
  }
  settle();
}

function show() {
  const { cards, wires, lanes, story } = views;
  cards.show(session);
  wires.show(session, calm.matches);
  lanes.show(session);
  story.show(session, running !== "no");
}

function settle() {
  show();
  if (running === "no") views.lanes.tell(session);
  controls.show({ settings: current(), scenario: session.scenario });
  remember();
}

function run(how) {
  if (session.isAtEnd) return;
  if (running === "no") requestAnimationFrame(frame);
  running = how;
  lastFrame = undefined;
  show();
}

function stop() {
  if (running === "no") return;
  running = "no";
  session.align();
  settle();
}

function frame(at) {
  if (running === "no") return;
  const passed = Math.min(at - (lastFrame ?? at), calm.matches ? CALM_MS * 2 : LONGEST_FRAME_MS);
  if (calm.matches && lastFrame !== undefined && passed < CALM_MS) {
    requestAnimationFrame(frame);
    return;
  }
  lastFrame = at;
  const wasOver = session.director.isOver;
  const hasSteps = session.scenario.steps.length > 0;
  const untilNs = session.nowNs + passed * 1e6 * Number(one("speed").value);
  const isStepOver = session.advance(untilNs, hasSteps && !wasOver && (running !== "on" || isLastStep()));
  const isOver = hasSteps && !wasOver && session.director.isOver;
  if (isOver || (isStepOver && running !== "on") || session.isAtEnd) {
    stop();
    return;
  }
  show();
  if (at - remembered > REMEMBERS_EVERY_MS) {
    remembered = at;
    remember();
  }
  requestAnimationFrame(frame);
}

const isLastStep = () => session.director.done === session.scenario.steps.length - 1;

/** In the address bar, without a new entry in the history. */
function remember() {
  const { world, deeds } = session;
  hash = written(session.settings, world.nowNs, deeds);
  history.replaceState(null, "", hash);
}

function note(notes) {
  one("notes").replaceChildren(...notes.map((text) => make("p", {}, `Note: ${text}.`)));
}

function listen() {
  const press = (id, act) => one(id).addEventListener("click", () => isEnabled(one(id)) && act());
  press("play", () => (running === "no" ? run("on") : stop()));
  press("next", () => {
    if (!session.director.isOver) return run("to the end of the step");
    stop();
    session.next();
    settle();
  });
  press("finish", () => {
    stop();
    session.finish();
    settle();
  });
  press("restart", () => anew({}));
  press("replay", () => {
    anew({ isGuarded: !session.world.resource.isGuarded });
    run("on");
  });
  press("share", async () => {
    stop();
    try {
      await navigator.clipboard.writeText(location.href);
      note(["the link is in the clipboard"]);
    } catch {
      note(["the link is in the address bar"]);
    }
  });
  press("theme", () => theme(shownTheme() === "dark" ? "light" : "dark"));
  addEventListener("hashchange", () => {
    if (location.hash !== hash) visit();
  });
  new ResizeObserver(() => {
    views.wires.measure();
    views.wires.show(session, calm.matches);
  }).observe(one("stage"));
  calm.addEventListener("change", show);
  dark.addEventListener("change", () => theme(document.documentElement.dataset.theme));
}

const shownTheme = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");

function theme(chosen) {
  change(document.documentElement, { "data-theme": chosen });
  say(one("theme"), shownTheme() === "dark" ? "Light" : "Dark");
  change(one("theme"), { "aria-label": `Switch to ${shownTheme() === "dark" ? "light" : "dark"} colours` });
}

function visit() {
  const { settings, notes } = read(location.hash);
  begin(settings, notes);
}

one("scenarios").replaceChildren(...scenarioButtons((id) => begin(usual(id))));
one("legend").replaceChildren(...legend());
theme(undefined);
visit();
listen();
