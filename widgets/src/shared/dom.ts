// Making elements. Text always becomes a text node: nothing here reads markup.
import { pieces } from "./text.ts";

export type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | undefined>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  // JupyterLab's shortcuts (a, d d, 0 0, …) look for this on the very element that has the focus, not on those around it.
  if (FOCUSABLE.has(tag) || "tabindex" in attributes) made.setAttribute("data-lm-suppress-shortcuts", "true");
  append(made, children);
  return made;
}

const FOCUSABLE = new Set<string>(["button", "input", "textarea", "summary"]);
const SVG = "http://www.w3.org/2000/svg";

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  append(made, children);
  return made;
}

function append(to: Element, children: Child[]): void {
  for (const child of children) if (child) to.append(child);
}

export function setAttribute(on: Element, name: string, value: string | number | boolean | undefined): void {
  if (value === undefined || value === false) on.removeAttribute(name);
  else {
    const text = value === true ? "" : String(value);
    if (on.getAttribute(name) !== text) on.setAttribute(name, text);
  }
}

/** Change text only when it differs: a live region would speak again, and the browser would lay out again. */
export function setText(on: Element, text: string): void {
  if (on.textContent !== text) on.textContent = text;
}

export function show(node: HTMLElement, visible: boolean): void {
  if (node.hidden === visible) node.hidden = !visible;
}

/** Boxes for hidden characters, in one text: a million of them would hold the page for minutes. The rest are words. */
const BOXES_AT_MOST = 1000;
/** A longer text has one direction, that of its beginning: looking at each line took seconds for a million characters. */
const LONG = 20_000;

/** Text with each hidden character drawn as a boxed mark; in prose only those that could mislead. */
export function visibleText(text: string, prose = false): DocumentFragment {
  const out = document.createDocumentFragment();
  let boxes = 0;
  let words = "";
  for (const piece of pieces(text, prose)) {
    if (!piece.mark || boxes >= BOXES_AT_MOST) {
      words += piece.mark ? `[${piece.text}]` : piece.text;
      continue;
    }
    boxes += 1;
    out.append(words, element("span", { class: "al-hidden-mark", title: piece.mark }, piece.text));
    words = "";
  }
  if (words) out.append(words);
  return out;
}

/** Put a text of any length into its box. */
export function fillText(box: HTMLElement, text: string, prose = false, end = ""): void {
  box.classList.toggle("al-long", text.length > LONG);
  box.replaceChildren(visibleText(text, prose), end);
}

/** Put a text of any length into a field. */
export function fillField(field: HTMLTextAreaElement, text: string): void {
  if (text.length > LONG) field.dir = "ltr";
  field.value = text;
}

/** A box with a whole text in it: it scrolls by itself, so it can be reached by the keyboard. */
export function scrolls(box: HTMLElement, on: boolean): void {
  box.classList.toggle("al-whole", on);
  setAttribute(box, "tabindex", on ? 0 : undefined);
  setAttribute(box, "data-lm-suppress-shortcuts", on ? "true" : undefined);
}

export interface Button {
  node: HTMLButtonElement;
  /** Turn it on (true) or off with the reason. An off button keeps its place and the keyboard focus. */
  allow(state: true | string): void;
  label(text: string, icon?: SVGSVGElement): void;
  readonly off: string;
}

/**
 * A real button with an icon and words. Off means aria-disabled, not disabled: a disabled button loses the focus, and
 * the arrow keys with it. Pressing an off button tells why instead of acting.
 */
export function button(
  options: { text: string; icon?: SVGSVGElement; class?: string; title?: string; hint?: string; name?: string },
  act: () => void,
  refused: (why: string) => void = () => {},
): Button {
  const words = element("span", { class: "al-button-text" }, options.text);
  const node = element(
    "button",
    { type: "button", class: `al-button ${options.class ?? ""}`.trim(), title: options.title, "aria-label": options.name },
    options.icon,
    words,
    options.hint ? element("kbd", { "aria-hidden": "true" }, options.hint) : null,
  );
  let off = "";
  node.addEventListener("click", () => (off ? refused(off) : act()));
  return {
    node,
    get off() {
      return off;
    },
    allow(state) {
      off = state === true ? "" : state || "Not possible here.";
      setAttribute(node, "aria-disabled", off ? "true" : undefined);
      setAttribute(node, "title", off || options.title);
    },
    label(text, icon) {
      setText(words, text);
      if (icon) node.querySelector("svg")?.replaceWith(icon);
    },
  };
}
