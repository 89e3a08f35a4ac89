// The story in words: how times, things and broken promises are said to a reader who sees the protocol for the first time.

const PROMISES = {
  I1: ["Only one holder at a time", "Two holders must never both believe, at the same instant, that the lock is theirs."],
  I1b: ["A lease stands in the store", "While a holder believes in its lease, the store must hold its record: that is what keeps the others away."],
  I2: ["Tokens only grow", "Every grant must carry a token of its own, larger than those of all grants before it."],
  I3: ["No update is lost", "What one holder wrote must never be overwritten by another who had not seen it."],
  I4: ["A dead holder is replaced in time", "When a holder dies, a waiter must get the lock within a bound."],
  I5: ["No waiter oversleeps", "A waiter must look again on its own, even when no wake-up ever reaches it."],
  I6: ["Nothing stays behind", "A record that nobody keeps alive must be gone within a bound."],
  I7: ["Over means over", "After its deadline a lease must answer LOST, and nothing that comes late may revive it."],
  I8: ["The cost is bounded", "Requests and memory must stay within what was promised."],
};
const SPAN_WORDS = {
  waiting: "Waiting", belief: "Believes it holds", record: "Record in the store", paused: "Paused", dead: "No process", fault: "Fault",
};
const ARROW_WORDS = {
  acquire: "acquire", renew: "renew", release: "release", raise: "raise", read: "read", applied: "applied", not_applied: "not applied",
  unknown: "unknown", wake: "wake-up", write: "write", written: "written",
};
const FATE_WORDS = { normal: "on time", delayed: "delayed", duplicate: "duplicate", lost: "lost" };
const MARK_WORDS = { event: "Event", accepted: "Write accepted", refused: "Write refused", fault: "Fault", violation: "Promise broken" };

const FAR = 1e18;

/** The embedded story, with times beyond the end of the world cut off. */
function readStory() {
  const text = document.getElementById("story").textContent;
  // A token may be larger than a number holds exactly. Only a key is a bare quote, the word and `":`, so no label matches.
  const read = text.trim() ? JSON.parse(text.replace(/"token":(\d+)/g, '"token":"$1"')) : {};
  const whole = { title: "", commit: "", facts: [], lanes: [], spans: [], arrows: [], marks: [], end_ns: 0, ...read };
  let latest = 0;
  const see = (time) => { if (time !== null && time < FAR && time > latest) latest = time; };
  for (const span of whole.spans) { see(span.from_ns); see(span.to_ns); }
  for (const arrow of whole.arrows) { see(arrow.sent_ns); see(arrow.arrived_ns); }
  for (const mark of whole.marks) see(mark.at_ns);
  const end = whole.end_ns > 0 && whole.end_ns < FAR ? whole.end_ns : latest;
  for (const span of whole.spans) {
    span.open = span.to_ns >= FAR;
    span.from = Math.min(span.from_ns, Math.max(end, latest));
    span.to = span.open ? end : span.to_ns;
  }
  for (const arrow of whole.arrows) if (arrow.arrived_ns >= FAR) arrow.arrived_ns = null;
  whole.marks = whole.marks.filter((mark) => mark.at_ns < FAR);
  return { ...whole, end: Math.max(end, 1) };
}

const group3 = (digits) => digits.replace(/(\d{3})(?=\d)/g, "$1\u202f");

/** An instant, exact to the last digit that is not zero, at least to the millisecond. */
function sayTime(ns) {
  const whole = Math.floor(Math.abs(ns) / 1e9);
  let rest = String(Math.round(Math.abs(ns) % 1e9)).padStart(9, "0");
  while (rest.length > 3 && rest.endsWith("000")) rest = rest.slice(0, -3);
  return `${ns < 0 ? "\u2212" : ""}${whole}.${group3(rest)}\u00a0s`;
}

/** An instant as one says it aloud: to the millisecond. */
const sayAbout = (ns) => sayTime(Math.round(ns / 1e6) * 1e6);

/** A length of time, in the unit that suits it. */
function sayLength(ns) {
  const [unit, size] = ns >= 1e9 ? ["s", 1e9] : ns >= 1e6 ? ["ms", 1e6] : ns >= 1e3 ? ["\u00b5s", 1e3] : ["ns", 1];
  return `${Number((ns / size).toPrecision(4))}\u00a0${unit}`;
}

