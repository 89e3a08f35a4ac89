// The page itself: what is in view, and what mouse, fingers and keys do to it.

const story = readStory();
story.overlaps = findOverlaps(story.spans);
story.violations = story.marks.filter((mark) => mark.kind === "violation").sort(byTime("at_ns"));
const onTime = story.arrows.filter((arrow) => arrow.arrived_ns !== null && arrow.fate === "normal");
const latencies = onTime.map((arrow) => arrow.arrived_ns - arrow.sent_ns).sort((a, b) => a - b);
story.usual = latencies[Math.floor(latencies.length / 2)] || 5e6;

const $ = (id) => document.getElementById(id);
const stage = $("stage");
const look = {
  kinds: new Set(Object.keys(ARROW_WORDS)), fates: new Set(Object.keys(FATE_WORDS)), resource: null, lane: null,
};
const still = window.matchMedia("(prefers-reduced-motion: reduce)");
let view = { from: 0, to: 1 };
let layout = null;
let frame = null;
let drawn = null;
let width = 1;
let current = -1;
let picked = null;

function bounds() {
  const pad = story.end * 0.012;
  return { from: -pad, to: story.end + pad };
}

/** The nearest view that stays within the run and is not finer than a nanosecond's worth of sense. */
function within({ from, to }) {
  const all = bounds();
  const length = Math.min(Math.max(to - from, 2000), all.to - all.from);
  const start = Math.min(Math.max((from + to) / 2 - length / 2, all.from), all.to - length);
  return { from: start, to: start + length };
}

function redraw() {
  if (frame === null) frame = requestAnimationFrame(paint);
}

function paint() {
  frame = null;
  if (!layout) return;
  drawn = drawStage($("canvas"), width, layout, view, look);
  drawOverview($("overview"), width, view);
  drawAxis($("axis"), width, view);
  $("window").textContent = `${sayLength(view.to - view.from)} in view`;
}

function setView(next) {
  view = within(next);
  hideTip();
  redraw();
  keepHash();
}

let motion = 0;
/** Moves to `next` in a short glide, or at once for those who asked for less motion. */
function glideTo(next) {
  cancelAnimationFrame(motion);
  const goal = within(next);
  if (still.matches) return setView(goal);
  const begin = { ...view };
  const started = performance.now();
  const step = (now) => {
    const part = Math.min(1, (now - started) / 200);
    const eased = 1 - (1 - part) ** 3;
    setView(part === 1 ? goal : { from: begin.from + (goal.from - begin.from) * eased, to: begin.to + (goal.to - begin.to) * eased });
    if (part < 1) motion = requestAnimationFrame(step);
  };
  motion = requestAnimationFrame(step);
}

/** Zooms by `factor` so that what is under `x` stays there. */
function zoomed(factor, x) {
  const at = view.from + (x / width) * (view.to - view.from);
  return { from: at - (at - view.from) * factor, to: at + (view.to - at) * factor };
}

/** A view in which the cause of a violation can be seen: from before the leases it is about, until a little after. */
function viewOf(mark) {
  let [from, to] = [mark.at_ns - 1e9, mark.at_ns + 3e8];
  for (const { first, second, to: until } of overlapsAt(mark)) {
    from = Math.min(from, Math.max(Math.min(first.from, second.from) - 2e8, mark.at_ns - 5e9));
    to = Math.max(to, Math.min(until + 2e8, mark.at_ns + 2e9));
  }
  return { from, to };
}

function goToViolation(index) {
  if (story.violations.length === 0) return;
  current = (index + story.violations.length) % story.violations.length;
  const mark = story.violations[current];
  glideTo(viewOf(mark));
  $("live").textContent = `${mark.label}, at ${sayTime(mark.at_ns)}`;
  $("bar").scrollIntoView({ block: "nearest" });
}

function goToLastSecond() {
  const mark = story.violations[Math.max(current, 0)];
  if (mark) glideTo({ from: mark.at_ns - 1e9, to: mark.at_ns + 8e7 });
}

/** Lays the lanes out anew: after a change of size, theme or filter. */
function relay() {
  if (story.lanes.length === 0) return;
  width = Math.max(120, stage.clientWidth);
  const above = $("gutter").getBoundingClientRect().top + window.scrollY;
  layout = arrange(look.resource, Math.max(260, window.innerHeight - above - 68));
  $("gutter").style.height = `${layout.height}px`;
  writeGutter();
  redraw();
}

