// What travels between the stepper's kernel half (agentlab/widgets/stepper.py) and this one.
import type { Held } from "../shared/card.ts";

export type { Held };
export type Id = string | number;

export interface Note {
  guard: string;
  why: string;
}

export interface WireCall {
  id: string;
  name: string;
  arguments: string;
  more?: number;
}

export interface Row {
  i: number;
  role: string;
  text: string;
  /** Characters that were not sent; "full" asks for them. */
  more: number;
  tokens: number;
  exact: boolean;
  name?: string | null;
  call_id?: string | null;
  calls?: WireCall[] | null;
  error?: boolean;
  notes?: Note[] | null;
  /** Length of the whole result, where the model was sent less. */
  full_chars?: number | null;
  edited?: boolean;
}

export interface Bar {
  request: number;
  system: number;
  user: number;
  assistant: number;
  tool: number;
  tools: number;
  exact: boolean;
  reported?: number | null;
}

export type Phase = "request" | "reply" | "call" | "result" | "end";
export type Lamp = "N1" | "N2" | "N3" | "N4" | "N5" | "N6" | "N7";
export type Control = "step" | "back" | "forward" | "run" | "stop" | "reset" | "fork";
/** true, or the reason why not. */
export type Can = true | string;

export interface Line {
  file: string;
  lineno: number;
  text: string;
  around: [number, string][];
  locals: [string, string][];
}

export interface Branch {
  id: Id;
  name: string;
  parent: Id | null;
  /** The first row in which it differs from its parent. */
  row: number;
  rows: number;
  current: boolean;
}

export interface State {
  branch: Id;
  at: number;
  last: number;
  rows: number;
  bars: number;
  phase: Phase;
  turn: number;
  lamps: Partial<Record<Lamp, "" | "now" | "done">>;
  next: string;
  status: string;
  answer: string | null;
  running: boolean;
  line?: Line | null;
  notes: Note[];
  held: Held[];
  can: Partial<Record<Control, Can>>;
  branches: Branch[];
  title: string;
  door: boolean;
}

export interface Batch {
  op: "batch";
  epoch: Id;
  branch: Id;
  from_row: number;
  rows: Row[];
  from_bar: number;
  bars: Bar[];
  state: State;
  total_rows: number;
  total_bars: number;
}

/** Everything that a row left out. `whole` is a result before it was cut for the model. */
export interface Full {
  op: "full";
  branch: Id;
  row: number;
  text: string;
  calls?: WireCall[];
  whole?: string;
}

export interface Said {
  op: "said";
  text: string;
  tone: "error" | "info";
}

export type FromKernel = Batch | Full | Said;

export interface Picture {
  rows?: Row[];
  bars?: Bar[];
  state?: State;
  note?: string;
}
