// Text from models and tools is untrusted: these functions fold it, lay it out and make hidden characters visible.
// All are pure, and none changes what the text says.

/** A piece of text; `mark` says that it stands for one character that would not be seen. */
export interface Piece {
  text: string;
  mark?: string;
}

const HIDDEN: [number, number, string][] = [
  [0x00, 0x08, "control"],
  [0x0b, 0x1f, "control"],
  [0x7f, 0x9f, "control"],
  [0xad, 0xad, "soft hyphen"],
  [0x034f, 0x034f, "invisible"],
  [0x061c, 0x061c, "direction mark"],
  [0x115f, 0x1160, "invisible"],
  [0x17b4, 0x17b5, "invisible"],
  [0x180e, 0x180e, "invisible"],
  [0x200b, 0x200d, "zero width"],
  [0x200e, 0x200f, "direction mark"],
  [0x2028, 0x2029, "line separator"],
  [0x202a, 0x202e, "direction"],
  [0x2060, 0x2064, "invisible"],
  [0x2066, 0x2069, "direction"],
  [0x206a, 0x206f, "invisible"],
  [0x3164, 0x3164, "invisible"],
  [0xd800, 0xdfff, "broken"],
  [0xfeff, 0xfeff, "zero width"],
  [0xffa0, 0xffa0, "invisible"],
  [0xfff9, 0xfffb, "invisible"],
  [0xe0000, 0xe0fff, "tag"],
];

