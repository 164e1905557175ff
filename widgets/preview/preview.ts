// A page to look at the widgets without JupyterLab: `npm run build && npm run preview`, then open
// preview/index.html#scene=approval&theme=dark. A small fake kernel answers.
import stepper from "../src/stepper/stepper.ts";
import approve from "../src/approve/approve.ts";
import type { Bar, Batch, Held, Row, State } from "../src/stepper/protocol.ts";
import type { Model } from "../src/shared/host.ts";

const wish = new URLSearchParams(location.hash.slice(1));
document.body.dataset["jpThemeLight"] = wish.get("theme") === "dark" ? "false" : "true";
const scene = wish.get("scene") ?? "mid";

type Listener = (...args: never[]) => void;

class FakeModel implements Model {
  readonly traits: Record<string, unknown>;
  readonly sent: Record<string, unknown>[] = [];
  answer: (content: Record<string, unknown>) => void = () => {};
  private readonly listeners = new Map<string, Set<Listener>>();

  constructor(traits: Record<string, unknown>) {
    this.traits = traits;
  }

  get(name: string): unknown {
    return this.traits[name];
  }

  send(content: unknown): void {
    const message = JSON.parse(JSON.stringify(content)) as Record<string, unknown>;
    this.sent.push(message);
    setTimeout(() => this.answer(message), 5);
  }

  on(name: string, callback: Listener): void {
    if (!this.listeners.has(name)) this.listeners.set(name, new Set());
    this.listeners.get(name)?.add(callback);
  }

  off(name?: string | null, callback?: Listener | null): void {
    if (name && callback) this.listeners.get(name)?.delete(callback);
  }

  emit(name: string, ...values: unknown[]): void {
    for (const callback of this.listeners.get(name) ?? []) (callback as (...args: unknown[]) => void)(...values);
  }
}

const RESULT = '{"id": 1042, "customer": "Ada Byron", "item": "blue kettle, 1.7 l", "status": "shipped", "paid": 49.9, "carrier": "Swift Post", "tracking": "SP-88213"}';

const ROWS: Omit<Row, "i">[] = [
  { role: "system", text: "You work at the order desk. Look things up before you answer. Never guess an order number.", more: 0, tokens: 21, exact: true },
  { role: "user", text: "Where is order 1042? If it is lost, please refund it.", more: 0, tokens: 14, exact: true },
  { role: "assistant", text: "I will look the order up first.", more: 0, tokens: 31, exact: true, calls: [{ id: "call_1", name: "search_orders", arguments: '{"keyword": "1042", "limit": 5}' }] },
  { role: "tool", name: "search_orders", call_id: "call_1", text: RESULT, more: 0, tokens: 58, exact: true },
  { role: "assistant", text: "", more: 0, tokens: 24, exact: false, calls: [{ id: "call_2", name: "find_parcel", arguments: '{"tracking": "SP-88213"}' }, { id: "call_3", name: "order_status", arguments: '{"order_id": 1042, }' }] },
  {
    role: "tool", name: "find_parcel", call_id: "call_2", error: true, tokens: 46, exact: false, more: 0,
    text: "There is no tool find_parcel. The tools are: search_orders, order_status, change_address, refund. Use one of these.",
    notes: [{ guard: "Isolate", why: "The model named a tool that does not exist. The call became a result, and the run goes on." }],
  },
  {
    role: "tool", name: "order_status", call_id: "call_3", tokens: 512, exact: false, more: 1400, full_chars: 54210,
    text: Array.from({ length: 9 }, (_, n) => `2026-11-${String(n + 10)} 0${n}:12  depot ${n + 1}: parcel SP-88213 was scanned and put on the next van`).join("\n"),
    notes: [{ guard: "Truncate", why: "Showed the model 2,000 of 54,210 characters. To see more, it can call order_status with a later date." }],
  },
  { role: "assistant", text: "The parcel was last scanned eighteen days ago, so it is lost. I will refund it.", more: 0, tokens: 42, exact: false, calls: [{ id: "call_4", name: "refund", arguments: '{"order_id": 1042, "amount": 49.90, "reason": "parcel lost"}' }] },
];

