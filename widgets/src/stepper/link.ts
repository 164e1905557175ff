// The stepper's line to its kernel: one for each widget model, shared by all views of it.
import type { Model } from "../shared/host.ts";
import type { Batch, FromKernel, Full, Picture, Row, Said, State } from "./protocol.ts";
import { absorb, emptyMemory, kept, type Kept, type Memory } from "./view.ts";

/** "connecting" until the first answer; "silent" when the kernel has not answered for a while. */
export type Health = "connecting" | "live" | "silent";

const SILENT_AFTER = 3000;
const NOTED_AFTER = 350;
const CLICK_WAIT = 2000;
/** A lost last message is only noticed by its absence. */
const TAIL_WAIT = 500;
/** A step shorter than this is not drawn as "running": nothing flickers. */
const RUNS_AFTER = 200;
const HELLO_AGAIN = [1000, 2000, 5000, 10_000, 20_000, 40_000];

export const SILENT = "The kernel does not answer: this is a picture of the last state. Run the cell again to step.";

export class Link {
  memory: Memory = emptyMemory();
  health: Health = "connecting";
  /** The command that was sent and not answered yet: while it waits, a second click does nothing. */
  pending = "";
  said: Said | undefined;
  /** The control that has the keyboard: an output that is drawn anew keeps it. */
  focus = "";

  private readonly model: Model;
  private readonly watchers = new Set<() => void>();
  private readonly timers = new Map<string, number>();
  private readonly texts = new Map<string, Full>();
  private readonly readers = new Map<string, ((full: Full) => void)[]>();
  private views = 0;
  private hellos = 0;
  private noted = false;
  private runsSince = 0;

  constructor(model: Model) {
    this.model = model;
  }

  open(): () => void {
    const hear = (message: unknown): void => this.hear(message as FromKernel);
    const lost = (): void => this.hello();  // a kernel that is gone, or has come back, says so by its line only
    this.model.on("msg:custom", hear);
    this.model.on("comm_live_update", lost);
    this.hello();
    return () => {
      this.model.off("msg:custom", hear);
      this.model.off("comm_live_update", lost);
      for (const timer of this.timers.values()) window.clearTimeout(timer);
    };
  }

  watch(changed: () => void): () => void {
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  }

  /** A view was put on the page; the answer says that it was taken off. Without any, the kernel need not wait for clicks. */
  seen(): () => void {
    this.views += 1;
    if (this.views === 1 && this.health === "live") this.hello();
    return () => {
      this.views -= 1;
      if (this.views === 0 && this.health === "live") this.send({ op: "gone" });
    };
  }

  /** The state to show: what the kernel said, else the picture that was kept with the widget. */
  get state(): State | undefined {
    return this.memory.state ?? this.picture.state;
  }

  get kept(): Kept {
    if (this.memory.state) return kept(this.memory, this.memory.state.branch);
    const { rows = [], bars = [] } = this.picture;
    return { rows, bars, totalRows: rows.length, totalBars: bars.length };
  }

  get picture(): Picture {
    return (this.model.get("picture") as Picture | undefined) ?? {};
  }

  /** Whether to show that it runs: false for the first moment of it. */
  get runs(): boolean {
    return this.state?.running === true && performance.now() - this.runsSince >= RUNS_AFTER;
  }

  /** Send a command, unless one is still on its way. It names the place it was meant for; the kernel ignores stale ones. */
  command(op: string, extra: Record<string, unknown> = {}): boolean {
    if (this.pending || this.health !== "live") return false;
    if (!this.send({ op, ...extra })) return false;
    this.pending = op;
    this.said = undefined;
    this.noted = false;
    this.after("noted", NOTED_AFTER, () => {
      this.noted = true;
      this.said = { op: "said", tone: "info", text: `Your click is noted (${op}). The kernel is busy; the click counts once.` };
      this.changed();
    });
    this.after("click", CLICK_WAIT, () => {
      this.pending = "";
      this.hello();
      this.changed();
    });
    this.changed();
    return true;
  }

  /** Everything of a row that was left out, asked for once. */
  full(row: Row): Promise<Full> {
    const key = this.key(row.i);
    const have = this.texts.get(key);
    if (have !== undefined) return Promise.resolve(have);
    return new Promise((read) => {
      const waiting = this.readers.get(key);
      if (waiting) waiting.push(read);
      else this.readers.set(key, [read]);
      // Asked again on every press: an earlier question may have been lost.
      this.send({ op: "full", row: row.i });
    });
  }

  private key(row: number): string {
    return `${this.memory.epoch}/${this.memory.state?.branch}/${row}`;
  }

  /** False where there is no line to the kernel any more: it was restarted, or it died. */
  private send(content: Record<string, unknown>): boolean {
    const { state, epoch } = this.memory;
    try {
      this.model.send({ branch: state?.branch ?? null, at: state?.at ?? 0, epoch: epoch ?? null, ...content });
    } catch {
      this.silence();
      return false;
    }
    return true;
  }

  private silence(): void {
    this.clear("silent");
    this.clear("noted");
    this.health = "silent";
    this.pending = "";
    this.said = undefined;
    this.changed();
  }

  private hello(): void {
    const { rows, bars } = kept(this.memory, this.memory.state?.branch);
    const sent = this.send({ op: "hello", rows: rows.length, bars: bars.length });
    if (sent && !this.timers.has("silent")) this.after("silent", SILENT_AFTER, () => this.silence());
    const again = HELLO_AGAIN[this.hellos];
    this.hellos += 1;
    if (again !== undefined) this.after("hello", again, () => this.hello());
  }

  private hear(message: FromKernel): void {
    if (message.op === "batch") this.take(message);
    else if (message.op === "said") {
      this.said = message;
      this.noted = false;
      this.changed();
    } else if (message.op === "full") {
      const key = `${this.memory.epoch}/${message.branch}/${message.row}`;
      this.texts.set(key, message);
      for (const read of this.readers.get(key) ?? []) read(message);
      this.readers.delete(key);
    }
  }

  private take(batch: Batch): void {
    for (const name of ["silent", "hello", "noted", "click", "tail"]) this.clear(name);
    this.hellos = 0;
    this.health = "live";
    this.pending = "";
    if (this.memory.epoch !== batch.epoch || this.noted) this.said = undefined;
    this.noted = false;
    if (batch.state.running && !this.memory.state?.running) {
      this.runsSince = performance.now();
      this.after("runs", RUNS_AFTER, () => this.changed());
    }
    if (this.memory.epoch !== batch.epoch) this.texts.clear();
    const arrived = absorb(this.memory, batch);
    if (arrived === "gap") this.hello();
    if (arrived === "more") this.after("tail", TAIL_WAIT, () => this.hello());
    this.changed();
  }

  private after(name: string, wait: number, act: () => void): void {
    this.clear(name);
    this.timers.set(
      name,
      window.setTimeout(() => {
        this.timers.delete(name);
        act();
      }, wait),
    );
  }

  private clear(name: string): void {
    window.clearTimeout(this.timers.get(name));
    this.timers.delete(name);
  }

  private changed(): void {
    for (const watcher of this.watchers) watcher();
  }
}
