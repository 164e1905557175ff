// What the stepper shows, worked out without a browser: every function here is pure or changes only its `Memory`.
import { plural, tokenCount } from "../shared/text.ts";
import type { IconName } from "../shared/icons.ts";
import type { Bar, Batch, Branch, Can, Control, Id, Lamp, Phase, Row, State } from "./protocol.ts";

// ---- The four places of a turn, and the decisions that are taken at each ----

export interface Place {
  phase: Phase;
  name: string;
  gloss: string;
  lamps: Lamp[];
}

export const PLACES: Place[] = [
  { phase: "request", name: "Request", gloss: "what the model is sent", lamps: ["N6"] },
  { phase: "reply", name: "Reply", gloss: "the model decides", lamps: ["N1", "N2", "N3", "N5"] },
  { phase: "call", name: "Call", gloss: "the program runs a tool", lamps: ["N7"] },
  { phase: "result", name: "Result", gloss: "back into the history", lamps: ["N4"] },
];

export const LAMPS: Record<Lamp, { name: string; question: string }> = {
  N1: { name: "call a tool?", question: "Call a tool at all?" },
  N2: { name: "which", question: "Which tool?" },
  N3: { name: "arguments", question: "With which arguments?" },
  N4: { name: "what goes back", question: "What of the result goes back to the model?" },
  N5: { name: "go on or stop", question: "Go on or stop?" },
  N6: { name: "what is sent", question: "What of the history is sent?" },
  N7: { name: "ask the person", question: "Ask the person first?" },
};

// ---- Status ----

export type StatusTone = "good" | "bad" | "warn" | "wait" | "calm";

export interface Pill {
  icon: IconName;
  word: string;
  tone: StatusTone;
}

const ENDS: Record<string, Pill> = {
  waiting: { icon: "hand", word: "waits for you", tone: "wait" },
  answered: { icon: "check", word: "answered", tone: "good" },
  capped: { icon: "flag", word: "stopped at the cap", tone: "warn" },
  stuck: { icon: "flag", word: "stuck: stopped", tone: "warn" },
  over_budget: { icon: "flag", word: "over budget: stopped", tone: "warn" },
  failed: { icon: "cross", word: "failed", tone: "bad" },
  interrupted: { icon: "stop", word: "interrupted", tone: "warn" },
};

export function pill(state: State, runs = state.running): Pill {
  if (runs) return { icon: "run", word: "running", tone: "calm" };
  if (state.at < state.last) return { icon: "back", word: "looking back", tone: "calm" };
  const end = ENDS[state.status];
  if (end) return end;
  // The sentence stands below, whole: here it would push everything else out of the line.
  if (state.status.startsWith("crashed")) return { icon: "cross", word: "crashed", tone: "bad" };
  if (state.status && state.status !== "running") return { icon: "info", word: state.status.replaceAll("_", " "), tone: "calm" };
  return state.rows === 0 ? { icon: "step", word: "ready", tone: "calm" } : { icon: "pause", word: "standing still", tone: "calm" };
}

/** "Stop 3 of 9 · turn 2": the first place to stand at is stop 1. */
export function position(state: State): string {
  const where = state.at < state.last ? `Stop ${state.at + 1} of ${state.last + 1}` : `Stop ${state.at + 1}`;
  return state.turn > 0 ? `${where} · turn ${state.turn}` : where;
}

export function can(state: State | undefined, control: Control): Can {
  if (!state) return "Nothing is here yet.";
  return state.can[control] ?? "Not possible here.";
}

/** The same while something runs: only pausing and stopping make sense then. */
export function canNow(state: State | undefined, control: Control): Can {
  if (!state?.running) return can(state, control);
  return control === "run" || control === "stop" || "A step is running. Pause it, or stop it.";
}

/** What the right arrow does: along the recorded steps while looking back, a new step at the end. */
export function ahead(state: State): Control {
  if (state.at < state.last && can(state, "forward") === true) return "forward";
  return can(state, "step") === true || can(state, "forward") !== true ? "step" : "forward";
}

// ---- Memory: what has arrived, by branch ----

export interface Kept {
  rows: Row[];
  bars: Bar[];
  totalRows: number;
  totalBars: number;
}