const HOSTILE: Omit<Row, "i">[] = [
  { role: "user", text: "<img src=x onerror=alert(1)><script>alert(2)</script> It costs $5 now and $7 later, path $HOME/a_b", more: 0, tokens: 20, exact: true },
  { role: "assistant", text: "שלום, הקובץ נמצא ב-/tmp/report.txt והוא מוכן.", more: 0, tokens: 20, exact: true, calls: [{ id: "h1", name: "open_file", arguments: '{"file": "report\u202Efdp.exe", "zero": "a\u200Bb"}' }] },
  { role: "tool", name: "open_file", text: "x".repeat(5000) + " ; rm -rf ~", more: 0, tokens: 1300, exact: false },
  { role: "tool", name: "open_file", text: "<style>body{display:none}</style> 北京的订单 1042 已发货 👩‍👧", more: 0, tokens: 30, exact: false },
];

const REFUND: Held = {
  call_id: "call_4", digest: "d1", name: "refund", arguments: '{"order_id": 1042, "amount": 49.90, "reason": "parcel lost"}',
  effect: "Pays 49.90 back to Ada Byron for order 1042. This cannot be undone.",
  schema: { properties: { order_id: { type: "integer" }, amount: { type: "number" }, reason: { type: "string" } }, required: ["order_id", "amount"], additionalProperties: false },
};

const EVIL: Held = { call_id: "call_9", digest: "d9", name: "delete_order", arguments: `{"file": "report\u202Efdp.exe", "note": "\\u5317\\u4eac \\u200b hidden", "big": 12345678901234567890, "command": "${"echo fine; ".repeat(30)}rm -rf ~"}`, effect: "Deletes order 1042 and everything that belongs to it." };

function many(count: number): Omit<Row, "i">[] {
  return Array.from({ length: count }, (_, n) => ROWS[2 + (n % 6)] ?? ROWS[0]!);
}

const source: Omit<Row, "i">[] = scene === "hostile" ? HOSTILE : scene === "thousand" ? many(1000) : scene === "twohundred" ? many(202) : ROWS;
const rows: Row[] = source.map((row, i) => ({ ...row, i }));
const forked: Row[] = rows.slice(0, 4).map((row) => (row.i === 3 ? { ...row, text: RESULT.replace("shipped", "lost by carrier"), edited: true } : row));
forked.push({ i: 4, role: "assistant", text: "The carrier lost order 1042. I will refund it now.", more: 0, tokens: 20, exact: false, calls: [{ id: "call_4", name: "refund", arguments: REFUND.arguments }] });

function bars(of: Row[]): Bar[] {
  const out: Bar[] = [];
  const sums = { system: 0, user: 0, assistant: 0, tool: 0 };
  for (const row of of) {
    if (row.role === "assistant") out.push({ request: out.length + 1, ...sums, tools: 118, exact: row.exact, reported: out.length === 0 ? 160 : null });
    sums[row.role as keyof typeof sums] += row.tokens;
  }
  return out;
}

let at = { empty: 0, mid: 4, guard: 7, approval: 8, fork: 5, hostile: 4, code: 4, answered: 9, thousand: 1000, twohundred: 200 }[scene] ?? 4;
let running = false;
let branch = scene === "fork" ? "b2" : "b1";

