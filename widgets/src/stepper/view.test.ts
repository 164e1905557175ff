import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bar, Batch, Branch, Row, State } from "./protocol.ts";
import {
  absorb, ahead, announcement, axis, barSentence, branchTree, canNow, chartCaption, drawBars, emptyMemory, kept, LAMPS, partings, pill, PLACES, position, sameUpTo,
} from "./view.ts";

function state(over: Partial<State> = {}): State {
  return {
    branch: 0, at: 0, last: 0, rows: 0, bars: 0, phase: "request", turn: 1, lamps: {}, next: "the request is sent.", status: "running", answer: null, running: false,
    notes: [], held: [], can: { step: true, back: true, forward: "nothing ahead" }, branches: [{ id: 0, name: "main", parent: null, row: 0, rows: 0, current: true }], title: "", door: false, ...over,
  };
}

const row = (i: number, text = `message ${i}`): Row => ({ i, role: "user", text, more: 0, tokens: 1, exact: true });
const bar = (request: number, size = 10): Bar => ({ request, system: size, user: size, assistant: 0, tool: 0, tools: size, exact: false });
const rows = (from: number, to: number): Row[] => Array.from({ length: to - from }, (_, n) => row(from + n));

function batch(from: number, to: number, over: Partial<Batch> = {}): Batch {
  return { op: "batch", epoch: 0, branch: 0, from_row: from, rows: rows(from, to), from_bar: 0, bars: [], state: state({ rows: to }), total_rows: to, total_bars: 0, ...over };
}

test("batches add up, and an overlap changes nothing", () => {
  const memory = emptyMemory();
  assert.equal(absorb(memory, batch(0, 3)), "whole");
  const before = [...kept(memory, 0).rows];
  assert.equal(absorb(memory, batch(1, 5)), "whole");
  assert.equal(kept(memory, 0).rows.length, 5);
  assert.equal(kept(memory, 0).rows[2], before[2], "an equal row keeps its identity, so its drawing is kept");
});

test("a gap is noticed and filled", () => {
  const memory = emptyMemory();
  absorb(memory, batch(0, 2));
  assert.equal(absorb(memory, batch(4, 6)), "gap");
  assert.equal(kept(memory, 0).rows.length, 2, "nothing is put in a wrong place");
  assert.equal(absorb(memory, batch(2, 6)), "whole");
});

test("a lost tail is noticed by the total", () => {
  const memory = emptyMemory();
  assert.equal(absorb(memory, batch(0, 400, { total_rows: 1000 })), "more");
  assert.equal(absorb(memory, batch(400, 1000)), "whole");
  assert.equal(kept(memory, 0).rows.length, 1000);
});

test("a reset begins anew, and a shorter branch is cut", () => {
  const memory = emptyMemory();
  absorb(memory, batch(0, 5));
  absorb(memory, batch(0, 2, { epoch: 1 }));
  assert.equal(kept(memory, 0).rows.length, 2);
  absorb(memory, batch(0, 1, { epoch: 1 }));
  assert.equal(kept(memory, 0).rows.length, 1);
});

test("a fork begins with what it shares with its parent", () => {
  const memory = emptyMemory();
  absorb(memory, batch(0, 6));
  const branches: Branch[] = [
    { id: 0, name: "main", parent: null, row: 0, rows: 6, current: false },
    { id: 1, name: "fork", parent: 0, row: 3, rows: 4, current: true },
  ];
  const forked = batch(3, 4, { branch: 1, rows: [row(3, "edited")], state: state({ branch: 1, rows: 4, branches }) });
  assert.equal(absorb(memory, forked), "whole");
  assert.deepEqual(kept(memory, 1).rows.map(({ text }) => text), ["message 0", "message 1", "message 2", "edited"]);
  assert.equal(kept(memory, 0).rows[3]?.text, "message 3", "the parent stays as it was");
});

test("a fork of a parent that was never seen is asked for", () => {
  const memory = emptyMemory();
  const branches: Branch[] = [{ id: 0, name: "main", parent: null, row: 0, rows: 6, current: false }, { id: 1, name: "fork", parent: 0, row: 3, rows: 4, current: true }];
  assert.equal(absorb(memory, batch(3, 4, { branch: 1, state: state({ branch: 1, rows: 4, branches }) })), "gap");
});

test("only what differs is drawn", () => {
  const all = rows(0, 5);
  assert.equal(sameUpTo(all, all, 3), 3, "back: the last two go");
  assert.equal(sameUpTo(all.slice(0, 3), all, 5), 3, "forward: two come");
  assert.equal(sameUpTo(all, [...all.slice(0, 2), row(2, "edited")], 3), 2);
});

test("bytes that are looked at for a step do not grow with the history", () => {
  const memory = emptyMemory();
  absorb(memory, batch(0, 2000));
  const step = batch(2000, 2001, { total_rows: 2001 });
  assert.ok(JSON.stringify(step).length < 1500);
  assert.equal(absorb(memory, step), "whole");
});

test("the status is an icon and a word", () => {
  assert.equal(pill(state()).word, "ready");
  assert.equal(pill(state({ rows: 2 })).word, "standing still");
  assert.equal(pill(state({ running: true })).word, "running");
  assert.equal(pill(state({ running: true, rows: 1 }), false).word, "standing still", "a short step is not drawn as running");
  assert.equal(pill(state({ at: 1, last: 4, rows: 2 })).word, "looking back");
  assert.deepEqual(pill(state({ status: "waiting", rows: 2 })), { icon: "hand", word: "waits for you", tone: "wait" });
  assert.equal(pill(state({ status: "over_budget", rows: 2 })).tone, "warn");
  assert.equal(pill(state({ status: "some_new_one", rows: 2 })).word, "some new one");
});

