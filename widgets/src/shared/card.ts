// The approval card: the tool, the whole arguments, what will happen, and a person's answer. No answer means no.
import { button, element, setAttribute, setText, show, visibleText, type Button } from "./dom.ts";
import { icon, type IconName } from "./icons.ts";
import { beginning, callLine, count, countHidden, isJson, layOut, nameOf, plural, wrongArguments, type Schema } from "./text.ts";

export interface Held {
  call_id: string;
  digest: string;
  name: string;
  arguments: string;
  effect: string;
  schema?: Schema | null;
  expired?: boolean;
}

export interface Answer {
  call_id: string;
  digest: string;
  ok: boolean;
  why: string;
  arguments?: string;
}

export type Tone = "good" | "bad" | "muted" | "wait";

export interface Card {
  node: HTMLElement;
  /** Turn the buttons on (true) or off with the reason. */
  allow(state: true | string): void;
  /** Say how it stands; `settled` takes the buttons away. */
  say(text: string, tone: Tone, settled?: boolean): void;
}

/** Up to this length the arguments are shown whole; longer ones must be opened before they can be approved. */
export const SHOWN_WHOLE = 6000;

const TONE_ICON: Record<Tone, IconName> = { good: "check", bad: "cross", muted: "clock", wait: "hand" };

let made = 0;

