// The stepper: an agent's loop standing still. A view of the kernel's run plus small commands; the logic stays there.
import { approvalCard, type Card } from "../shared/card.ts";
import { button, element, setAttribute, setText, show, visibleText, type Button } from "../shared/dom.ts";
import type { InitializeProps, RenderProps } from "../shared/host.ts";
import { icon } from "../shared/icons.ts";
import { followTheme } from "../shared/theme.ts";
import { Chart } from "./chart.ts";
import { guardNote, History } from "./history.ts";
import { Link, SILENT } from "./link.ts";
import type { Can, Control, Held, Lamp, Line, State } from "./protocol.ts";
import { ahead, announcement, branchTree, can, canNow, LAMPS, pill, PLACES, position } from "./view.ts";

const CONTROLS = ["back", "step", "forward", "run", "stop", "reset"] as const;

class Stepper {
  readonly root: HTMLElement;
  private readonly link: Link;
  private readonly history: History;
  private readonly chart = new Chart();
  private readonly controls: Record<(typeof CONTROLS)[number], Button>;
  private readonly title = element("h2", { class: "al-title", dir: "auto" });
  private readonly pill = element("span", { class: "al-pill" });
  private readonly pillIcon = element("span", { class: "al-pill-icon" });
  private readonly pillWord = element("span");
  private readonly position = element("span", { class: "al-position" });
  private readonly next = element("p", { class: "al-next", dir: "auto" });
  private readonly spoken = element("p", { class: "al-only-spoken", role: "status", "aria-live": "polite" });
  private readonly said = element("p", { class: "al-said", role: "status" });
  private readonly answer = element("div", { class: "al-answer" });
  private readonly notes = element("div", { class: "al-notes" });
  private readonly track = element("ol", { class: "al-track", role: "list", "aria-label": "The four places of a turn, and what is decided at each" });
  private readonly places = new Map<string, { node: HTMLElement; here: HTMLElement }>();
  private readonly lamps = new Map<Lamp, { node: HTMLElement; state: HTMLElement }>();
  private readonly cards = element("div", { class: "al-cards" });
  private readonly branches = element("nav", { class: "al-branches", "aria-label": "Branches" });
  private readonly code = element("section", { class: "al-pane al-code" });
  private readonly held = new Map<string, Card>();
  private readonly closers: (() => void)[] = [];
  private drawnCode = "";
  private drawnBranches = "";
  private drawnNotes = "";
  private refusedText = "";
  private refusedAt: { state: State | undefined; said: unknown } = { state: undefined, said: undefined };
  private told: State | undefined;
  private frame = 0;
  private drawnAt = 0;

  constructor(link: Link) {
    this.link = link;
    const refused = (why: string): void => this.refuse(why);
    this.history = new History(link, refused);
    const make = (control: Control, text: string, shape: Parameters<typeof icon>[0], title: string, hint = "", kind = ""): Button =>
      button({ text, icon: icon(shape), title, hint, class: `al-control al-${control} ${kind}`.trim() }, () => this.press(control), refused);
    this.controls = {
      back: make("back", "Back", "back", "Back one stop (left arrow)", "←"),
      step: make("step", "Step", "step", "Go to the next stop (right arrow)", "→", "al-primary"),
      forward: make("forward", "Forward", "forward", "Along the steps that are already recorded (right arrow)"),
      run: make("run", "Run", "run", "Run to the end, or until a person is needed"),
      stop: make("stop", "Stop", "stop", "End the run here"),
      reset: make("reset", "Reset", "reset", "Start again from the question"),
    };
    for (const place of PLACES) this.track.append(this.place(place));
    this.pill.append(this.pillIcon, this.pillWord);
    this.root = element(
      "div",
      { class: "agentlab agentlab-stepper", "data-lm-suppress-shortcuts": "true", tabindex: -1, role: "group", "aria-label": "Agent stepper" },
      element(
        "div",
        { class: "al-head" },
        element("div", { class: "al-head-line" }, this.title, this.position, this.pill),
        element("div", { class: "al-bar", role: "group", "aria-label": "Step controls" }, ...CONTROLS.map((control) => this.controls[control].node)),
        this.next,
        this.said,
        this.spoken,
      ),
      this.track,
      this.notes,
      this.cards,
      this.answer,
      this.branches,
      element("div", { class: "al-columns" }, this.history.node, element("div", { class: "al-side" }, this.code, this.chart.node)),
    );
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("focusin", (event) => {
      const control = CONTROLS.find((name) => this.controls[name].node === event.target);
      link.focus = control ?? (event.target === this.root ? "root" : "");
    });
    this.root.addEventListener("focusout", () => {
      // An element that is taken away loses the focus too; then it is not the person who left.
      setTimeout(() => {
        if (this.root.isConnected && !this.root.contains(document.activeElement)) link.focus = "";
      });
    });
    this.closers.push(
      link.watch(() => this.ask()),
      link.seen(),
      followTheme(this.root),
      () => this.chart.close(),
      () => cancelAnimationFrame(this.frame),
    );
    this.draw();
  }