test("what the right arrow does", () => {
  assert.equal(ahead(state()), "step");
  assert.equal(ahead(state({ at: 1, last: 3, can: { step: true, forward: true } })), "forward");
  assert.equal(ahead(state({ can: { step: "over", forward: true } })), "forward");
});

test("while something runs only pause and stop are on", () => {
  const running = state({ running: true, can: { step: true, back: true, run: true, stop: true, reset: true } });
  assert.equal(canNow(running, "run"), true);
  assert.equal(canNow(running, "stop"), true);
  for (const control of ["step", "back", "forward", "reset", "fork"] as const) assert.equal(typeof canNow(running, control), "string");
});

test("the place in words", () => {
  assert.equal(position(state({ at: 2, last: 8, turn: 2 })), "Stop 3 of 9 · turn 2");
  assert.equal(position(state({ at: 8, last: 8, turn: 0 })), "Stop 9");
});

test("a crash is one word in the line; its sentence stands below", () => {
  assert.deepEqual(pill(state({ status: `crashed: ValueError('${"long ".repeat(60)}') at line 3`, phase: "end" })).word, "crashed");
});

test("parent and child point at each other where they part", () => {
  const branches = [
    { id: 0, name: "main", parent: null, row: 0, rows: 9, current: false },
    { id: 1, name: "two", parent: 0, row: 3, rows: 5, current: false },
    { id: 2, name: "three", parent: 1, row: 4, rows: 5, current: false },
  ];
  assert.deepEqual(partings(state({ branches, branch: 0 })).map(({ row, to }) => [row, to]), [[3, 1]]);
  assert.deepEqual(partings(state({ branches, branch: 1 })).map(({ row, to, text }) => [row, to, text]), [
    [3, 0, "two parts from main here"],
    [4, 2, "three parts from here"],
  ]);
  assert.deepEqual(partings(state({ branches, branch: 7 })), []);
});

test("all seven lamps have one place each", () => {
  const placed = PLACES.flatMap(({ lamps }) => lamps);
  assert.deepEqual([...placed].sort(), Object.keys(LAMPS).sort());
  assert.equal(PLACES.length, 4);
});

test("branches are a tree", () => {
  const branches: Branch[] = [
    { id: 0, name: "main", parent: null, row: 0, rows: 9, current: false },
    { id: 1, name: "two", parent: 0, row: 3, rows: 5, current: false },
    { id: 2, name: "three", parent: 0, row: 4, rows: 5, current: false },
    { id: 3, name: "four", parent: 1, row: 4, rows: 6, current: true },
  ];
  assert.deepEqual(branchTree(branches).map(({ branch, depth }) => [branch.name, depth]), [["main", 0], ["two", 1], ["four", 2], ["three", 1]]);
  assert.equal(branchTree(branches)[1]?.parts, "parts from main at message 4");
  assert.equal(branchTree([{ id: 5, name: "orphan", parent: 4, row: 0, rows: 0, current: true }]).length, 1);
});

test("an axis ends at a round number above the most", () => {
  assert.deepEqual(axis(242), [0, 100, 200, 300]);
  assert.deepEqual(axis(0), [0, 1]);
  for (const most of [1, 7, 99, 1000, 123_456, 9_999_999]) {
    const marks = axis(most);
    assert.ok((marks.at(-1) ?? 0) >= most && marks.length >= 2 && marks.length <= 6, `${most}: ${marks}`);
  }
});

test("the chart is a handful of paths, however many bars", () => {
  const bars = Array.from({ length: 1000 }, (_, n) => bar(n + 1, n));
  const box = { width: 400, height: 190, left: 46, right: 8, top: 22, bottom: 22 };
  const drawn = drawBars(bars, box);
  assert.equal(drawn.columns.length, 1000);
  assert.ok((drawn.columns.at(-1)?.x ?? 999) + (drawn.columns.at(-1)?.width ?? 0) <= 400 - 8 + 1);
  assert.equal(drawn.labels.at(-1)?.text, "1000");
  assert.ok(drawn.labels.length < 20);
  assert.doesNotMatch(Object.values(drawn.paths).join(""), /NaN/);
  assert.equal(drawBars([], box).columns.length, 0);
});

test("a bar in words marks what is an estimate", () => {
  assert.equal(barSentence(bar(3)), "Request 3 carries ~30 tokens: tool schemas 10 · system 10 · user 10.");
  assert.match(barSentence({ ...bar(3), exact: true, reported: 31 }), /carries 30 tokens.*The provider counted 31\.$/);
  assert.equal(chartCaption([bar(1), bar(2)]), "2 requests, ~60 tokens sent in all");
});

test("a screen reader hears each stop once, and a run only at its end", () => {
  const first = state({ rows: 2 });
  assert.match(announcement(undefined, first), /Stop 1.*standing still/);
  assert.equal(announcement(first, { ...first }), "");
  const running = state({ running: true, at: 1, last: 1, rows: 3 });
  assert.equal(announcement(first, running), "Running.");
  assert.equal(announcement(running, { ...running, at: 2 }), "");
  assert.match(announcement(running, state({ at: 3, last: 3, rows: 5, status: "answered" })), /answered/);
});
