// The message history: one row for each message, drawn once and then left alone.
import { button, element, fillField, fillText, scrolls, setAttribute, setText, show, visibleText, type Button } from "../shared/dom.ts";
import { icon, roleShape } from "../shared/icons.ts";
import { beginning, count, fold, isJson, nameOf, pairs, plural, tokenCount, wrongArguments } from "../shared/text.ts";
import type { Link } from "./link.ts";
import type { Can, Full, Note, Row, State, WireCall } from "./protocol.ts";
import { can, partings, sameUpTo, type Parting } from "./view.ts";

const ROLE_NAMES: Record<string, string> = {
  system: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool result",
  note: "note",
};

interface Drawn {
  node: HTMLElement;
  row: Row;
  /** What is said of branches above it. */
  parts: string;
  allowFork(state: Can): void;
}

export class History {
  readonly node: HTMLElement;
  private readonly link: Link;
  private readonly refused: (why: string) => void;
  private readonly list = element("ol", { class: "al-rows", role: "list" });
  private readonly scroller: HTMLElement;
  private readonly heading = element("h3", {}, "Messages");
  private readonly sum = element("span", { class: "al-sum" });
  private readonly forkOff = element("p", { class: "al-fork-off", hidden: true });
  private readonly empty = element("p", { class: "al-empty" });
  private drawn: Drawn[] = [];
  private fork: Can = true;
  private shown: unknown;
  /** The row whose place is kept when the branch changes under it, and whether the keyboard goes there. */
  private flipped: number | undefined;

  constructor(link: Link, refused: (why: string) => void) {
    this.link = link;
    this.refused = refused;
    this.scroller = element(
      "div",
      { class: "al-scroll", tabindex: 0, role: "region", "aria-label": "Message history" },
      this.empty,
      this.list,
    );
    this.node = element(
      "section",
      { class: "al-pane al-history" },
      element("header", { class: "al-pane-head" }, this.heading, this.sum),
      this.forkOff,
      this.scroller,
    );
  }

  draw(rows: readonly Row[], state: State, live: boolean): void {
    const shown = Math.min(state.rows, rows.length);
    const parting = new Map<number, Parting[]>();
    for (const one of partings(state)) parting.set(one.row, [...(parting.get(one.row) ?? []), one]);
    let from = sameUpTo(this.drawn.map(({ row }) => row), rows, shown);
    const moved = this.drawn.findIndex(({ parts }, index) => parts !== JSON.stringify(parting.get(index) ?? []));
    if (moved >= 0) from = Math.min(from, moved);
    // Another branch: the row where they part stays where it was on the screen, else the first that is seen.
    const other = this.shown !== undefined && this.shown !== state.branch;
    const kept = other ? (this.flipped ?? this.firstSeen()) : -1;
    const height = this.drawn[kept]?.node.getBoundingClientRect().top;
    this.shown = state.branch;
    const pinned = this.atEnd() && !(other && this.flipped !== undefined);
    const changed = from < this.drawn.length || from < shown;
    if (from < this.drawn.length) {
      const gone = document.createRange();
      const first = this.drawn[from]?.node;
      if (first) {
        gone.setStartBefore(first);
        gone.setEndAfter(this.list.lastChild ?? first);
        gone.deleteContents();
      }
      this.drawn.length = from;
    }
    const fresh = document.createDocumentFragment();
    const few = shown - from <= 6;
    for (let index = from; index < shown; index += 1) {
      const row = rows[index];
      if (!row) break;
      const drawn = this.row(row, parting.get(index) ?? []);
      if (few && from > 0) drawn.node.classList.add("al-fresh");
      this.drawn.push(drawn);
      fresh.append(drawn.node);
    }
    this.list.append(fresh);

    const fork: Can = live ? can(state, "fork") : "The kernel does not answer.";
    if (fork !== this.fork || changed) {
      for (const drawn of fork === this.fork ? this.drawn.slice(from) : this.drawn) drawn.allowFork(fork);
      this.fork = fork;
    }
    show(this.forkOff, live && fork !== true && shown > 0);
    setText(this.forkOff, fork === true ? "" : `Edit and fork is off: ${fork}`);

    // Notes (a stop, a ruling) are shown in their place, but they are no messages: the model never sees them.
    const messages = rows.slice(0, shown).filter((row) => row.role !== "note");
    const tokens = messages.reduce((sum, row) => sum + row.tokens, 0);
    const exact = messages.every((row) => row.exact);
    const later = rows.slice(shown).filter((row) => row.role !== "note").length;
    setText(
      this.sum,
      shown ? `${plural(messages.length, "message")}, ${tokenCount(tokens, exact)} tokens${later > 0 ? ` · ${count(later)} more ahead` : ""}` : "",
    );
    show(this.empty, shown === 0);
    setText(this.empty, state.at === 0 ? "No message yet. Press Step: the first request will be shown before it is sent." : "No message at this point.");
    if (changed && pinned) this.toEnd();
    else if (other) this.keep(kept, height);
    if (other) this.flipped = undefined;
  }