function writeGutter() {
  const gutter = $("gutter");
  const focused = document.activeElement?.dataset?.lane;
  gutter.textContent = "";
  for (const lane of layout.lanes) {
    const button = add(gutter, "button");
    button.type = "button";
    button.dataset.lane = lane.index;
    button.style.top = `${lane.top}px`;
    button.style.height = `${lane.bottom - lane.top}px`;
    button.setAttribute("aria-pressed", String(look.lane === lane.index));
    button.title = `${lane.name}: ${lane.detail}\nClick: only its messages`;
    const name = add(button, "b");
    if (lane.kind === "host") add(name, "i").style.background = `var(--h${hostNumber(lane.index) % 8})`;
    add(name, "span", lane.name);
    const lines = Math.floor((lane.bottom - lane.top - 20) / 15.5);
    if (lines > 0) add(button, "small", lane.detail).style.webkitLineClamp = Math.min(lines, 4);
    button.addEventListener("click", () => highlight(lane.index));
    if (focused === String(lane.index)) button.focus();
    for (const group of lane.groups) {
      if (group.resource === null) continue;
      const label = add(gutter, "span", `r${group.resource}`);
      label.style.top = `${(group.top + group.bottom) / 2 - 8}px`;
    }
  }
}

function highlight(lane) {
  look.lane = look.lane === lane ? null : lane;
  for (const button of $("gutter").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.lane) === look.lane));
  }
  redraw();
}

function swatch(button, colour, dash, lost) {
  const path = '<path d="M0 4H18" fill="none" stroke-width="1.6"/>';
  button.insertAdjacentHTML("afterbegin", `<svg width="18" height="8" viewBox="0 0 18 8" aria-hidden="true">${path}</svg>`);
  const line = button.querySelector("path");
  line.style.stroke = colour;
  line.style.strokeDasharray = dash.join(" ");
  if (lost) line.setAttribute("d", "M0 4H12M9 1L15 7M9 7L15 1");
}

function writeLegend() {
  const legend = $("legend");
  const chips = (words, set, key, colour) => {
    for (const [name, word] of Object.entries(words)) {
      const count = story.arrows.filter((arrow) => arrow[key] === name).length;
      if (count === 0) continue;
      const button = add(legend, "button", word);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      add(button, "span", String(count), "count");
      swatch(button, colour(name), key === "fate" ? DASHES[name] : [], key === "fate" && name === "lost");
      button.title = "Click: show or hide. Double-click: only these.";
      const update = () => {
        for (const chip of legend.querySelectorAll(`[data-set="${key}"]`)) chip.setAttribute("aria-pressed", String(set.has(chip.dataset.name)));
        redraw();
      };
      Object.assign(button.dataset, { set: key, name });
      button.addEventListener("click", () => {
        if (!set.delete(name)) set.add(name);
        update();
      });
      button.addEventListener("dblclick", () => {
        const only = set.size === 1 && set.has(name);
        for (const other of Object.keys(words)) if (only || other === name) set.add(other); else set.delete(other);
        update();
      });
    }
  };
  chips(ARROW_WORDS, look.kinds, "kind", (name) => `var(--m-${name})`);
  if (story.arrows.length > 0) add(legend, "span", undefined, "rule");
  chips(FATE_WORDS, look.fates, "fate", () => "var(--soft)");
}

/** What lies under a point: what is small first, then bars, arrows, and what covers whole lanes. */
function under(x, y) {
  if (!drawn) return null;
  let found = null;
  for (const hit of drawn.hits) {
    const [left, top, right, bottom] = hit.box;
    if (x < left || x > right || y < top || y > bottom) continue;
    const rank = hit.type === "mark" ? 4 : hit.type === "overlap" ? 3 : hit.of.kind === "paused" || hit.of.kind === "dead" ? 0 : 2;
    if (!found || rank >= found.rank) found = { ...hit, rank };
  }
  if (found && found.rank > 0) return found;
  let nearest = 5;
  for (const line of drawn.lines) {
    const [dx, dy] = [line.x1 - line.x0, line.y1 - line.y0];
    const part = Math.min(1, Math.max(0, ((x - line.x0) * dx + (y - line.y0) * dy) / (dx * dx + dy * dy || 1)));
    const away = Math.hypot(x - line.x0 - part * dx, y - line.y0 - part * dy);
    if (away < nearest) {
      nearest = away;
      found = { ...line, rank: 1 };
    }
  }
  return found;
}