const laneName = (index) => (index === null || index === undefined ? null : (story.lanes[index]?.name ?? `lane ${index}`));
const ownerName = (span) => laneName(span.owner ?? (span.kind === "belief" || span.kind === "waiting" ? span.lane : null)) ?? "a foreign client";
const resourceName = (resource) => (resource === null || resource === undefined ? null : `resource ${resource}`);
const shortToken = (token) => (token.length > 6 ? `\u2026${token.slice(-4)}` : token);

const codeOf = (mark) => /\bI[1-8]b?\b/.exec(mark.label)?.[0] ?? null;
const promiseOf = (mark) => PROMISES[codeOf(mark)] ?? null;

/** The overlaps of beliefs that a violation may be about; none when it says that it is about another promise. */
function overlapsAt(mark) {
  if (![null, "I1", "I1b"].includes(codeOf(mark))) return [];
  const about = (overlap) => mark.resource === null || overlap.resource === mark.resource;
  return story.overlaps.filter((overlap) => overlap.from <= mark.at_ns && mark.at_ns <= overlap.to && about(overlap));
}

/** When, where and by whom: as far as the picture itself knows it. */
function accountOf(mark) {
  const near = overlapsAt(mark);
  const who = laneName(mark.lane);
  const what = resourceName(mark.resource);
  if (near.length > 0) {
    const { first, second, from, to, resource } = near[0];
    const name = (span) => `${ownerName(span)}${span.token === null ? "" : ` (token ${span.token})`}`;
const since = sayAbout(from) === sayAbout(mark.at_ns) ? "" : `, since ${sayAbout(from)}`;
    const both = `${name(first)} and ${name(second)} both believed that they held ${resourceName(resource) ?? "the lock"}`;
    return `At ${sayAbout(mark.at_ns)}, ${both}: together for ${sayLength(to - from)}${since}.`;
  }
  return `At ${sayAbout(mark.at_ns)}${who ? `, by ${who}` : ""}${what ? `, on ${what}` : ""}.`;
}

/** Headline and lines of a tooltip for anything that can be pointed at. */
function describe(item) {
  const { type, of } = item;
  if (type === "span") {
    const facts = [["from", sayTime(of.from_ns)], ["to", of.open ? "the end" : sayTime(of.to_ns)], ["lasts", sayLength(of.to - of.from)]];
    const held = of.kind === "belief" || of.kind === "record";
    if (held && of.token !== null) facts.unshift(["token", of.token]);
    if (held || of.kind === "waiting") facts.unshift(["holder", ownerName(of)]);
    if (of.kind === "waiting") facts[0][0] = "waiter";
    if (of.resource !== null) facts.unshift(["resource", String(of.resource)]);
    if (!held && of.kind !== "waiting") facts.unshift(["where", laneName(of.lane)]);
    return { head: SPAN_WORDS[of.kind], text: of.label, facts, colour: held ? holderColour(of) : null };
  }
  if (type === "arrow") {
    const facts = [["way", `${laneName(of.from)} \u2192 ${laneName(of.to)}`], ["sent", sayTime(of.sent_ns)]];
    if (of.arrived_ns === null) facts.push(["arrived", "never"]);
    else facts.push(["arrived", sayTime(of.arrived_ns)], ["took", sayLength(of.arrived_ns - of.sent_ns)]);
    if (of.fate !== "normal") facts.push(["fate", FATE_WORDS[of.fate]]);
    return { head: ARROW_WORDS[of.kind], text: of.label, facts, colour: palette[`m-${of.kind}`] };
  }
  if (type === "overlap") {
    const name = (span) => `${ownerName(span)}, token ${span.token ?? "\u2013"}`;
    const facts = [["resource", String(of.resource ?? "\u2013")], ["first", name(of.first)], ["second", name(of.second)]];
    facts.push(["from", sayTime(of.from)], ["to", sayTime(of.to)], ["lasts", sayLength(of.to - of.from)]);
    return { head: "Two holders at once", text: "", facts, colour: palette.danger };
  }
  const facts = [["at", sayTime(of.at_ns)], ["where", laneName(of.lane) ?? "the whole world"]];
  if (of.resource !== null) facts.push(["resource", String(of.resource)]);
  const promise = of.kind === "violation" ? promiseOf(of) : null;
  const colours = { violation: palette.danger, fault: palette.fault, refused: palette["m-not_applied"], accepted: palette.calm };
  return { head: promise?.[0] ?? MARK_WORDS[of.kind], text: of.label, facts, colour: colours[of.kind] ?? palette.muted };
}