function state(): State {
  const now = branch === "b2" ? forked : rows;
  const phases = ["request", "reply", "call", "result"] as const;
  const phase = scene === "approval" || scene === "hostile" ? "call" : scene === "answered" ? "end" : scene === "guard" ? "result" : scene === "empty" ? "request" : (phases[(at + 1) % 4] ?? "request");
  const lit: Record<string, State["lamps"]> = {
    request: { N6: "now" },
    reply: { N6: "done", N1: "now", N2: "now", N3: "now", N5: "now" },
    call: { N6: "done", N1: "done", N2: "done", N3: "done", N5: "done", N7: "now" },
    result: { N6: "done", N1: "done", N2: "done", N3: "done", N5: "done", N7: "done", N4: "now" },
    end: { N6: "done", N1: "done", N5: "done" },
  };
  const nexts: Record<string, string> = {
    request: "request 3 goes to the model, with 4 messages and 4 tool schemas.",
    reply: "the model's reply is read: it asks for search_orders.",
    call: scene === "approval" ? "nothing runs until you approve or refuse refund." : "search_orders runs with keyword=\"1042\", limit=5.",
    result: "the result of order_status goes into the history, cut to 2,000 characters.",
    end: "the run has ended after 3 requests.",
  };
  const held = scene === "approval" ? [REFUND] : scene === "hostile" ? [EVIL] : [];
  const total = now.length;
  const shown = Math.min(at, total);
  return {
    branch, at, last: Math.max(total, at), rows: shown, bars: bars(now.slice(0, shown)).length, phase, turn: Math.floor(at / 3), lamps: lit[phase] ?? {},
    next: nexts[phase] ?? "", status: held.length ? "waiting" : scene === "answered" ? "answered" : "running",
    answer: scene === "answered" ? "Order 1042 was lost by the carrier. I have refunded 49.90 to Ada Byron; she will see it in two days." : null,
    running, held, title: "Where is order 1042? If it is lost, please refund it.", door: scene === "code",
    notes: scene === "guard" ? [{ guard: "Truncate", why: "Showed the model 2,000 of 54,210 characters of order_status. The trace keeps the whole." }] : [],
    line: scene === "code"
      ? { file: "01_naked_loop.ipynb", lineno: 6, text: "        reply = await client.chat.completions.create(model=MODEL, messages=messages, tools=schemas)", around: [[4, "async def my_loop(client, question):"], [5, "    while True:"], [6, "        reply = await client.chat.completions.create(model=MODEL, messages=messages, tools=schemas)"], [7, "        message = reply.choices[0].message"], [8, "        messages.append(message)"]], locals: [["question", "'Where is order 1042?'"], ["messages", "list of 4: system, user, assistant, tool"], ["call", "search_orders(keyword='1042', limit=5)"]] }
      : null,
    can: {
      step: held.length ? "A person must answer first: approve or refuse below." : scene === "answered" ? "The run has ended." : at < total || scene === "mid" ? true : "The run has ended.",
      back: at > 0 ? true : "This is the start.", forward: at < total ? true : "Nothing is recorded ahead.", run: held.length ? "A person must answer first." : true,
      stop: running ? true : "Nothing is running.", reset: true, fork: scene === "code" ? "this function changes a file that cannot be put back" : true,
    },
    branches: scene === "fork" || branch === "b2"
      ? [{ id: "b1", name: "main", parent: null, row: 0, rows: rows.length, current: branch === "b1" }, { id: "b2", name: "fork 1", parent: "b1", row: 3, rows: forked.length, current: branch === "b2" }, { id: "b3", name: "fork 2", parent: "b2", row: 4, rows: 6, current: false }]
      : [{ id: "b1", name: "main", parent: null, row: 0, rows: rows.length, current: true }],
  };
}

const model = new FakeModel({ picture: scene === "dead" ? { rows: rows.slice(0, 6), bars: bars(rows.slice(0, 6)), state: { ...state(), at: 6, rows: 6, bars: 2 }, note: "" } : {} });

function batch(from: number, fromBar: number): Batch {
  const now = state();
  const all = branch === "b2" ? forked : rows;
  return { op: "batch", epoch: 1, branch, from_row: from, rows: all.slice(from, now.rows), from_bar: fromBar, bars: bars(all.slice(0, now.rows)).slice(fromBar), state: now, total_rows: now.rows, total_bars: now.bars };
}

let sentRows = 0;
let sentBars = 0;
function push(): void {
  const next = batch(Math.min(sentRows, state().rows), Math.min(sentBars, state().bars));
  sentRows = next.total_rows;
  sentBars = next.total_bars;
  model.emit("msg:custom", next);
}

model.answer = (message) => {
  if (scene === "dead") return;
  const top = branch === "b2" ? forked.length : rows.length;
  switch (message["op"]) {
    case "hello":
      sentRows = 0;
      sentBars = 0;
      break;
    case "step":
    case "forward":
      at = Math.min(at + 1, top);
      break;
    case "back":
      at = Math.max(at - 1, 0);
      break;
    case "goto":
      at = Number(message["to"]);
      break;
    case "branch":
      branch = String(message["id"]);
      sentRows = sentBars = 0;
      break;
    case "run":
      running = true;
      break;
    case "pause":
      running = false;
      break;
    case "full":
      model.emit("msg:custom", { op: "full", branch, row: message["row"], text: "whole text\n".repeat(200) });
      return;
    default:
      model.emit("msg:custom", { op: "said", text: `The fake kernel got ${JSON.stringify(message)}`, tone: "info" });
  }
  push();
};

Object.assign(window, { model });
const here = document.getElementById("here") as HTMLElement;
if (scene === "card" || scene === "card-evil") {
  const card = new FakeModel({ call: scene === "card" ? REFUND : EVIL, state: "asking", why: "", ack: false });
  card.answer = (message) => {
    card.traits["ack"] = true;
    if (message["op"] !== "rule") return;
    card.traits["state"] = message["ok"] ? "approved" : "refused";
    card.traits["why"] = message["why"];
    card.emit("change:state");
  };
  approve().render({ model: card, el: here });
} else {
  const widget = stepper();
  widget.initialize({ model });
  widget.render({ model, el: here });
}