  private firstSeen(): number {
    const top = this.scroller.getBoundingClientRect().top;
    return this.drawn.findIndex(({ node }) => node.getBoundingClientRect().bottom > top);
  }

  /** Let the row stand where it stood before, at `height` on the screen; the last row where it is no more. */
  private keep(row: number, height: number | undefined): void {
    const node = (this.drawn[row] ?? this.drawn.at(-1))?.node;
    if (!node || height === undefined) return;
    this.scroller.scrollTop += node.getBoundingClientRect().top - height;
    if (this.flipped !== undefined && (document.activeElement === document.body || !document.activeElement)) {
      node.querySelector<HTMLElement>(".al-flip")?.focus({ preventScroll: true });
    }
  }

  private partingLine(parting: Parting, row: number): HTMLElement {
    const flip = button(
      { text: parting.flip, class: "al-flip", title: "Show the same place in that branch" },
      () => {
        if (this.link.command("branch", { id: parting.to, row })) this.flipped = row;
        else this.refused("The last click is still on its way.");
      },
      this.refused,
    );
    return element("div", { class: "al-parting" }, icon("branch"), element("span", {}, parting.text), flip.node);
  }

  private atEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < 60;
  }

  private toEnd(): void {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    // Rows outside the view have an estimated height until they are drawn: once more, when they are.
    requestAnimationFrame(() => (this.scroller.scrollTop = this.scroller.scrollHeight));
  }

  private row(row: Row, parting: readonly Parting[]): Drawn {
    const number = row.i + 1;
    const head = element("div", { class: "al-row-head" });
    const node = element(
      "li",
      { class: "al-row", "data-role": row.role, "data-row": row.i, "data-error": row.error === true },
      ...parting.map((one) => this.partingLine(one, row.i)),
      head,
    );
    head.append(
      element("span", { class: "al-role" }, roleShape(row.role), ROLE_NAMES[row.role] ?? row.role),
      element("span", { class: "al-number" }, `#${number}`),
    );
    if (row.name) head.append(element("code", { class: "al-name" }, visibleText(row.name)));
    if (row.error) head.append(badge("bad", icon("warn"), "error"));
    if (row.edited) head.append(badge("edited", icon("pencil"), "edited by you"));
    head.append(element("span", { class: "al-gap" }));
    if (row.role !== "note") {
      const title = row.exact ? "Counted exactly" : "An estimate: the exact number is the provider's";
      head.append(element("span", { class: "al-tokens", title }, `${tokenCount(row.tokens, row.exact)} tokens`));
    }

    if (row.text || !row.calls?.length) node.append(this.body(row));
    for (const call of row.calls ?? []) node.append(this.call(row, call));
    if (row.full_chars && row.full_chars > row.text.length + row.more) node.append(this.cutNote(row, row.full_chars));
    for (const note of row.notes ?? []) node.append(guardNote(note));

    let fork: Button | undefined;
    if (row.role !== "note") {
      let editor: HTMLElement | undefined;
      const close = (): void => {
        editor?.remove();
        editor = undefined;
        setAttribute(edit.node, "aria-expanded", "false");
        edit.node.focus();
      };
      const edit = button(
        { text: "Edit and fork", icon: icon("branch"), class: "al-fork", name: `Edit message ${number} and fork here` },
        () => {
          if (editor) return close();
          editor = this.editor(row, close);
          node.append(editor);
          setAttribute(edit.node, "aria-expanded", "true");
        },
        this.refused,
      );
      setAttribute(edit.node, "aria-expanded", "false");
      head.append(edit.node);
      fork = edit;
    }
    return { node, row, parts: JSON.stringify(parting), allowFork: (state) => fork?.allow(state) };
  }

  private body(row: Row): HTMLElement {
    const code = row.role === "tool" && /^\s*[[{]/.test(row.text);
    const text = element(code ? "pre" : "div", { class: "al-text", dir: code ? "ltr" : "auto" });
    const box = element("div", { class: "al-body" }, text);
    const whole = row.text.length + row.more;
    const { head, folded } = row.more > 0 ? { ...fold(row.text), folded: true } : fold(row.text);
    const fill = (content: string, cut: boolean): void => {
      fillText(text, content, true, cut ? "…" : "");
    };
    if (!row.text) {
      text.append(element("span", { class: "al-faint" }, "(empty)"));
      return box;
    }
    fill(head, folded);
    if (!folded) return box;
    const words = `Show all (${plural(whole, "character")})`;
    const more = element("button", { type: "button", class: "al-link al-more", "aria-expanded": "false" }, words);
    let open = false;
    more.addEventListener("click", () => {
      open = !open;
      setAttribute(more, "aria-expanded", open ? "true" : "false");
      setText(more, open ? "Show less" : words);
      scrolls(text, open);
      if (!open) return fill(head, true);
      if (row.more === 0) return fill(row.text, false);
      fill(row.text, true);
      setText(more, "Asking the kernel for the whole text…");
      void this.link.full(row).then((full) => {
        if (!open) return;
        fill(full.text, false);
        setText(more, "Show less");
      });
    });
    box.append(more);
    return box;
  }

  /** A call: its name and arguments, with the rest of long ones on demand. */
  private call(row: Row, call: WireCall): HTMLElement {
    const box = callBox(call);
    if (!call.more) return box;
    const more = element("button", { type: "button", class: "al-link al-more" }, `Show all arguments (${plural(call.arguments.length + call.more, "character")})`);
    more.addEventListener("click", () => {
      setText(more, "Asking the kernel for the whole text…");
      void this.link.full(row).then((full) => {
        const whole = full.calls?.find(({ id }) => id === call.id);
        if (whole) box.replaceWith(callBox({ ...whole, more: 0 }, true));
        else setText(more, "The kernel has no more of it.");
      });
    });
    box.append(more);
    return box;
  }

  /** What the model was not sent of a result, and a way to read it: the trace keeps the whole. */
  private cutNote(row: Row, whole: number): HTMLElement {
    const text = element("pre", { class: "al-text", hidden: true });
    scrolls(text, true);
    const words = "Show the whole result";
    const more = element("button", { type: "button", class: "al-link al-more", "aria-expanded": "false" }, words);
    more.addEventListener("click", () => {
      const open = text.hidden === true;
      show(text, open);
      setAttribute(more, "aria-expanded", open ? "true" : "false");
      setText(more, open ? "Hide the whole result" : words);
      if (!open || text.firstChild) return;
      void this.link.full(row).then((full) => fillText(text, full.whole ?? full.text, true));
    });
    const sent = count(row.text.length + row.more);
    return element("div", {}, element("p", { class: "al-cut" }, `The model was sent ${sent} of ${plural(whole, "character")}. `, more), text);
  }

  /** The form in which a message or a call's arguments are changed; sending it starts a branch. */
  private editor(row: Row, close: () => void): HTMLElement {
    const box = element("div", { class: "al-editor", role: "group", "aria-label": `Edit message ${row.i + 1} and fork` });
    box.append(element("p", { class: "al-editor-note" }, "A new branch starts here with your change. This branch stays as it is."));
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        close();
      }
    });
    const calls = row.calls ?? [];
    if (row.text || !calls.length) {
      box.append(this.field(row, `Message ${row.i + 1}, ${ROLE_NAMES[row.role] ?? row.role}`, row.text, row.more > 0 ? (full) => full.text : undefined, () => "", (text) => ({ what: "text", text })));
    }
    for (const call of calls) {
      const whole = (full: Full): string => full.calls?.find(({ id }) => id === call.id)?.arguments ?? call.arguments;
      box.append(
        this.field(row, `Arguments of ${nameOf(call.name)}`, call.arguments, call.more ? whole : undefined, wrongArguments, (text) => ({ what: "arguments", call_id: call.id, text })),
      );
    }
    const cancel = button({ text: "Cancel" }, close);
    box.lastElementChild?.querySelector(".al-card-actions")?.append(cancel.node);
    // The form is attached by the caller; the focus can only go there afterwards.
    queueMicrotask(() => box.querySelector("textarea")?.focus());
    return box;
  }

  private field(
    row: Row,
    label: string,
    text: string,
    found: ((full: Full) => string) | undefined,
    wrong: (text: string) => string,
    fork: (text: string) => Record<string, unknown>,
  ): HTMLElement {
    const area = element("textarea", { dir: "auto", spellcheck: "false", rows: Math.min(10, text.split("\n").length + 2), "aria-label": label });
    fillField(area, text);
    const check = element("p", { class: "al-check", role: "status" });
    const send = button(
      { text: "Fork here", icon: icon("branch"), class: "al-primary" },
      () => {
        if (!this.link.command("fork", { row: row.i, ...fork(area.value) })) this.refused("The last click is still on its way.");
      },
      this.refused,
    );
    const look = (): void => {
      const problem = wrong(area.value);
      setText(check, problem);
      setAttribute(check, "data-tone", problem ? "bad" : undefined);
      show(check, problem !== "");
      send.allow(problem || (area.value === start ? "Change something first: an equal branch would teach nothing." : true));
    };
    let start = area.value;  // as the field keeps it: it knows no \r
    area.addEventListener("input", look);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send.node.click();
    });
    look();
    if (found) {
      area.readOnly = true;
      send.allow("The whole text is on its way.");
      void this.link.full(row).then((full) => {
        area.readOnly = false;
        fillField(area, found(full));
        start = area.value;
        look();
      });
    }
    return element("div", { class: "al-field" }, element("div", { class: "al-field-label" }, label), area, check, element("div", { class: "al-card-actions" }, send.node));
  }
}

