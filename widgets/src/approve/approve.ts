// The approval card on its own, for `await agent.run(...)`. The Python half is agentlab/widgets/approve.py.
//
// Handshake: the card says "ready" until the kernel acknowledges. Only then does the cell wait for it, so a front end
// that cannot be heard never hangs a run.
import { approvalCard, type Answer, type Held, type Tone } from "../shared/card.ts";
import { element } from "../shared/dom.ts";
import type { Model, RenderProps } from "../shared/host.ts";
import { nameOf } from "../shared/text.ts";
import { followTheme } from "../shared/theme.ts";

const READY_EVERY = 300;
const READY_TIMES = 20;
const ANSWER_WAIT = 3000;
/** The states in which an answer still counts. */
const OPEN = new Set(["asking", "later"]);
const GONE = "The kernel is gone, and nothing was run. Run the cell again: you will be asked anew.";

interface Standing {
  text: string;
  tone: Tone;
  settled: boolean;
}

function standing(state: unknown, why: unknown, name: string): Standing {
  const reason = typeof why === "string" && why ? `: ${why}` : "";
  switch (state) {
    case "approved":
      return { text: `You approved ${name}${reason}`, tone: "good", settled: true };
    case "refused":
      return { text: `You refused ${name}${reason}`, tone: "bad", settled: true };
    case "cancelled":
      return { text: `The cell was interrupted. ${name} was not run.`, tone: "muted", settled: true };
    case "expired":
      return { text: `Nobody answered in time. ${name} was not run, and not refused.`, tone: "muted", settled: true };
    case "later":
      return {
        text: "The cell went on without an answer, and nothing ran. Answer here, then run: await agent.run(agent.last)",
        tone: "wait",
        settled: false,
      };
    default:
      return { text: "The run waits for your answer. No answer means no.", tone: "wait", settled: false };
  }
}

/** Whether the card has the keyboard: when it is answered its output is drawn anew, and the new view takes it over. */
interface Keyboard {
  here: boolean;
}

function render({ model, el }: RenderProps, keyboard: Keyboard): () => void {
  const held = model.get("call") as Held;
  let waiting = 0;
  const card = approvalCard(held, (answer: Answer) => {
    if (waiting) return;
    // Answered already, perhaps in another view: say what was decided. Another answer would change nothing.
    if (!OPEN.has(String(model.get("state")))) return draw();
    try {
      model.send({ op: "rule", ...answer });
    } catch {
      return gone();
    }
    card.allow("Your answer is on its way.");
    card.say("Your answer is on its way.", "muted");
    waiting = window.setTimeout(() => {
      waiting = 0;
      card.allow(true);
      card.say("The kernel has not taken your answer yet: it may be busy, or gone. Your answer counts once.", "muted");
    }, ANSWER_WAIT);
  });
  const root = element("div", { class: "agentlab agentlab-approve", "data-lm-suppress-shortcuts": "true" }, card.node);
  el.append(root);
  root.addEventListener("focusin", () => (keyboard.here = true));
  root.addEventListener("focusout", () => {
    // An element that is taken away loses the focus too; then it is not the person who left.
    setTimeout(() => {
      if (root.isConnected && !root.contains(document.activeElement) && document.activeElement !== document.body) keyboard.here = false;
    });
  });
  requestAnimationFrame(() => {
    if (keyboard.here && document.activeElement === document.body) root.querySelector<HTMLElement>(".al-card-state")?.focus({ preventScroll: true });
  });

  const draw = (): void => {
    window.clearTimeout(waiting);
    waiting = 0;
    const { text, tone, settled } = standing(model.get("state"), model.get("why"), nameOf(held.name));
    card.allow(true);
    card.say(text, tone, settled);
  };
  const gone = (): void => {
    if (!OPEN.has(String(model.get("state")))) return;
    window.clearTimeout(waiting);
    card.allow(GONE);
    card.say(GONE, "muted");
  };
  const hear = (message: { op?: unknown }): void => {
    if (message.op === "decided") draw();
  };
  model.on("change:state", draw);
  model.on("msg:custom", hear);
  draw();

  const stopReady = sayReady(model, gone);
  const stopTheme = followTheme(root);
  return () => {
    window.clearTimeout(waiting);
    stopReady();
    stopTheme();
    model.off("change:state", draw);
    model.off("msg:custom", hear);
  };
}

/** Repeated, since a first message can queue behind the running cell where the kernel has no other way to hear it. */
function sayReady(model: Model, gone: () => void): () => void {
  const view = `${Date.now()}-${Math.random()}`;
  const say = (op: string): void => {
    try {
      model.send({ op, view });
    } catch {
      gone(); // the kernel was restarted, or it died: there is no line to it
    }
  };
  let times = 0;
  const hello = (): void => {
    // Once even where it is heard already: the kernel counts the views that can answer.
    if (!OPEN.has(String(model.get("state"))) || (times && model.get("ack")) || (times += 1) > READY_TIMES) window.clearInterval(timer);
    else say("ready");
  };
  const lost = (): void => say("ready");
  const timer = window.setInterval(hello, READY_EVERY);
  model.on("comm_live_update", lost);
  hello();
  return () => {
    window.clearInterval(timer);
    model.off("comm_live_update", lost);
    if (OPEN.has(String(model.get("state")))) say("gone");
  };
}

// A function, so that each card has a memory of its own, which all its views share.
export default () => {
  const keyboard: Keyboard = { here: false };
  return { render: (props: RenderProps): (() => void) => render(props, keyboard) };
};