export function approvalCard(held: Held, answer: (answer: Answer) => void): Card {
  const id = `al-card-${(made += 1)}`;
  const line = callLine(held.name, held.arguments);
  const name = nameOf(held.name);
  const whole = layOut(held.arguments);
  const long = whole.length > SHOWN_WHOLE;
  let opened = !long;
  let allowed: true | string = true;

  const text = element("pre", { class: "al-arguments", id: `${id}-arguments`, tabindex: 0 });
  text.append(visibleText(opened ? whole : beginning(whole, SHOWN_WHOLE)));

  const state = element("p", { class: "al-card-state", role: "status", tabindex: -1 });
  const stateIcon = element("span", {}, icon("hand"));
  const stateText = element("span");
  state.append(stateIcon, stateText);

  const say: Card["say"] = (words, tone, settled = false) => {
    setText(stateText, words);
    stateIcon.replaceChildren(icon(TONE_ICON[tone]));
    setAttribute(state, "data-tone", tone);
    show(state, words !== "");
    if (settled) {
      setAttribute(node, "data-settled", true);
      heading.replaceChildren("A person was asked about ", element("code", {}, visibleText(held.name)));
      const focused = node.contains(document.activeElement) && document.activeElement !== text;
      for (const part of [actions, refusing.node, editing.node]) show(part, false);
      if (focused) state.focus({ preventScroll: true });  // the button that had the keyboard is gone
    }
  };
  const refused = (why: string): void => say(why, "muted");

  const send = (ok: boolean, why: string, edited?: string): void => {
    answer({ call_id: held.call_id, digest: held.digest, ok, why, ...(edited === undefined ? {} : { arguments: edited }) });
  };

  const approve = button(
    { text: `Approve ${name}`, icon: icon("check"), class: "al-good", name: `Approve ${line}` },
    () => send(true, ""),
    refused,
  );
  const openRefusal = button(
    { text: `Refuse ${name}…`, icon: icon("cross"), class: "al-bad", name: `Refuse ${line}, with a reason` },
    () => toggle(refusing),
    refused,
  );
  const openEditor = button(
    { text: "Edit arguments…", icon: icon("pencil"), name: `Edit the arguments of ${line}` },
    () => toggle(editing),
    refused,
  );
  const actions = element("div", { class: "al-card-actions" }, approve.node, openRefusal.node, openEditor.node);

  const refusing = refusalForm();
  const editing = editorForm();
  const forms = [
    { form: refusing, opener: openRefusal },
    { form: editing, opener: openEditor },
  ];

  function toggle(chosen: Form, open = chosen.node.hidden === true): void {
    for (const { form, opener } of forms) {
      show(form.node, form === chosen && open);
      setAttribute(opener.node, "aria-expanded", form === chosen && open ? "true" : "false");
    }
    if (open) chosen.focus();
    else forms.find(({ form }) => form === chosen)?.opener.node.focus();
  }

  interface Form {
    node: HTMLElement;
    send: Button;
    focus(): void;
    /** Why its own button is off, or true. */
    ready(): true | string;
  }

  function refusalForm(): Form {
    const field = element("input", { type: "text", id: `${id}-why`, dir: "auto", placeholder: "for example: the order is already refunded" });
    const go = button({ text: `Refuse ${name}`, icon: icon("cross"), class: "al-bad", name: `Refuse ${line}` }, () => send(false, field.value.trim()), refused);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) {
        event.preventDefault();
        go.node.click();
      }
    });
    const cancel = button({ text: "Cancel" }, () => toggle(refusing, false));
    const form = element(
      "div",
      { class: "al-card-form", hidden: true, role: "group", "aria-label": `Refuse ${line}` },
      element("label", { for: field.id }, "Why not? The model is told."),
      field,
      element("div", { class: "al-card-actions" }, go.node, cancel.node),
    );
    return { node: form, send: go, focus: () => field.focus(), ready: () => true };
  }

  function editorForm(): Form {
    const field = element("textarea", { id: `${id}-edit`, dir: "ltr", spellcheck: "false", rows: Math.min(14, whole.split("\n").length + 1) });
    field.value = whole;
    const check = element("p", { class: "al-check", id: `${id}-check`, role: "status" });
    setAttribute(field, "aria-describedby", check.id);
    const problem = (): string => wrongArguments(field.value, held.schema ?? undefined);
    const go = button(
      { text: `Approve ${name} with these arguments`, icon: icon("check"), class: "al-good" },
      () => send(true, "", field.value),
      refused,
    );
    const look = (): void => {
      const wrong = problem();
      const marks = countHidden(field.value);
      setText(check, wrong || (marks ? `Ready, but there ${marks === 1 ? "is 1 hidden character" : `are ${marks} hidden characters`} in it.` : "Ready: this is valid."));
      setAttribute(check, "data-tone", wrong || marks ? "bad" : "good");
      refresh();
    };
    field.addEventListener("input", look);
    const cancel = button({ text: "Cancel" }, () => {
      field.value = whole;
      look();
      toggle(editing, false);
    });
    const form = element(
      "div",
      { class: "al-card-form", hidden: true, role: "group", "aria-label": `Edit the arguments of ${line}` },
      element("label", { for: field.id }, "Arguments as JSON. Only what stands here will run."),
      field,
      check,
      element("div", { class: "al-card-actions" }, go.node, cancel.node),
    );
    queueMicrotask(look);
    return { node: form, send: go, focus: () => field.focus(), ready: () => problem() || true };
  }

  function refresh(): void {
    const read: true | string = opened ? true : "Read the whole arguments first: press \"Show all\".";
    approve.allow(allowed !== true ? allowed : held.expired ? "This request has expired: nothing can be approved." : read);
    openRefusal.allow(allowed);
    openEditor.allow(allowed !== true ? allowed : held.expired ? "This request has expired." : true);
    refusing.send.allow(allowed);
    editing.send.allow(allowed !== true ? allowed : editing.ready());
  }

  const heading = element("div", { class: "al-card-head" }, element("span", {}, icon("hand"), " Waiting for you:"), element("code", {}, visibleText(held.name)), "wants to run");
  const marks = countHidden(held.arguments) + escapedHidden(whole);
  const node = element(
    "section",
    { class: "al-card", "aria-label": `Approval of ${line}`, "data-call": held.call_id },
    heading,
    element(
      "div",
      { class: "al-card-body" },
      held.effect ? element("p", { class: "al-effect", dir: "auto" }, visibleText(held.effect)) : null,
      element(
        "div",
        {},
        element("p", { class: "al-card-label", id: `${id}-label` }, `Arguments, whole (${plural(held.arguments.length, "character")}):`),
        text,
        long ? showAll() : null,
        marks ? warning(`${marks === 1 ? "1 hidden character is" : `${count(marks)} hidden characters are`} in the arguments. Each is shown as a boxed code or an escape.`) : null,
        isJson(held.arguments) ? null : warning("These arguments are not valid JSON: the tool will not get what you see as it stands."),
      ),
      actions,
      refusing.node,
      editing.node,
      state,
    ),
  );

  function showAll(): HTMLElement {
    const hiddenCount = whole.length - SHOWN_WHOLE;
    const open = element("button", { type: "button", class: "al-link" }, `Show all: ${count(hiddenCount)} characters are hidden`);
    open.addEventListener("click", () => {
      opened = true;
      text.replaceChildren(visibleText(whole));
      open.remove();
      refresh();
      text.focus();
    });
    return open;
  }

  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const open = forms.find(({ form }) => !form.node.hidden);
    if (!open) return;
    event.stopPropagation();
    toggle(open.form, false);
  });

  say(held.expired ? "This request has expired. It was neither approved nor refused." : "", "muted");
  refresh();
  return {
    node,
    say,
    allow(next) {
      allowed = next;
      refresh();
    },
  };
}

function warning(text: string): HTMLElement {
  return element("p", { class: "al-warning" }, icon("warn"), element("span", {}, text));
}

/** Hidden characters that the arguments spell as \u escapes. */
function escapedHidden(whole: string): number {
  return (whole.match(/\\u(?!00(?:0[9aAdD]|22|5[cC]))[0-9a-fA-F]{4}/g) ?? []).length;
}
