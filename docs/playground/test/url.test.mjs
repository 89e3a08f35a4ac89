// Links: what is written can be read, and what cannot be read does no harm.

import assert from "node:assert/strict";
import { test } from "node:test";

import { stream } from "../random.mjs";
import { read, usual, written } from "../url.mjs";

test("a link is short, and can be read by people", () => {
  const settings = { ...usual("pause"), store: "quorum", latencyMs: 40, isGuarded: false };
  const deeds = [{ atNs: 1_500_000_000, verb: "wipe", to: "2" }];
  const link = written(settings, 12_500_000_000, deeds);
  assert.equal(link, "#scenario=pause&store=quorum&ttl=8&drift=1&latency=40&loss=0&seed=7&guard=off&t=12.5&do=1.5-wipe-2");
  assert.deepEqual(read(link), { settings: { ...settings, atNs: 12_500_000_000, deeds }, notes: [] });
});

test("nothing at all is what one begins with", () => {
  for (const nothing of ["", "#", "#&&"]) assert.deepEqual(read(nothing), { settings: usual(), notes: [] });
});

test("what cannot be read is told, and what is usual takes its place", () => {
  for (const [link, note] of [
    ["#scenario=nothing", /scenario=nothing is not known, pause is used/],
    ["#store=mysql", /store=mysql is not known, single is used/],
    ["#scenario=split&store=single", /“The split vote” needs store=quorum/],
    ["#guard=maybe", /guard=maybe is not known, on is used/],
    ["#ttl=1", /ttl=1 is not one of 2 to 30, 8 is used/],
    ["#ttl=8.5", /ttl=8.5 is not one of/],
    ["#ttl=1e1", /ttl=1e1 is not one of/],
    ["#ttl=-8", /ttl=-8 is not one of/],
    ["#drift=NaN", /drift=NaN is not one of 0 to 10, 1 is used/],
    ["#latency=", /latency= is not one of/],
    ["#scenario=split&seed=99999", /seed=99999 is not one of 0 to 9999, 21 is used/],
    ["#t=601", /t=601 is not one of 0 to 600 seconds, 0 is used/],
    ["#t=Infinity", /t=Infinity is not one of/],
    ["#toString=1", /“toString” is no setting/],
    ["#__proto__=1", /“__proto__” is no setting/],
    ["#stage", /“stage” is no setting/],
    ["#t=9&do=1-explode-a", /“1-explode-a” is nothing that can be done/],
    ["#t=9&do=1-constructor-a", /“1-constructor-a” is nothing that can be done/],
    ["#t=9&do=1", /“1” is nothing that can be done/],
    ["#t=9&do=5-pause-a,4-wake-a", /“4-wake-a” comes too late/],
  ]) {
    const { settings, notes } = read(link);
    assert.equal(notes.length, 1, `${link}: ${notes}`);
    assert.match(notes[0], note);
    assert.equal(settings.ttlMs, 8_000);
  }
});

test("no link, however long or strange, is more than a few notes", () => {
  const random = stream(1, "links");
  const words = [
    "scenario",
    "store",
    "ttl",
    "drift",
    "do",
    "t",
    "=",
    "&",
    "-",
    ",",
    "#",
    "7",
    "9999999",
    "pause",
    "quorum",
    "%00",
    "<b>",
    "…",
  ];
  for (let n = 0; n < 2_000; n += 1) {
    const link = Array.from({ length: Math.floor(random() * 60) }, () => words[Math.floor(random() * words.length)]).join(
      "",
    );
    const { settings, notes } = read(`#${link}`);
    assert.ok(notes.length <= 5 && notes.every((note) => note.length < 120));
    const again = read(written(settings, settings.atNs, settings.deeds));
    assert.deepEqual(again, { settings, notes: [] });
  }
  const many = Array.from({ length: 101 }, (_, n) => `${n}-pause-a`).join(",");
  const { settings, notes } = read(`#t=600&do=${many}`);
  assert.equal(settings.deeds.length, 100);
  assert.deepEqual(notes, ["only the first 100 deeds are done"]);
});