function showTip(item, x, y) {
  const tip = $("tip");
  const { head, text, facts, colour } = describe(item);
  tip.textContent = "";
  const title = add(tip, "b");
  if (colour) add(title, "i").style.background = colour;
  title.append(head);
  if (text && text !== head) add(tip, "p", text);
  const list = add(tip, "dl");
  for (const [name, value] of facts) {
    add(list, "dt", name);
    add(list, "dd", value);
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > window.innerWidth ? x - 14 - box.width : x + 16;
  tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, Math.min(y + 14, window.innerHeight - box.height - 8))}px)`;
}

function hideTip() {
  $("tip").hidden = true;
}

/** Steps to the event before or after, in the order of time, and says what it is. */
function stepEvent(by) {
  const times = (item) => item.of.at_ns ?? item.of.sent_ns ?? item.of.from;
  const all = [
    ...story.marks.filter((mark) => mark.seen).map((of) => ({ type: "mark", of })),
    ...story.spans.filter((span) => span.seen).map((of) => ({ type: "span", of })),
    ...story.arrows.filter((arrow) => arrowShown(arrow, look)).map((of) => ({ type: "arrow", of })),
  ].sort((a, b) => times(a) - times(b));
  if (all.length === 0) return;
  let at = picked ? all.findIndex((item) => item.of === picked) + by : all.findIndex((item) => times(item) >= view.from);
  at = Math.min(Math.max(at, 0), all.length - 1);
  const item = all[at];
  picked = item.of;
  const time = times(item);
  if (time < view.from || time > view.to) setView({ from: time - (view.to - view.from) * 0.2, to: time + (view.to - view.from) * 0.8 });
  paint();
  const rect = stage.getBoundingClientRect();
  const x = drawn.x(time);
  const y = item.type === "arrow" ? (wayOf(item.of, layout, drawn.x)?.y0 ?? 0) : (item.of.y ?? 0);
  placeHairline(x);
  showTip(item, rect.left + x, Math.max(rect.top + y, 0));
  const { head, text, facts } = describe(item);
  $("live").textContent = [head, text, ...facts.map((fact) => fact.join(" "))].filter(Boolean).join(", ");
}

function placeHairline(x) {
  $("hairline").hidden = x === null;
  if (x !== null) $("hairline").style.transform = `translateX(${Math.round(x)}px)`;
}

function listenToPointers() {
  const down = new Map();
  let moved = 0;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    cancelAnimationFrame(motion);
    down.set(event.pointerId, event.offsetX);
    moved = 0;
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    const rect = stage.getBoundingClientRect();
    const [x, y] = [event.clientX - rect.left, event.clientY - rect.top];
    if (!down.has(event.pointerId)) {
      const item = under(x, y);
      stage.classList.toggle("over", item !== null);
      placeHairline(x);
      if (item) showTip(item, event.clientX, event.clientY); else hideTip();
      return;
    }
    const before = down.get(event.pointerId);
    const others = [...down].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    down.set(event.pointerId, x);
    moved += Math.abs(x - before);
    if (moved < 3) return;
    stage.classList.add("moving");
    if (others.length === 1 && Math.abs(x - others[0]) > 8) {
      setView(zoomed(Math.abs(before - others[0]) / Math.abs(x - others[0]), others[0]));
    } else if (others.length === 0) {
      const shift = ((before - x) / width) * (view.to - view.from);
      setView({ from: view.from + shift, to: view.to + shift });
    }
  });
  const up = (event) => {
    if (!down.delete(event.pointerId)) return;
    stage.classList.remove("moving");
    if (event.type !== "pointerup" || moved >= 3 || !layout) return;
    const rect = stage.getBoundingClientRect();
    const y = event.clientY - rect.top;
    const item = under(event.clientX - rect.left, y);
    const lane = layout.lanes.find((one) => y >= one.top && y <= one.bottom);
    if (lane && (!item || item.rank === 0)) highlight(lane.index);
  };
  stage.addEventListener("pointerup", up);
  stage.addEventListener("pointercancel", up);
  stage.addEventListener("pointerleave", () => { hideTip(); placeHairline(null); });
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    cancelAnimationFrame(motion);
    const unit = event.deltaMode === 1 ? 16 : 1;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    if (sideways !== 0) {
      const shift = ((sideways * unit) / width) * (view.to - view.from);
      return setView({ from: view.from + shift, to: view.to + shift });
    }
    const rect = stage.getBoundingClientRect();
    setView(zoomed(Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.002)))), event.clientX - rect.left));
  }, { passive: false });
  const overview = $("overview");
  const jump = (event) => {
    const all = bounds();
    const at = all.from + (event.offsetX / overview.clientWidth) * (all.to - all.from);
    const half = (view.to - view.from) / 2;
    setView({ from: at - half, to: at + half });
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); jump(event); });
  overview.addEventListener("pointermove", (event) => { if (event.buttons === 1) jump(event); });
}

function listenToKeys() {
  const pan = (part) => () => {
    const shift = part * (view.to - view.from);
    glideTo({ from: view.from + shift, to: view.to + shift });
  };
  const actions = {
    ArrowLeft: pan(-0.25), ArrowRight: pan(0.25), v: () => goToViolation(current + 1), l: goToLastSecond,
    "+": () => glideTo(zoomed(0.5, width / 2)), "-": () => glideTo(zoomed(2, width / 2)), 0: () => glideTo(bounds()),
    j: () => stepEvent(1), k: () => stepEvent(-1),
    Escape: () => { hideTip(); picked = null; if (look.lane !== null) highlight(look.lane); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input")) return;
    const action = layout && actions[event.key === "=" ? "+" : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  $("fit").addEventListener("click", actions[0]);
  $("in").addEventListener("click", actions["+"]);
  $("out").addEventListener("click", actions["-"]);
  $("last").addEventListener("click", goToLastSecond);
  $("next").addEventListener("click", actions.v);
}

function writeResources() {
  const numbers = new Set([...story.spans, ...story.marks].map((thing) => thing.resource).filter((r) => r !== null && r !== undefined));
  const select = $("resource");
  add(select, "option", "all").value = "";
  for (const number of [...numbers].sort((a, b) => a - b)) add(select, "option", `r${number}`).value = String(number);
  select.parentElement.hidden = numbers.size < 2;
  select.addEventListener("change", () => {
    look.resource = select.value === "" ? null : Number(select.value);
    relay();
  });
}

const hash = () => new URLSearchParams(window.location.hash.slice(1));
function writeHash(parts) {
  // Some viewers of local files refuse; the picture does not depend on it.
  try { window.history.replaceState(null, "", `#${parts}`); } catch { return; }
}