  /** Take over the keyboard and the place in the history from a view that this one replaces. */
  takeOver(): void {
    requestAnimationFrame(() => {
      if (this.link.focus && (document.activeElement === document.body || !document.activeElement)) {
        const control = CONTROLS.find((name) => name === this.link.focus);
        (control ? this.controls[control].node : this.root).focus({ preventScroll: true });
      }
    });
  }

  close(): void {
    for (const close of this.closers) close();
  }

  /** Draw now, so that the next frame shows it; what comes thick and fast waits for its frame. */
  private ask(): void {
    if (!this.frame && performance.now() - this.drawnAt > 30) return this.draw();
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  // ---- Commands ----

  private press(control: Control): void {
    this.refusedText = "";
    const op = control === "run" && this.link.runs ? "pause" : control;
    this.link.command(op);
  }

  private refuse(why: string): void {
    if (this.link.pending) return;  // the second half of a double click: it does nothing, and there is nothing to say
    this.refusedText = why;
    this.refusedAt = { state: this.link.state, said: this.link.said };
    this.ask();
  }

  /** What was refused at another stop, or before the kernel had something to say, is no news any more. */
  private forgetRefusal(): void {
    const { state, said } = this.link;
    const before = this.refusedAt;
    const moved = state?.running && before.state?.running ? false : state !== before.state;
    if (moved || said !== before.said) this.refusedText = "";
  }

  private key(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const target = event.target as HTMLElement;
    if (target.matches("textarea, input, [contenteditable]")) return;
    const state = this.link.state;
    if (!state) return;
    const act = ((): (() => void) | undefined => {
      switch (event.key) {
        case "ArrowLeft":
          return () => this.controls.back.node.click();
        case "ArrowRight":
          return () => this.controls[ahead(state) === "forward" ? "forward" : "step"].node.click();
        case "Home":
          return () => this.goto(0);
        case "End":
          return () => this.goto(state.last);
        case "Escape":
          return () => (state.running ? this.link.command("pause") : this.leave());
        default:
          return undefined;
      }
    })();
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  private goto(to: number): void {
    const state = this.link.state;
    if (!state || to === state.at) return;
    const allowed = can(state, to < state.at ? "back" : "forward");
    if (allowed === true) this.link.command("goto", { to });
    else this.refuse(allowed);
  }

  /** Give the keyboard back to the notebook. */
  private leave(): void {
    this.root.parentElement?.closest<HTMLElement>("[tabindex]")?.focus();
  }

  // ---- Drawing: each part changes only what differs ----

  private draw(): void {
    const focused = this.root.contains(document.activeElement);
    this.drawParts();
    // What had the keyboard may be gone: a card that was answered, a form that was sent. It goes on from the controls.
    if (!focused) return;
    queueMicrotask(() => {
      if (document.activeElement === document.body) this.controls.step.node.focus({ preventScroll: true });
    });
  }

  private drawParts(): void {
    this.drawnAt = performance.now();
    const { link } = this;
    const { state, health } = link;
    const live = health === "live";
    setAttribute(this.root, "data-health", health);
    setAttribute(this.root, "data-running", link.runs);
    this.drawSaid();
    if (!state) {
      this.drawTitle("Agent stepper");
      setText(this.next, health === "silent" ? "" : "Waiting for the kernel…");
      for (const control of CONTROLS) this.controls[control].allow(health === "silent" ? SILENT : "The kernel has not answered yet.");
      for (const part of [this.pill, this.position, this.cards, this.answer, this.branches, this.code, this.notes]) show(part, false);
      this.history.draw([], EMPTY, false);
      this.chart.draw([]);
      return;
    }
    const { rows, bars } = link.kept;
    this.drawTitle(state.title || "Agent stepper");
    setText(this.position, position(state));
    show(this.position, true);
    this.drawPill(state);
    this.drawNext(state);
    this.drawControls(state, live);
    this.drawTrack(state);
    this.drawNotes(state);
    this.drawCards(state, live);
    this.drawAnswer(state);
    this.drawBranches(state, live);
    this.drawCode(state.line ?? undefined, state.phase === "end");
    this.history.draw(rows, state, live);
    this.chart.draw(bars.slice(0, state.bars));
    if (live && this.told !== state) {
      const words = announcement(this.told, state);
      this.told = state;
      if (words) setText(this.spoken, words);
    }
  }

  private drawTitle(text: string): void {
    if (this.title.dataset["text"] === text) return;
    this.title.dataset["text"] = text;
    this.title.replaceChildren(visibleText(text, true));
  }

  private drawSaid(): void {
    const { health, said } = this.link;
    this.forgetRefusal();
    const text = health === "silent" ? SILENT : this.refusedText || said?.text || "";
    const tone = health === "silent" ? "warn" : this.refusedText ? "info" : (said?.tone ?? "info");
    if (this.said.dataset["text"] === text + tone) return;
    this.said.dataset["text"] = text + tone;
    setAttribute(this.said, "data-tone", tone);
    this.said.replaceChildren(icon(health === "silent" ? "plug" : tone === "error" ? "warn" : "info"), element("span", {}, visibleText(text, true)));
    show(this.said, text !== "");
  }

  private drawPill(state: State): void {
    const { icon: name, word, tone } = pill(state, this.link.runs);
    show(this.pill, true);
    if (this.pill.dataset["word"] === word) return;
    this.pill.dataset["word"] = word;
    setAttribute(this.pill, "data-tone", tone);
    setText(this.pillWord, word);
    this.pillIcon.replaceChildren(icon(name));
  }

  private drawNext(state: State): void {
    const text = state.next;
    if (this.next.dataset["text"] === text) return;
    this.next.dataset["text"] = text;
    this.next.replaceChildren(element("strong", {}, state.phase === "end" ? "End: " : "Next: "), visibleText(text.replace(/^Next:\s*/i, ""), true));
    show(this.next, text !== "");
  }

  private drawControls(state: State, live: boolean): void {
    const why = live ? "" : this.link.health === "silent" ? SILENT : "The kernel has not answered yet.";
    for (const control of CONTROLS) {
      // While a click is on its way its button is off: pressed twice, it acts once.
      const waiting = this.link.pending ? "Your last click is still on its way." : "";
      this.controls[control].allow(why || waiting || canNow(state, control));
    }
    if (this.link.runs) this.controls.run.label("Pause", icon("pause"));
    else this.controls.run.label("Run", icon("run"));
    const looking = state.at < state.last && can(state, "forward") === true;
    this.controls.forward.node.classList.toggle("al-primary", looking);
    this.controls.step.node.classList.toggle("al-primary", !looking);
  }

  private place(place: (typeof PLACES)[number]): HTMLElement {
    const here = element("span", { class: "al-here", hidden: true }, "you are here");
    const lamps = element("ul", { class: "al-lamps", role: "list" });
    for (const lamp of place.lamps) {
      const state = element("span", { class: "al-lamp-state" });
      const node = element(
        "li",
        { class: "al-lamp", title: LAMPS[lamp].question },
        element("span", { class: "al-bulb", "aria-hidden": "true" }),
        element("span", { class: "al-lamp-id" }, lamp),
        element("span", { class: "al-lamp-name" }, LAMPS[lamp].name),
        state,
      );
      this.lamps.set(lamp, { node, state });
      lamps.append(node);
    }
    const node = element(
      "li",
      { class: "al-place", "data-phase": place.phase },
      element("div", { class: "al-place-head" }, element("span", { class: "al-place-name" }, place.name), element("span", { class: "al-place-gloss" }, place.gloss), here),
      lamps,
    );
    this.places.set(place.phase, { node, here });
    return node;
  }

  private drawTrack(state: State): void {
    for (const [phase, { node, here }] of this.places) {
      const now = phase === state.phase;
      setAttribute(node, "aria-current", now ? "step" : undefined);
      show(here, now);
    }
    setAttribute(this.track, "data-phase", state.phase);
    for (const [lamp, { node, state: words }] of this.lamps) {
      const lit = state.lamps[lamp] ?? "";
      setAttribute(node, "data-lit", lit || "off");
      const text = lit === "now" ? "now" : lit === "done" ? "decided" : "";
      setText(words, text);
    }
  }

  private drawNotes(state: State): void {
    const key = JSON.stringify(state.notes);
    show(this.notes, state.notes.length > 0);
    if (key === this.drawnNotes) return;
    this.drawnNotes = key;
    this.notes.replaceChildren(...state.notes.map(guardNote));
  }

  private drawCards(state: State, live: boolean): void {
    const wanted = new Map(state.held.map((held) => [`${state.branch}/${held.call_id}/${held.digest}/${held.expired === true}`, held]));
    for (const [key, card] of this.held) {
      if (wanted.has(key)) continue;
      card.node.remove();
      this.held.delete(key);
    }
    for (const [key, held] of wanted) {
      let card = this.held.get(key);
      if (!card) {
        card = this.card(held);
        this.held.set(key, card);
        this.cards.append(card.node);
      }
      card.allow(!live ? "The kernel does not answer: nothing can be approved." : this.link.pending ? "Your last click is still on its way." : state.running ? "A step is running." : true);
      if (!held.expired) card.say(state.at < state.last ? "This was answered before. Another answer starts a branch of its own here." : "", "wait");
    }
    show(this.cards, wanted.size > 0);
  }

  private card(held: Held): Card {
    return approvalCard(held, (answer) => {
      this.refusedText = "";
      this.link.command("rule", { ...answer });
    });
  }

  private drawAnswer(state: State): void {
    const text = state.phase === "end" && state.answer ? state.answer : "";
    show(this.answer, text !== "");
    if (this.answer.dataset["text"] === text) return;
    this.answer.dataset["text"] = text;
    this.answer.replaceChildren(element("strong", {}, icon("flag"), "Answer"), element("div", { class: "al-text", dir: "auto" }, visibleText(text, true)));
  }

  private drawBranches(state: State, live: boolean): void {
    const key = JSON.stringify([state.branches, live]);
    show(this.branches, state.branches.length > 1);
    if (key === this.drawnBranches) return;
    const focused = this.branches.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset["branch"] : undefined;
    this.drawnBranches = key;
    const list = element("ul", { class: "al-tree", role: "list" });
    for (const { branch, depth, parts } of branchTree(state.branches)) {
      const go = button(
        { text: branch.name, icon: icon(depth ? "branch" : "flag"), class: "al-tab", title: branch.current ? "This branch is shown" : `Show ${branch.name}` },
        () => !branch.current && this.link.command("branch", { id: branch.id }),
        (why) => this.refuse(why),
      );
      go.allow(live || SILENT);
      go.node.dataset["branch"] = String(branch.id);
      setAttribute(go.node, "aria-current", branch.current ? "true" : undefined);
      const about = [parts, `${branch.rows} ${branch.rows === 1 ? "message" : "messages"}`, branch.current ? "shown" : ""].filter(Boolean).join(" · ");
      const item = element("li", { class: "al-leaf" }, go.node, element("span", { class: "al-leaf-about" }, about));
      item.style.setProperty("--al-depth", String(depth));
      list.append(item);
      if (focused === String(branch.id)) queueMicrotask(() => go.node.focus());
    }
    this.branches.replaceChildren(element("h3", {}, icon("branch"), "Branches"), list);
  }

  private drawCode(line: Line | undefined, over: boolean): void {
    const key = line ? JSON.stringify([line, over]) : "";
    show(this.code, line !== undefined);
    if (key === this.drawnCode || !line) return;
    this.drawnCode = key;
    const around = line.around.length ? line.around : ([[line.lineno, line.text]] as [number, string][]);
    const source = element("div", { class: "al-source", role: "img", "aria-label": `${over ? "Ended" : "Paused"} at line ${line.lineno}: ${line.text.trim()}` });
    for (const [number, text] of around) {
      const here = number === line.lineno;
      source.append(
        element(
          "div",
          { class: "al-source-line", "data-here": here },
          element("span", { class: "al-source-mark" }, here ? icon("run") : ""),
          element("span", { class: "al-source-number" }, String(number)),
          element("code", {}, visibleText(text || " ")),
        ),
      );
    }
    const locals = element("dl", { class: "al-locals" });
    for (const [name, text] of line.locals) {
      locals.append(element("dt", {}, element("code", {}, visibleText(name))), element("dd", {}, element("code", {}, visibleText(text))));
    }
    this.code.replaceChildren(
      element("header", { class: "al-pane-head" }, element("h3", {}, over ? "Your code ended here" : "Your code waits here"), element("span", { class: "al-sum" }, `${line.file.split(/[\\/]/).at(-1) ?? ""} line ${line.lineno}`)),
      source,
      line.locals.length ? element("p", { class: "al-locals-title" }, over ? "Its variables then" : "Its variables now") : "",
      line.locals.length ? locals : "",
    );
  }
}

const EMPTY: State = {
  branch: "",
  at: 0,
  last: 0,
  rows: 0,
  bars: 0,
  phase: "request",
  turn: 0,
  lamps: {},
  next: "",
  status: "",
  answer: null,
  running: false,
  notes: [],
  held: [],
  can: {} as Record<Control, Can>,
  branches: [],
  title: "",
  door: false,
};

// A function, so that each widget model gets a link of its own, which all its views share.
export default () => {
  let link: Link | undefined;
  return {
    initialize({ model }: InitializeProps): () => void {
      link = new Link(model);
      return link.open();
    },
    render({ el }: RenderProps): (() => void) | undefined {
      if (!link) return undefined;
      const stepper = new Stepper(link);
      el.append(stepper.root);
      stepper.takeOver();
      return () => stepper.close();
    },
  };
};