export interface Memory {
  epoch: Id | undefined;
  branches: Map<Id, Kept>;
  state: State | undefined;
}

export function emptyMemory(): Memory {
  return { epoch: undefined, branches: new Map(), state: undefined };
}

const NOTHING: Kept = { rows: [], bars: [], totalRows: 0, totalBars: 0 };

export function kept(memory: Memory, branch: Id | undefined): Kept {
  return (branch !== undefined && memory.branches.get(branch)) || NOTHING;
}

/**
 * Take in one batch. Returns "whole" when the branch is complete, "more" when further batches must follow,
 * "gap" when something is missing in between and has to be asked for again.
 */
export function absorb(memory: Memory, batch: Batch): "whole" | "more" | "gap" {
  if (memory.epoch !== batch.epoch) {
    memory.epoch = batch.epoch;
    memory.branches.clear();
  }
  memory.state = batch.state;
  let here = memory.branches.get(batch.branch);
  if (!here) memory.branches.set(batch.branch, (here = inherited(memory, batch)));
  here.totalRows = batch.total_rows;
  here.totalBars = batch.total_bars;
  if (batch.from_row > here.rows.length || batch.from_bar > here.bars.length) return "gap";
  lay(here.rows, batch.from_row, batch.rows, batch.total_rows);
  lay(here.bars, batch.from_bar, batch.bars, batch.total_bars);
  return here.rows.length < batch.total_rows || here.bars.length < batch.total_bars ? "more" : "whole";
}

/** A branch begins with what it shares with its parent, as far as that is known here. */
function inherited(memory: Memory, batch: Batch): Kept {
  const own = batch.state.branches.find((branch) => branch.id === batch.branch);
  const parent = own && own.parent !== null ? memory.branches.get(own.parent) : undefined;
  if (!own || !parent || batch.from_row > own.row) return { rows: [], bars: [], totalRows: 0, totalBars: 0 };
  return {
    rows: parent.rows.slice(0, batch.from_row),
    bars: parent.bars.slice(0, batch.from_bar),
    totalRows: 0,
    totalBars: 0,
  };
}

function lay<Item>(into: Item[], from: number, items: Item[], total: number): void {
  items.forEach((item, offset) => {
    const have = into[from + offset];
    // An equal item keeps its identity, so that its drawn row is left alone.
    if (have === undefined || JSON.stringify(have) !== JSON.stringify(item)) into[from + offset] = item;
  });
  if (into.length > total) into.length = total;
}

/** How many rows at the start are already drawn as they should be. */
export function sameUpTo(drawn: readonly Row[], wanted: readonly Row[], count: number): number {
  const most = Math.min(drawn.length, wanted.length, count);
  let same = 0;
  while (same < most && drawn[same] === wanted[same]) same += 1;
  return same;
}

// ---- Branches ----

export interface BranchLine {
  branch: Branch;
  depth: number;
  parts: string;
}

/** Branches as a tree: parents before children, in the order in which they were made. */
export function branchTree(branches: readonly Branch[]): BranchLine[] {
  const out: BranchLine[] = [];
  const known = new Set(branches.map((branch) => branch.id));
  const add = (parent: Branch | null, depth: number): void => {
    for (const branch of branches) {
      const isRoot = branch.parent === null || !known.has(branch.parent);
      if (parent ? branch.parent !== parent.id || branch.id === parent.id : !isRoot) continue;
      out.push({ branch, depth, parts: parent ? `parts from ${parent.name} at message ${branch.row + 1}` : "" });
      if (depth < 20) add(branch, depth + 1);
    }
  };
  add(null, 0);
  return out;
}

/** Where branches part: at each row, the branch on the other side, to flip to. A parent sees its children, and a child its parent. */
export interface Parting {
  row: number;
  text: string;
  to: Id;
  flip: string;
}

export function partings(state: State): Parting[] {
  const current = state.branches.find((branch) => branch.id === state.branch);
  if (!current) return [];
  const out: Parting[] = [];
  for (const other of state.branches) {
    if (other.id === current.parent) out.push({ row: current.row, text: `${current.name} parts from ${other.name} here`, to: other.id, flip: `Show ${other.name}` });
    if (other.parent === current.id) out.push({ row: other.row, text: `${other.name} parts from here`, to: other.id, flip: `Show ${other.name}` });
  }
  return out;
}