function badge(tone: string, shape: SVGSVGElement, text: string): HTMLElement {
  return element("span", { class: "al-badge", "data-tone": tone }, shape, text);
}

export function guardNote(note: Note): HTMLElement {
  return element(
    "p",
    { class: "al-guard" },
    element("span", { class: "al-badge", "data-tone": "guard" }, icon("shield"), `guard ${note.guard}`),
    element("span", { class: "al-guard-why", dir: "auto" }, visibleText(note.why, true)),
  );
}

function callBox(call: WireCall, all = false): HTMLElement {
  const box = element("div", { class: "al-call" }, element("span", { class: "al-call-mark", "aria-hidden": "true" }, icon("forward")), element("span", { class: "al-only-spoken" }, "calls "));
  const line = element("code", { class: "al-call-line" }, element("strong", {}, visibleText(call.name)));
  const whole = call.arguments;
  const more = call.more ?? 0;
  const found = more ? undefined : pairs(whole);
  if (found && (all || whole.length <= 600)) {
    line.append("(");
    found.forEach(([name, value], index) => {
      line.append(index ? ", " : "", element("span", { class: "al-key" }, visibleText(name)), "=", visibleText(value));
    });
    line.append(")");
  } else {
    line.append(" ", visibleText(more || all ? whole : beginning(whole, 600)), more ? `… (${plural(more, "character")} more)` : "");
  }
  scrolls(line, all);
  box.append(line);
  if (!more && !isJson(whole)) box.append(badge("bad", icon("warn"), "arguments are not valid JSON"));
  return box;
}