let hashTimer = 0;
/** Keeps what is in view in the address, so that a link shows the same picture. */
function keepHash() {
  clearTimeout(hashTimer);
  hashTimer = setTimeout(() => {
    const parts = hash();
    parts.set("from", Math.round(view.from / 1e3));
    parts.set("to", Math.round(view.to / 1e3));
    writeHash(parts);
  }, 300);
}

function startTheme() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = hash().get("theme");
  const apply = () => {
    document.documentElement.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
    hatches = new Map();
    readPalette();
    redraw();
  };
  system.addEventListener("change", apply);
  $("theme").addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    const parts = hash();
    parts.set("theme", chosen);
    writeHash(parts);
    apply();
  });
  apply();
}

function start() {
  startTheme();
  writeHead();
  writeVerdict(goToViolation);
  if (story.lanes.length === 0) {
    for (const id of ["legend", "bar", "stage", "key", "events"]) $(id).hidden = true;
    $("nothing").hidden = false;
    return;
  }
  $("failure").hidden = story.violations.length === 0;
  $("next").hidden = story.violations.length < 2;
  writeLegend();
  writeResources();
  writeEvents();
  const asked = hash();
  if (asked.has("from") && asked.has("to")) view = within({ from: Number(asked.get("from")) * 1e3, to: Number(asked.get("to")) * 1e3 });
  else view = within(story.violations.length > 0 ? viewOf(story.violations[0]) : bounds());
  current = story.violations.length > 0 ? 0 : -1;
  listenToPointers();
  listenToKeys();
  new ResizeObserver(relay).observe(stage.parentElement);
  window.addEventListener("resize", relay);
  relay();
}

start();