// ---- Token chart ----

export const KINDS = ["tools", "system", "user", "assistant", "tool"] as const;
export type Kind = (typeof KINDS)[number];

export const KIND_NAMES: Record<Kind, string> = {
  tools: "tool schemas",
  system: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool results",
};

export function total(bar: Bar): number {
  return KINDS.reduce((sum, kind) => sum + bar[kind], 0);
}

/** The top of an axis: the next round number, and the steps up to it. */
export function axis(most: number): number[] {
  if (most <= 0) return [0, 1];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? power * 10);
  const marks = [0];
  while ((marks.at(-1) ?? 0) < most) marks.push((marks.at(-1) ?? 0) + step);
  return marks;
}

export function shortCount(value: number): string {
  if (value < 10_000) return value.toLocaleString("en-US");
  const [size, unit] = value < 1_000_000 ? [value / 1000, "k"] : [value / 1_000_000, "M"];
  return `${Number(size.toFixed(1))}${unit}`;
}

export interface Box {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Drawn {
  /** One path for each kind: thousands of bars stay a handful of nodes. */
  paths: Record<Kind, string>;
  marks: { value: number; y: number }[];
  columns: { x: number; width: number; top: number }[];
  labels: { text: string; x: number }[];
}

export function drawBars(bars: readonly Bar[], box: Box): Drawn {
  const most = bars.reduce((found, bar) => Math.max(found, total(bar), bar.reported ?? 0), 0);
  const values = axis(most);
  const scale = (box.height - box.top - box.bottom) / (values.at(-1) ?? 1);
  const floor = box.height - box.bottom;
  const slot = Math.min(56, (box.width - box.left - box.right) / Math.max(bars.length, 1));
  const width = slot * (slot > 6 ? 0.72 : 0.9);
  const paths: Record<Kind, string> = { tools: "", system: "", user: "", assistant: "", tool: "" };
  const columns = bars.map((bar, index) => {
    const x = box.left + index * slot + (slot - width) / 2;
    let y = floor;
    for (const kind of KINDS) {
      const height = bar[kind] * scale;
      if (height <= 0) continue;
      y -= height;
      paths[kind] += `M${x.toFixed(1)} ${y.toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}h${(-width).toFixed(1)}z`;
    }
    return { x, width, top: y };
  });
  const every = Math.max(1, Math.ceil((bars.length * 26) / Math.max(1, slot * bars.length)));
  const labels = bars.flatMap((bar, index) => {
    const column = columns[index];
    const last = index === bars.length - 1;
    const crowded = !last && bars.length - 1 - index < every;
    return column && (last || (index % every === 0 && !crowded)) ? [{ text: String(bar.request), x: column.x + column.width / 2 }] : [];
  });
  return { paths, marks: values.map((value) => ({ value, y: floor - value * scale })), columns, labels };
}

/** "Request 3 carries ~412 tokens: tool schemas 120, system 12, …". */
export function barSentence(bar: Bar): string {
  const parts = KINDS.filter((kind) => bar[kind] > 0).map((kind) => `${KIND_NAMES[kind]} ${bar[kind].toLocaleString("en-US")}`);
  const reported = bar.reported ? ` The provider counted ${bar.reported.toLocaleString("en-US")}.` : "";
  return `Request ${bar.request} carries ${tokenCount(total(bar), bar.exact)} tokens: ${parts.join(" · ")}.${reported}`;
}

/** What all requests carried together: the curve that grows with the square of the steps. */
export function chartCaption(bars: readonly Bar[]): string {
  if (!bars.length) return "";
  const sum = bars.reduce((found, bar) => found + total(bar), 0);
  const exact = bars.every((bar) => bar.exact);
  return `${plural(bars.length, "request")}, ${tokenCount(sum, exact)} tokens sent in all`;
}

/** What a screen reader is told after a change; "" while nothing is worth an interruption. */
export function announcement(before: State | undefined, after: State): string {
  if (after.running) return before?.running ? "" : "Running.";
  const mark = pill(after);
  if (before && before.at === after.at && before.branch === after.branch && before.status === after.status && before.running === after.running) return "";
  return `${position(after)}, ${mark.word}. ${after.next}`;
}