const NEEDLE = new RegExp(
  `[${HIDDEN.map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`).join("")}]`,
  "gu",
);

/** Ordinary in prose (emoji, Persian, hyphenation): marked only where every character counts. */
const FINE_IN_PROSE = new Set(["zero width", "direction mark", "soft hyphen", "line separator", "invisible"]);

/** Why a character would not be seen as itself ("direction", "zero width", …), or "" for an ordinary one. */
export function hidden(codePoint: number): string {
  return HIDDEN.find(([first, last]) => codePoint >= first && codePoint <= last)?.[2] ?? "";
}

/** Split text so that each hidden character can be drawn as a visible mark such as "U+202E". */
export function pieces(text: string, prose = false): Piece[] {
  const out: Piece[] = [];
  let from = 0;
  for (const { 0: character, index } of text.matchAll(NEEDLE)) {
    const codePoint = character.codePointAt(0) ?? 0;
    const kind = hidden(codePoint);
    if (prose && FINE_IN_PROSE.has(kind)) continue;
    if (index > from) out.push({ text: text.slice(from, index) });
    const name = `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}`;
    out.push({ text: name, mark: `${name}: ${kind} character` });
    from = index + character.length;
  }
  if (from < text.length) out.push({ text: text.slice(from) });
  return out;
}

/** A name where no box can be drawn: hidden characters as words, and not too long. */
export function nameOf(name: string): string {
  const words = pieces(name)
    .map(({ text, mark }) => (mark ? `[${text}]` : text))
    .join("");
  return words.length > 80 ? `${beginning(words, 79)}…` : words;
}

/** How many hidden characters a text has. */
export function countHidden(text: string): number {
  return pieces(text).filter((piece) => piece.mark).length;
}

/** The longest beginning of at most `limit` UTF-16 units that ends between two graphemes. */
export function beginning(text: string, limit: number): string {
  if (text.length <= limit) return text;
  // Only the last stretch decides, so a long text costs no more than a short one.
  const from = Math.max(0, limit - 64);
  let end = from;
  const stretch = text.slice(from, limit + 64);
  for (const { index, segment } of new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(stretch)) {
    if (from + index + segment.length > limit) break;
    end = from + index + segment.length;
  }
  return text.slice(0, end > from ? end : limit);
}

export interface Fold {
  head: string;
  folded: boolean;
}

/** The first lines of a text, few enough to read at a glance. */
export function fold(text: string, lines = 5, characters = 360): Fold {
  const few = text.split("\n", lines + 1);
  let head = few.length > lines ? few.slice(0, lines).join("\n") : text;
  head = beginning(head, characters);
  // Hiding a handful of characters behind a button helps nobody.
  if (text.length - head.length < 40 && few.length <= lines) return { head: text, folded: false };
  return { head, folded: head.length < text.length };
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

interface Token {
  kind: "open" | "close" | "comma" | "colon" | "string" | "bare";
  text: string;
}

/** JSON's tokens, word for word: numbers and strings are never parsed, so none changes on the way to the eye. */
function tokens(json: string): Token[] {
  const out: Token[] = [];
  const pattern = /\s+|"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gsy;
  for (let found = pattern.exec(json); found; found = pattern.exec(json)) {
    const text = found[0];
    const first = text.charAt(0);
    if (first.trim() === "") continue;
    if (first === '"') out.push({ kind: "string", text: readable(text) });
    else if (first === "{" || first === "[") out.push({ kind: "open", text });
    else if (first === "}" || first === "]") out.push({ kind: "close", text });
    else if (first === ",") out.push({ kind: "comma", text });
    else if (first === ":") out.push({ kind: "colon", text });
    else out.push({ kind: "bare", text });
  }
  return out;
}

/** Turn \uXXXX escapes of ordinary characters into the characters; escapes of hidden ones stay escapes. */
function readable(string: string): string {
  return string.replace(/\\(?:u([0-9a-fA-F]{4})(?:\\u([0-9a-fA-F]{4}))?|.)/gs, (escape, first?: string, second?: string) => {
    if (first === undefined) return escape;
    const one = shown(String.fromCharCode(parseInt(first, 16)));
    if (second === undefined) return one ?? escape;
    const both = String.fromCharCode(parseInt(first, 16), parseInt(second, 16));
    if ([...both].length === 1) return shown(both) ?? escape;
    return (one ?? `\\u${first}`) + (shown(both.charAt(1)) ?? `\\u${second}`);
  });
}

function shown(character: string): string | undefined {
  const codePoint = character.codePointAt(0) ?? 0;
  const special = codePoint < 0x20 || character === '"' || character === "\\";
  return special || hidden(codePoint) ? undefined : character;
}

/** JSON over several lines, its values word for word; text that is not JSON comes back as it is. */
export function layOut(json: string): string {
  if (!isJson(json)) return json;
  let depth = 0;
  let out = "";
  let before = "";
  for (const { kind, text } of tokens(json)) {
    if (kind === "close") {
      depth -= 1;
      out += before === "open" ? text : "\n" + "  ".repeat(depth) + text;
    } else {
      if (before === "open" || before === "comma") out += "\n" + "  ".repeat(depth);
      out += text + (kind === "colon" ? " " : "");
      if (kind === "open") depth += 1;
    }
    before = kind;
  }
  return out;
}

/** The names and values at the top of a JSON object, word for word; undefined for anything else. */
export function pairs(json: string): [string, string][] | undefined {
  if (!isJson(json)) return undefined;
  const all = tokens(json);
  if (all[0]?.text !== "{") return undefined;
  const out: [string, string][] = [];
  let depth = 0;
  let name = "";
  let value = "";
  for (const { kind, text } of all.slice(1)) {
    if (depth === 0 && (kind === "comma" || kind === "close")) {
      if (name) out.push([name, value]);
      name = value = "";
      continue;
    }
    if (kind === "open") depth += 1;
    if (kind === "close") depth -= 1;
    if (depth === 0 && kind === "colon") {
      name = value.slice(1, -1);
      value = "";
    } else {
      value += text + (kind === "colon" || kind === "comma" ? " " : "");
    }
  }
  return out;
}

/** One line that names a call: `refund(order_id=1042, amount=19.9)`. */
export function callLine(name: string, json: string, limit = 60): string {
  const found = pairs(json);
  const inside = found ? found.map(([key, value]) => `${key}=${value}`).join(", ") : json;
  return `${nameOf(name)}(${inside.length > limit ? beginning(inside, limit) + "…" : inside})`;
}

/** What is wrong with arguments that a person typed: a sentence, or "" when they can be sent. */
export function wrongArguments(text: string, schema?: Schema): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `This is not JSON yet: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return "Arguments must be a JSON object, such as {\"name\": \"value\"}.";
  }
  const known = schema?.properties ?? {};
  const missing = (schema?.required ?? []).filter((name) => !(name in value));
  if (missing.length) return `Missing: ${missing.join(", ")}.`;
  for (const [name, item] of Object.entries(value)) {
    if (schema?.properties && schema.additionalProperties === false && !(name in known)) {
      return `This tool has no argument ${JSON.stringify(name)}. It has: ${Object.keys(known).join(", ")}.`;
    }
    const expected = known[name]?.type;
    if (typeof expected === "string" && !fits(item, expected)) return `${name} must be of type ${expected}.`;
  }
  return "";
}

export interface Schema {
  properties?: Record<string, { type?: unknown }>;
  required?: string[];
  additionalProperties?: unknown;
}

function fits(value: unknown, type: string): boolean {
  switch (type) {
    case "string":
      return typeof value === "string";
    case "integer":
      return typeof value === "number" && Number.isInteger(value);
    case "number":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "null":
      return value === null;
    default:
      return true;
  }
}

const COUNT = new Intl.NumberFormat("en-US");

/** 12345 -> "12,345". */
export function count(value: number): string {
  return COUNT.format(value);
}

/** Tokens as they are shown: a tilde says that the number is an estimate. */
export function tokenCount(value: number, exact: boolean): string {
  return `${exact ? "" : "~"}${count(value)}`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