function add(parent, tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  parent.append(node);
  return node;
}

function writeHead() {
  const title = story.title || "A run of the simulator";
  document.title = title;
  document.getElementById("title").textContent = title;
  const facts = document.getElementById("facts");
  const fact = (name, value, mono) => {
    const row = add(facts, "div");
    add(row, "dt", name);
    add(row, "dd", value, mono ? "mono" : "");
  };
  if (story.commit) fact("commit", story.commit.length > 16 ? story.commit.slice(0, 12) : story.commit, true);
  for (const [name, value] of story.facts) fact(name, value, false);
}

/** The verdict: calm when every promise was kept, otherwise each broken one with a way to look at it. */
function writeVerdict(goTo) {
  const box = document.getElementById("verdict");
  const broken = story.violations;
  if (broken.length === 0) {
    add(box, "h2", "No promise was broken");
    const overlapping = story.overlaps.length;
    if (story.lanes.length === 0) return;
    const beliefs = story.spans.filter((span) => span.kind === "belief").length;
    add(box, "p", overlapping === 0
      ? `${beliefs} ${beliefs === 1 ? "lease" : "leases"} in ${sayLength(story.end)}, never two on one resource at the same instant.`
      : `Two holders did believe in one lock ${overlapping === 1 ? "once" : `${overlapping} times`} (red below), `
        + "under a fault that takes this promise away; all other promises stood.");
    return;
  }
  box.classList.add("broken");
  const list = add(box, "ol");
  for (const [index, mark] of broken.slice(0, 3).entries()) {
    const item = add(list, "li");
    const words = add(item, "div");
    const promise = promiseOf(mark);
    add(words, "h2", promise ? `A promise was broken: ${promise[0].toLowerCase()}` : "A promise was broken");
    add(words, "p", promise ? `${promise[1]} ${accountOf(mark)}` : accountOf(mark));
    if (mark.label) add(words, "p", `The checker says: ${mark.label}`, "small");
    const button = add(item, "button", "Show it");
    button.type = "button";
    button.addEventListener("click", () => goTo(index));
  }
  if (broken.length > 3) add(box, "p", `And ${broken.length - 3} more; the first is usually the one to look at.`, "small");
}

/** The same events as text: around the violation if there is one, otherwise from the beginning. */
function writeEvents() {
  const at = story.violations[0]?.at_ns;
  const rows = [];
  for (const mark of story.marks) rows.push([mark.at_ns, { type: "mark", of: mark }, "at"]);
  for (const span of story.spans) {
    rows.push([span.from, { type: "span", of: span }, "begins"]);
    if (!span.open) rows.push([span.to, { type: "span", of: span }, "ends"]);
  }
  for (const arrow of story.arrows) {
    rows.push([arrow.sent_ns, { type: "arrow", of: arrow }, "sent"]);
    if (arrow.arrived_ns !== null) rows.push([arrow.arrived_ns, { type: "arrow", of: arrow }, "arrives"]);
  }
  rows.sort((a, b) => a[0] - b[0]);
  const near = at === undefined ? rows.slice(0, 300) : rows.filter(([time]) => time > at - 1e9 && time < at + 3e8).slice(-300);
  document.getElementById("events-title").textContent = at === undefined
    ? `Events as text (${near.length < rows.length ? `the first ${near.length} of ${rows.length}` : near.length})`
    : `Events as text, from one second before the first violation (${near.length} of ${rows.length})`;
  const body = document.getElementById("rows");
  for (const [time, item, phase] of near) {
    const { head, text } = describe(item);
    const { of, type } = item;
    const row = add(body, "tr", undefined, of.kind === "violation" ? "broken" : "");
    add(row, "td", sayTime(time));
    add(row, "td", type === "arrow" ? `${laneName(of.from)} \u2192 ${laneName(of.to)}` : (laneName(of.lane) ?? "world"));
    const lost = type === "arrow" && of.arrived_ns === null ? ", lost on the way" : "";
    add(row, "td", `${head}${phase === "at" ? "" : `, ${phase}`}${lost}`);
    const token = type === "span" && of.token !== null ? `token ${of.token}` : "";
    const resource = type !== "arrow" && of.resource !== null ? resourceName(of.resource) : "";
    add(row, "td", [resource, token, text].filter(Boolean).join(", "));
  }
}
