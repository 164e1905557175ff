// src/shared/text.ts
var HIDDEN = [
  [0, 8, "control"],
  [11, 31, "control"],
  [127, 159, "control"],
  [173, 173, "soft hyphen"],
  [847, 847, "invisible"],
  [1564, 1564, "direction mark"],
  [4447, 4448, "invisible"],
  [6068, 6069, "invisible"],
  [6158, 6158, "invisible"],
  [8203, 8205, "zero width"],
  [8206, 8207, "direction mark"],
  [8232, 8233, "line separator"],
  [8234, 8238, "direction"],
  [8288, 8292, "invisible"],
  [8294, 8297, "direction"],
  [8298, 8303, "invisible"],
  [12644, 12644, "invisible"],
  [55296, 57343, "broken"],
  [65279, 65279, "zero width"],
  [65440, 65440, "invisible"],
  [65529, 65531, "invisible"],
  [917504, 921599, "tag"]
];
var NEEDLE = new RegExp(
  `[${HIDDEN.map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`).join("")}]`,
  "gu"
);
var FINE_IN_PROSE = /* @__PURE__ */ new Set(["zero width", "direction mark", "soft hyphen", "line separator", "invisible"]);
function hidden(codePoint) {
  return HIDDEN.find(([first, last]) => codePoint >= first && codePoint <= last)?.[2] ?? "";
}
function pieces(text, prose = false) {
  const out = [];
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
function nameOf(name) {
  const words = pieces(name).map(({ text, mark }) => mark ? `[${text}]` : text).join("");
  return words.length > 80 ? `${beginning(words, 79)}…` : words;
}
function countHidden(text) {
  return pieces(text).filter((piece) => piece.mark).length;
}
function beginning(text, limit) {
  if (text.length <= limit) return text;
  const from = Math.max(0, limit - 64);
  let end = from;
  const stretch = text.slice(from, limit + 64);
  for (const { index, segment } of new Intl.Segmenter(void 0, { granularity: "grapheme" }).segment(stretch)) {
    if (from + index + segment.length > limit) break;
    end = from + index + segment.length;
  }
  return text.slice(0, end > from ? end : limit);
}
function fold(text, lines = 5, characters = 360) {
  const few = text.split("\n", lines + 1);
  let head = few.length > lines ? few.slice(0, lines).join("\n") : text;
  head = beginning(head, characters);
  if (text.length - head.length < 40 && few.length <= lines) return { head: text, folded: false };
  return { head, folded: head.length < text.length };
}
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
function tokens(json) {
  const out = [];
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
function readable(string) {
  return string.replace(/\\(?:u([0-9a-fA-F]{4})(?:\\u([0-9a-fA-F]{4}))?|.)/gs, (escape, first, second) => {
    if (first === void 0) return escape;
    const one = shown(String.fromCharCode(parseInt(first, 16)));
    if (second === void 0) return one ?? escape;
    const both = String.fromCharCode(parseInt(first, 16), parseInt(second, 16));
    if ([...both].length === 1) return shown(both) ?? escape;
    return (one ?? `\\u${first}`) + (shown(both.charAt(1)) ?? `\\u${second}`);
  });
}
function shown(character) {
  const codePoint = character.codePointAt(0) ?? 0;
  const special = codePoint < 32 || character === '"' || character === "\\";
  return special || hidden(codePoint) ? void 0 : character;
}
function layOut(json) {
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
function pairs(json) {
  if (!isJson(json)) return void 0;
  const all = tokens(json);
  if (all[0]?.text !== "{") return void 0;
  const out = [];
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
function callLine(name, json, limit = 60) {
  const found = pairs(json);
  const inside = found ? found.map(([key, value]) => `${key}=${value}`).join(", ") : json;
  return `${nameOf(name)}(${inside.length > limit ? beginning(inside, limit) + "…" : inside})`;
}
function wrongArguments(text, schema) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `This is not JSON yet: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return 'Arguments must be a JSON object, such as {"name": "value"}.';
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
function fits(value, type) {
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
var COUNT = new Intl.NumberFormat("en-US");
function count(value) {
  return COUNT.format(value);
}
function tokenCount(value, exact) {
  return `${exact ? "" : "~"}${count(value)}`;
}
function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// src/shared/dom.ts
function element(tag, attributes = {}, ...children) {
  const made3 = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made3, name, value);
  if (FOCUSABLE.has(tag) || "tabindex" in attributes) made3.setAttribute("data-lm-suppress-shortcuts", "true");
  append(made3, children);
  return made3;
}
var FOCUSABLE = /* @__PURE__ */ new Set(["button", "input", "textarea", "summary"]);
var SVG = "http://www.w3.org/2000/svg";
function svg(tag, attributes = {}, ...children) {
  const made3 = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made3, name, value);
  append(made3, children);
  return made3;
}
function append(to, children) {
  for (const child of children) if (child) to.append(child);
}
function setAttribute(on, name, value) {
  if (value === void 0 || value === false) on.removeAttribute(name);
  else {
    const text = value === true ? "" : String(value);
    if (on.getAttribute(name) !== text) on.setAttribute(name, text);
  }
}
function setText(on, text) {
  if (on.textContent !== text) on.textContent = text;
}
function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}
var BOXES_AT_MOST = 1e3;
var LONG = 2e4;
function visibleText(text, prose = false) {
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
function fillText(box, text, prose = false, end = "") {
  box.classList.toggle("al-long", text.length > LONG);
  box.replaceChildren(visibleText(text, prose), end);
}
function fillField(field, text) {
  if (text.length > LONG) field.dir = "ltr";
  field.value = text;
}
function scrolls(box, on) {
  box.classList.toggle("al-whole", on);
  setAttribute(box, "tabindex", on ? 0 : void 0);
  setAttribute(box, "data-lm-suppress-shortcuts", on ? "true" : void 0);
}
function button(options, act, refused = () => {
}) {
  const words = element("span", { class: "al-button-text" }, options.text);
  const node = element(
    "button",
    { type: "button", class: `al-button ${options.class ?? ""}`.trim(), title: options.title, "aria-label": options.name },
    options.icon,
    words,
    options.hint ? element("kbd", { "aria-hidden": "true" }, options.hint) : null
  );
  let off = "";
  node.addEventListener("click", () => off ? refused(off) : act());
  return {
    node,
    get off() {
      return off;
    },
    allow(state) {
      off = state === true ? "" : state || "Not possible here.";
      setAttribute(node, "aria-disabled", off ? "true" : void 0);
      setAttribute(node, "title", off || options.title);
    },
    label(text, icon2) {
      setText(words, text);
      if (icon2) node.querySelector("svg")?.replaceWith(icon2);
    }
  };
}

// src/shared/icons.ts
var PATHS = {
  back: "M10 3 5 8l5 5",
  step: "M6 3l5 5-5 5",
  forward: "M3.5 3l5 5-5 5M8.5 3l5 5-5 5",
  run: "M4.5 2.8v10.4L13 8z",
  pause: "M4.2 3h2.4v10H4.2zM9.4 3h2.4v10H9.4z",
  stop: "M4 4h8v8H4z",
  reset: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5V5h2.6",
  check: "M3 8.5l3.2 3.2L13 4.8",
  cross: "M4 4l8 8M12 4l-8 8",
  hand: "M8 14c-3 0-4.5-2-5.5-5 1-.6 1.8 0 2.5 1V4a1 1 0 0 1 2 0v3-4.500a1 1 0 0 1 2 0V7 3.500a1 1 0 0 1 2 0V8 5.500a1 1 0 0 1 2 0V9c0 3-2 5-5 5z",
  warn: "M8 2.2 14.5 13.500h-13zM8 6.500v3.200M8 11.500v.4",
  shield: "M8 1.800l5 1.800v4c0 3.2-2 5.5-5 6.6-3-1.1-5-3.4-5-6.600v-4zM5.7 8l1.7 1.7 3-3.2",
  branch: "M4.5 4.500v7M4.5 4.500a1.4 1.4 0 1 0-.01 0M4.5 11.500a1.4 1.4 0 1 0 .01 0M11.5 6.500a1.4 1.4 0 1 0-.01 0M11.5 6.500c0 3-4.5 2-7 4",
  pencil: "M3 13l.7-3L11 2.7 13.3 5 6 12.300z",
  clock: "M8 2.500a5.5 5.5 0 1 0 .01 0M8 5v3.200l2.2 1.5",
  dots: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  flag: "M4 14V2.500h8l-2 3 2 3H4",
  plug: "M6 2v3M10 2v3M4.5 5h7v2.500a3.5 3.5 0 0 1-7 0zM8 11v3",
  info: "M8 2.500a5.5 5.5 0 1 0 .01 0M8 7.500v3.500M8 5v.4"
};
var FILLED = /* @__PURE__ */ new Set(["run", "pause", "stop"]);
function icon(name) {
  return svg(
    "svg",
    { class: `al-icon${FILLED.has(name) ? " al-icon-filled" : ""}`, viewBox: "0 0 16 16", "aria-hidden": "true" },
    svg("path", { d: PATHS[name] })
  );
}
var SHAPES = {
  system: "M3 3h10v10H3z",
  user: "M8 2.500a5.5 5.5 0 1 0 .01 0",
  assistant: "M8 1.5 14.5 8 8 14.5 1.5 8z",
  tool: "M8 2 14.5 13.500h-13z",
  tools: "M4.8 2.500h6.400L14.5 8l-3.3 5.500H4.800L1.5 8z",
  note: "M3 6.500h10v3H3z"
};
function roleShape(role) {
  return svg(
    "svg",
    { class: "al-shape", viewBox: "0 0 16 16", "aria-hidden": "true", "data-role": role },
    svg("path", { d: SHAPES[role] ?? SHAPES["note"] })
  );
}

// src/shared/card.ts
var SHOWN_WHOLE = 6e3;
var TONE_ICON = { good: "check", bad: "cross", muted: "clock", wait: "hand" };
var made = 0;
function approvalCard(held, answer) {
  const id = `al-card-${made += 1}`;
  const line = callLine(held.name, held.arguments);
  const name = nameOf(held.name);
  const whole = layOut(held.arguments);
  const long = whole.length > SHOWN_WHOLE;
  let opened = !long;
  let allowed = true;
  const text = element("pre", { class: "al-arguments", id: `${id}-arguments`, tabindex: 0 });
  text.append(visibleText(opened ? whole : beginning(whole, SHOWN_WHOLE)));
  const state = element("p", { class: "al-card-state", role: "status", tabindex: -1 });
  const stateIcon = element("span", {}, icon("hand"));
  const stateText = element("span");
  state.append(stateIcon, stateText);
  const say = (words, tone, settled = false) => {
    setText(stateText, words);
    stateIcon.replaceChildren(icon(TONE_ICON[tone]));
    setAttribute(state, "data-tone", tone);
    show(state, words !== "");
    if (settled) {
      setAttribute(node, "data-settled", true);
      heading.replaceChildren("A person was asked about ", element("code", {}, visibleText(held.name)));
      const focused = node.contains(document.activeElement) && document.activeElement !== text;
      for (const part of [actions, refusing.node, editing.node]) show(part, false);
      if (focused) state.focus({ preventScroll: true });
    }
  };
  const refused = (why) => say(why, "muted");
  const send = (ok, why, edited) => {
    answer({ call_id: held.call_id, digest: held.digest, ok, why, ...edited === void 0 ? {} : { arguments: edited } });
  };
  const approve = button(
    { text: `Approve ${name}`, icon: icon("check"), class: "al-good", name: `Approve ${line}` },
    () => send(true, ""),
    refused
  );
  const openRefusal = button(
    { text: `Refuse ${name}…`, icon: icon("cross"), class: "al-bad", name: `Refuse ${line}, with a reason` },
    () => toggle(refusing),
    refused
  );
  const openEditor = button(
    { text: "Edit arguments…", icon: icon("pencil"), name: `Edit the arguments of ${line}` },
    () => toggle(editing),
    refused
  );
  const actions = element("div", { class: "al-card-actions" }, approve.node, openRefusal.node, openEditor.node);
  const refusing = refusalForm();
  const editing = editorForm();
  const forms = [
    { form: refusing, opener: openRefusal },
    { form: editing, opener: openEditor }
  ];
  function toggle(chosen, open = chosen.node.hidden === true) {
    for (const { form, opener } of forms) {
      show(form.node, form === chosen && open);
      setAttribute(opener.node, "aria-expanded", form === chosen && open ? "true" : "false");
    }
    if (open) chosen.focus();
    else forms.find(({ form }) => form === chosen)?.opener.node.focus();
  }
  function refusalForm() {
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
      element("div", { class: "al-card-actions" }, go.node, cancel.node)
    );
    return { node: form, send: go, focus: () => field.focus(), ready: () => true };
  }
  function editorForm() {
    const field = element("textarea", { id: `${id}-edit`, dir: "ltr", spellcheck: "false", rows: Math.min(14, whole.split("\n").length + 1) });
    field.value = whole;
    const check = element("p", { class: "al-check", id: `${id}-check`, role: "status" });
    setAttribute(field, "aria-describedby", check.id);
    const problem = () => wrongArguments(field.value, held.schema ?? void 0);
    const go = button(
      { text: `Approve ${name} with these arguments`, icon: icon("check"), class: "al-good" },
      () => send(true, "", field.value),
      refused
    );
    const look = () => {
      const wrong = problem();
      const marks2 = countHidden(field.value);
      setText(check, wrong || (marks2 ? `Ready, but there ${marks2 === 1 ? "is 1 hidden character" : `are ${marks2} hidden characters`} in it.` : "Ready: this is valid."));
      setAttribute(check, "data-tone", wrong || marks2 ? "bad" : "good");
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
      element("div", { class: "al-card-actions" }, go.node, cancel.node)
    );
    queueMicrotask(look);
    return { node: form, send: go, focus: () => field.focus(), ready: () => problem() || true };
  }
  function refresh() {
    const read = opened ? true : 'Read the whole arguments first: press "Show all".';
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
        isJson(held.arguments) ? null : warning("These arguments are not valid JSON: the tool will not get what you see as it stands.")
      ),
      actions,
      refusing.node,
      editing.node,
      state
    )
  );
  function showAll() {
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
    }
  };
}
function warning(text) {
  return element("p", { class: "al-warning" }, icon("warn"), element("span", {}, text));
}
function escapedHidden(whole) {
  return (whole.match(/\\u(?!00(?:0[9aAdD]|22|5[cC]))[0-9a-fA-F]{4}/g) ?? []).length;
}

// src/shared/theme.ts
function luminance(colour) {
  const found = colour.match(/[\d.]+/g)?.map(Number);
  if (!found || found.length < 3 || found[3] === 0) return void 0;
  const [red = 0, green = 0, blue = 0] = found;
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}
function followTheme(root) {
  const look = () => {
    const found = luminance(getComputedStyle(root).backgroundColor);
    const dark = found === void 0 ? matchMedia("(prefers-color-scheme: dark)").matches : found < 0.4;
    root.dataset["theme"] = dark ? "dark" : "light";
  };
  const later = () => {
    look();
    setTimeout(look, 150);
    setTimeout(look, 1e3);
  };
  const watch = new MutationObserver(later);
  watch.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light", "class"] });
  const preference = matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", later);
  requestAnimationFrame(later);
  return () => {
    watch.disconnect();
    preference.removeEventListener("change", later);
  };
}

// src/stepper/view.ts
var PLACES = [
  { phase: "request", name: "Request", gloss: "what the model is sent", lamps: ["N6"] },
  { phase: "reply", name: "Reply", gloss: "the model decides", lamps: ["N1", "N2", "N3", "N5"] },
  { phase: "call", name: "Call", gloss: "the program runs a tool", lamps: ["N7"] },
  { phase: "result", name: "Result", gloss: "back into the history", lamps: ["N4"] }
];
var LAMPS = {
  N1: { name: "call a tool?", question: "Call a tool at all?" },
  N2: { name: "which", question: "Which tool?" },
  N3: { name: "arguments", question: "With which arguments?" },
  N4: { name: "what goes back", question: "What of the result goes back to the model?" },
  N5: { name: "go on or stop", question: "Go on or stop?" },
  N6: { name: "what is sent", question: "What of the history is sent?" },
  N7: { name: "ask the person", question: "Ask the person first?" }
};
var ENDS = {
  waiting: { icon: "hand", word: "waits for you", tone: "wait" },
  answered: { icon: "check", word: "answered", tone: "good" },
  capped: { icon: "flag", word: "stopped at the cap", tone: "warn" },
  stuck: { icon: "flag", word: "stuck: stopped", tone: "warn" },
  over_budget: { icon: "flag", word: "over budget: stopped", tone: "warn" },
  failed: { icon: "cross", word: "failed", tone: "bad" },
  interrupted: { icon: "stop", word: "interrupted", tone: "warn" }
};
function pill(state, runs = state.running) {
  if (runs) return { icon: "run", word: "running", tone: "calm" };
  if (state.at < state.last) return { icon: "back", word: "looking back", tone: "calm" };
  const end = ENDS[state.status];
  if (end) return end;
  if (state.status.startsWith("crashed")) return { icon: "cross", word: "crashed", tone: "bad" };
  if (state.status && state.status !== "running") return { icon: "info", word: state.status.replaceAll("_", " "), tone: "calm" };
  return state.rows === 0 ? { icon: "step", word: "ready", tone: "calm" } : { icon: "pause", word: "standing still", tone: "calm" };
}
function position(state) {
  const where = state.at < state.last ? `Stop ${state.at + 1} of ${state.last + 1}` : `Stop ${state.at + 1}`;
  return state.turn > 0 ? `${where} · turn ${state.turn}` : where;
}
function can(state, control) {
  if (!state) return "Nothing is here yet.";
  return state.can[control] ?? "Not possible here.";
}
function canNow(state, control) {
  if (!state?.running) return can(state, control);
  return control === "run" || control === "stop" || "A step is running. Pause it, or stop it.";
}
function ahead(state) {
  if (state.at < state.last && can(state, "forward") === true) return "forward";
  return can(state, "step") === true || can(state, "forward") !== true ? "step" : "forward";
}
function emptyMemory() {
  return { epoch: void 0, branches: /* @__PURE__ */ new Map(), state: void 0 };
}
var NOTHING = { rows: [], bars: [], totalRows: 0, totalBars: 0 };
function kept(memory, branch) {
  return branch !== void 0 && memory.branches.get(branch) || NOTHING;
}
function absorb(memory, batch) {
  if (memory.epoch !== batch.epoch) {
    memory.epoch = batch.epoch;
    memory.branches.clear();
  }
  memory.state = batch.state;
  let here = memory.branches.get(batch.branch);
  if (!here) memory.branches.set(batch.branch, here = inherited(memory, batch));
  here.totalRows = batch.total_rows;
  here.totalBars = batch.total_bars;
  if (batch.from_row > here.rows.length || batch.from_bar > here.bars.length) return "gap";
  lay(here.rows, batch.from_row, batch.rows, batch.total_rows);
  lay(here.bars, batch.from_bar, batch.bars, batch.total_bars);
  return here.rows.length < batch.total_rows || here.bars.length < batch.total_bars ? "more" : "whole";
}
function inherited(memory, batch) {
  const own = batch.state.branches.find((branch) => branch.id === batch.branch);
  const parent = own && own.parent !== null ? memory.branches.get(own.parent) : void 0;
  if (!own || !parent || batch.from_row > own.row) return { rows: [], bars: [], totalRows: 0, totalBars: 0 };
  return {
    rows: parent.rows.slice(0, batch.from_row),
    bars: parent.bars.slice(0, batch.from_bar),
    totalRows: 0,
    totalBars: 0
  };
}
function lay(into, from, items, total2) {
  items.forEach((item, offset) => {
    const have = into[from + offset];
    if (have === void 0 || JSON.stringify(have) !== JSON.stringify(item)) into[from + offset] = item;
  });
  if (into.length > total2) into.length = total2;
}
function sameUpTo(drawn, wanted, count2) {
  const most = Math.min(drawn.length, wanted.length, count2);
  let same = 0;
  while (same < most && drawn[same] === wanted[same]) same += 1;
  return same;
}
function branchTree(branches) {
  const out = [];
  const known = new Set(branches.map((branch) => branch.id));
  const add = (parent, depth) => {
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
function partings(state) {
  const current = state.branches.find((branch) => branch.id === state.branch);
  if (!current) return [];
  const out = [];
  for (const other of state.branches) {
    if (other.id === current.parent) out.push({ row: current.row, text: `${current.name} parts from ${other.name} here`, to: other.id, flip: `Show ${other.name}` });
    if (other.parent === current.id) out.push({ row: other.row, text: `${other.name} parts from here`, to: other.id, flip: `Show ${other.name}` });
  }
  return out;
}
var KINDS = ["tools", "system", "user", "assistant", "tool"];
var KIND_NAMES = {
  tools: "tool schemas",
  system: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool results"
};
function total(bar) {
  return KINDS.reduce((sum, kind) => sum + bar[kind], 0);
}
function axis(most) {
  if (most <= 0) return [0, 1];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? power * 10);
  const marks = [0];
  while ((marks.at(-1) ?? 0) < most) marks.push((marks.at(-1) ?? 0) + step);
  return marks;
}
function shortCount(value) {
  if (value < 1e4) return value.toLocaleString("en-US");
  const [size, unit] = value < 1e6 ? [value / 1e3, "k"] : [value / 1e6, "M"];
  return `${Number(size.toFixed(1))}${unit}`;
}
function drawBars(bars, box) {
  const most = bars.reduce((found, bar) => Math.max(found, total(bar), bar.reported ?? 0), 0);
  const values = axis(most);
  const scale = (box.height - box.top - box.bottom) / (values.at(-1) ?? 1);
  const floor = box.height - box.bottom;
  const slot = Math.min(56, (box.width - box.left - box.right) / Math.max(bars.length, 1));
  const width = slot * (slot > 6 ? 0.72 : 0.9);
  const paths = { tools: "", system: "", user: "", assistant: "", tool: "" };
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
  const every = Math.max(1, Math.ceil(bars.length * 26 / Math.max(1, slot * bars.length)));
  const labels = bars.flatMap((bar, index) => {
    const column = columns[index];
    const last = index === bars.length - 1;
    const crowded = !last && bars.length - 1 - index < every;
    return column && (last || index % every === 0 && !crowded) ? [{ text: String(bar.request), x: column.x + column.width / 2 }] : [];
  });
  return { paths, marks: values.map((value) => ({ value, y: floor - value * scale })), columns, labels };
}
function barSentence(bar) {
  const parts = KINDS.filter((kind) => bar[kind] > 0).map((kind) => `${KIND_NAMES[kind]} ${bar[kind].toLocaleString("en-US")}`);
  const reported = bar.reported ? ` The provider counted ${bar.reported.toLocaleString("en-US")}.` : "";
  return `Request ${bar.request} carries ${tokenCount(total(bar), bar.exact)} tokens: ${parts.join(" · ")}.${reported}`;
}
function chartCaption(bars) {
  if (!bars.length) return "";
  const sum = bars.reduce((found, bar) => found + total(bar), 0);
  const exact = bars.every((bar) => bar.exact);
  return `${plural(bars.length, "request")}, ${tokenCount(sum, exact)} tokens sent in all`;
}
function announcement(before, after) {
  if (after.running) return before?.running ? "" : "Running.";
  const mark = pill(after);
  if (before && before.at === after.at && before.branch === after.branch && before.status === after.status && before.running === after.running) return "";
  return `${position(after)}, ${mark.word}. ${after.next}`;
}

// src/stepper/chart.ts
var PATTERNS = {
  tools: "M0 3h6",
  system: "M3 0v6",
  user: "M-1 1l2-2M0 6l6-6M5 7l2-2",
  assistant: "",
  tool: "M0 0l6 6M6 0l-6 6"
};
var made2 = 0;
var Chart = class {
  node;
  id = `al-chart-${made2 += 1}`;
  picture;
  caption = element("span", { class: "al-sum" });
  reading = element("p", { class: "al-reading" });
  empty = element("p", { class: "al-empty" }, "No request has been sent yet. Each one will be a bar here.");
  body = element("tbody");
  table;
  legend = element("ul", { class: "al-legend", role: "list" });
  watch;
  bars = [];
  tabled = [];
  width = 0;
  box = { width: 0, height: 190, left: 46, right: 8, top: 22, bottom: 22 };
  constructor() {
    this.picture = svg("svg", { class: "al-chart", role: "img", height: this.box.height });
    this.table = element(
      "details",
      { class: "al-table" },
      element("summary", {}, "The same as a table"),
      element(
        "div",
        { class: "al-table-scroll", tabindex: 0, role: "region", "aria-label": "Tokens of each request" },
        element(
          "table",
          {},
          element("thead", {}, element("tr", {}, ...["request", ...KINDS.map((kind) => KIND_NAMES[kind]), "sum"].map((name) => element("th", { scope: "col" }, name)))),
          this.body
        )
      )
    );
    for (const kind of [...KINDS].reverse()) this.legend.append(element("li", { "data-kind": kind }, this.swatch(kind), roleShape(kind), KIND_NAMES[kind]));
    this.node = element(
      "section",
      { class: "al-pane al-tokens-pane" },
      element("header", { class: "al-pane-head" }, element("h3", {}, "Tokens in each request"), this.caption),
      element("div", { class: "al-pane-body" }, this.empty, this.picture, this.reading, this.legend, this.table)
    );
    this.watch = new ResizeObserver(() => {
      const width = Math.round(this.picture.getBoundingClientRect().width);
      if (width && width !== this.width) {
        this.width = width;
        this.paint();
      }
    });
    this.watch.observe(this.picture);
    this.picture.addEventListener("pointermove", (event) => this.read(event));
    this.picture.addEventListener("pointerleave", () => this.readLast());
    this.table.addEventListener("toggle", () => this.fillTable());
  }
  close() {
    this.watch.disconnect();
  }
  draw(bars) {
    const same = bars.length === this.bars.length && bars.every((bar, index) => bar === this.bars[index]);
    if (same && this.picture.childElementCount) return;
    this.bars = bars;
    for (const part of [this.reading, this.legend, this.table]) show(part, bars.length > 0);
    setAttribute(this.picture, "hidden", bars.length === 0);
    show(this.empty, bars.length === 0);
    setText(this.caption, chartCaption(bars));
    this.readLast();
    this.paint();
    this.fillTable();
  }
  swatch(kind) {
    return svg("svg", { class: "al-swatch", viewBox: "0 0 18 12", "aria-hidden": "true" }, this.pattern(kind, "swatch"), ...this.filled(kind, "swatch", "M0 0h18v12H0z"));
  }
  pattern(kind, use) {
    return svg(
      "defs",
      {},
      svg("pattern", { id: `${this.id}-${use}-${kind}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, svg("path", { d: PATTERNS[kind], class: "al-pattern" }))
    );
  }
  filled(kind, use, path) {
    const colour = svg("path", { d: path, class: "al-fill", "data-kind": kind });
    return PATTERNS[kind] ? [colour, svg("path", { d: path, fill: `url(#${this.id}-${use}-${kind})` })] : [colour];
  }
  paint() {
    if (!this.width || !this.bars.length) return;
    const box = { ...this.box, width: this.width };
    const { paths, marks, columns, labels } = drawBars(this.bars, box);
    const parts = [];
    for (const { value, y } of marks) {
      parts.push(
        svg("path", { d: `M${box.left} ${y.toFixed(1)}H${box.width - box.right}`, class: "al-grid" }),
        svg("text", { x: box.left - 6, y: y + 4, class: "al-axis", "text-anchor": "end" }, shortCount(value))
      );
    }
    for (const kind of KINDS) parts.push(this.pattern(kind, "bar"), ...this.filled(kind, "bar", paths[kind]));
    for (const { text, x } of labels) parts.push(svg("text", { x, y: box.height - 6, class: "al-axis", "text-anchor": "middle" }, text));
    parts.push(svg("text", { x: 2, y: 11, class: "al-axis" }, "tokens"));
    const last = this.bars.at(-1);
    const column = columns.at(-1);
    if (last && column) {
      const floor = box.height - box.bottom;
      const text = tokenCount(total(last), last.exact);
      const middle = column.x + column.width / 2;
      const near = middle + text.length * 4 > box.width - 2;
      parts.push(
        svg("rect", { x: column.x - 2, y: column.top - 2, width: column.width + 4, height: floor - column.top + 3, rx: 2, class: `al-last${last.exact ? "" : " al-estimate"}` }),
        svg("text", { x: near ? box.width - 2 : middle, y: column.top - 7, class: "al-last-label", "text-anchor": near ? "end" : "middle" }, text)
      );
    }
    setAttribute(this.picture, "viewBox", `0 0 ${box.width} ${box.height}`);
    setAttribute(this.picture, "aria-label", last ? `${barSentence(last)} ${chartCaption(this.bars)}.` : "");
    this.picture.replaceChildren(...parts);
  }
  read(event) {
    const x = event.clientX - this.picture.getBoundingClientRect().left;
    const { columns } = drawBars(this.bars, { ...this.box, width: this.width });
    const bar = this.bars[columns.findIndex((column) => x >= column.x - 2 && x <= column.x + column.width + 2)];
    if (bar) setText(this.reading, barSentence(bar));
    else this.readLast();
  }
  readLast() {
    const last = this.bars.at(-1);
    setText(this.reading, last ? barSentence(last) : "");
  }
  /** The table is filled when it is opened, and then row by row. */
  fillTable() {
    if (!this.table.open) return;
    let same = 0;
    while (same < this.tabled.length && this.tabled[same] === this.bars[same]) same += 1;
    while (this.body.rows.length > same) this.body.deleteRow(-1);
    for (const bar of this.bars.slice(same)) {
      const row = element("tr", {}, element("th", { scope: "row" }, String(bar.request)));
      for (const kind of KINDS) row.append(element("td", {}, bar[kind].toLocaleString("en-US")));
      row.append(element("td", {}, tokenCount(total(bar), bar.exact) + (bar.reported ? ` (provider: ${bar.reported.toLocaleString("en-US")})` : "")));
      this.body.append(row);
    }
    this.tabled = [...this.bars];
  }
};

// src/stepper/history.ts
var ROLE_NAMES = {
  system: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool result",
  note: "note"
};
var History = class {
  node;
  link;
  refused;
  list = element("ol", { class: "al-rows", role: "list" });
  scroller;
  heading = element("h3", {}, "Messages");
  sum = element("span", { class: "al-sum" });
  forkOff = element("p", { class: "al-fork-off", hidden: true });
  empty = element("p", { class: "al-empty" });
  drawn = [];
  fork = true;
  shown;
  /** The row whose place is kept when the branch changes under it, and whether the keyboard goes there. */
  flipped;
  constructor(link, refused) {
    this.link = link;
    this.refused = refused;
    this.scroller = element(
      "div",
      { class: "al-scroll", tabindex: 0, role: "region", "aria-label": "Message history" },
      this.empty,
      this.list
    );
    this.node = element(
      "section",
      { class: "al-pane al-history" },
      element("header", { class: "al-pane-head" }, this.heading, this.sum),
      this.forkOff,
      this.scroller
    );
  }
  draw(rows, state, live) {
    const shown2 = Math.min(state.rows, rows.length);
    const parting = /* @__PURE__ */ new Map();
    for (const one of partings(state)) parting.set(one.row, [...parting.get(one.row) ?? [], one]);
    let from = sameUpTo(this.drawn.map(({ row }) => row), rows, shown2);
    const moved = this.drawn.findIndex(({ parts }, index) => parts !== JSON.stringify(parting.get(index) ?? []));
    if (moved >= 0) from = Math.min(from, moved);
    const other = this.shown !== void 0 && this.shown !== state.branch;
    const kept2 = other ? this.flipped ?? this.firstSeen() : -1;
    const height = this.drawn[kept2]?.node.getBoundingClientRect().top;
    this.shown = state.branch;
    const pinned = this.atEnd() && !(other && this.flipped !== void 0);
    const changed = from < this.drawn.length || from < shown2;
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
    const few = shown2 - from <= 6;
    for (let index = from; index < shown2; index += 1) {
      const row = rows[index];
      if (!row) break;
      const drawn = this.row(row, parting.get(index) ?? []);
      if (few && from > 0) drawn.node.classList.add("al-fresh");
      this.drawn.push(drawn);
      fresh.append(drawn.node);
    }
    this.list.append(fresh);
    const fork = live ? can(state, "fork") : "The kernel does not answer.";
    if (fork !== this.fork || changed) {
      for (const drawn of fork === this.fork ? this.drawn.slice(from) : this.drawn) drawn.allowFork(fork);
      this.fork = fork;
    }
    show(this.forkOff, live && fork !== true && shown2 > 0);
    setText(this.forkOff, fork === true ? "" : `Edit and fork is off: ${fork}`);
    const messages = rows.slice(0, shown2).filter((row) => row.role !== "note");
    const tokens2 = messages.reduce((sum, row) => sum + row.tokens, 0);
    const exact = messages.every((row) => row.exact);
    const later = rows.slice(shown2).filter((row) => row.role !== "note").length;
    setText(
      this.sum,
      shown2 ? `${plural(messages.length, "message")}, ${tokenCount(tokens2, exact)} tokens${later > 0 ? ` · ${count(later)} more ahead` : ""}` : ""
    );
    show(this.empty, shown2 === 0);
    setText(this.empty, state.at === 0 ? "No message yet. Press Step: the first request will be shown before it is sent." : "No message at this point.");
    if (changed && pinned) this.toEnd();
    else if (other) this.keep(kept2, height);
    if (other) this.flipped = void 0;
  }
  firstSeen() {
    const top = this.scroller.getBoundingClientRect().top;
    return this.drawn.findIndex(({ node }) => node.getBoundingClientRect().bottom > top);
  }
  /** Let the row stand where it stood before, at `height` on the screen; the last row where it is no more. */
  keep(row, height) {
    const node = (this.drawn[row] ?? this.drawn.at(-1))?.node;
    if (!node || height === void 0) return;
    this.scroller.scrollTop += node.getBoundingClientRect().top - height;
    if (this.flipped !== void 0 && (document.activeElement === document.body || !document.activeElement)) {
      node.querySelector(".al-flip")?.focus({ preventScroll: true });
    }
  }
  partingLine(parting, row) {
    const flip = button(
      { text: parting.flip, class: "al-flip", title: "Show the same place in that branch" },
      () => {
        if (this.link.command("branch", { id: parting.to, row })) this.flipped = row;
        else this.refused("The last click is still on its way.");
      },
      this.refused
    );
    return element("div", { class: "al-parting" }, icon("branch"), element("span", {}, parting.text), flip.node);
  }
  atEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < 60;
  }
  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    requestAnimationFrame(() => this.scroller.scrollTop = this.scroller.scrollHeight);
  }
  row(row, parting) {
    const number = row.i + 1;
    const head = element("div", { class: "al-row-head" });
    const node = element(
      "li",
      { class: "al-row", "data-role": row.role, "data-row": row.i, "data-error": row.error === true },
      ...parting.map((one) => this.partingLine(one, row.i)),
      head
    );
    head.append(
      element("span", { class: "al-role" }, roleShape(row.role), ROLE_NAMES[row.role] ?? row.role),
      element("span", { class: "al-number" }, `#${number}`)
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
    let fork;
    if (row.role !== "note") {
      let editor;
      const close = () => {
        editor?.remove();
        editor = void 0;
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
        this.refused
      );
      setAttribute(edit.node, "aria-expanded", "false");
      head.append(edit.node);
      fork = edit;
    }
    return { node, row, parts: JSON.stringify(parting), allowFork: (state) => fork?.allow(state) };
  }
  body(row) {
    const code = row.role === "tool" && /^\s*[[{]/.test(row.text);
    const text = element(code ? "pre" : "div", { class: "al-text", dir: code ? "ltr" : "auto" });
    const box = element("div", { class: "al-body" }, text);
    const whole = row.text.length + row.more;
    const { head, folded } = row.more > 0 ? { ...fold(row.text), folded: true } : fold(row.text);
    const fill = (content, cut) => {
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
  call(row, call) {
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
  cutNote(row, whole) {
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
  editor(row, close) {
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
      box.append(this.field(row, `Message ${row.i + 1}, ${ROLE_NAMES[row.role] ?? row.role}`, row.text, row.more > 0 ? (full) => full.text : void 0, () => "", (text) => ({ what: "text", text })));
    }
    for (const call of calls) {
      const whole = (full) => full.calls?.find(({ id }) => id === call.id)?.arguments ?? call.arguments;
      box.append(
        this.field(row, `Arguments of ${nameOf(call.name)}`, call.arguments, call.more ? whole : void 0, wrongArguments, (text) => ({ what: "arguments", call_id: call.id, text }))
      );
    }
    const cancel = button({ text: "Cancel" }, close);
    box.lastElementChild?.querySelector(".al-card-actions")?.append(cancel.node);
    queueMicrotask(() => box.querySelector("textarea")?.focus());
    return box;
  }
  field(row, label, text, found, wrong, fork) {
    const area = element("textarea", { dir: "auto", spellcheck: "false", rows: Math.min(10, text.split("\n").length + 2), "aria-label": label });
    fillField(area, text);
    const check = element("p", { class: "al-check", role: "status" });
    const send = button(
      { text: "Fork here", icon: icon("branch"), class: "al-primary" },
      () => {
        if (!this.link.command("fork", { row: row.i, ...fork(area.value) })) this.refused("The last click is still on its way.");
      },
      this.refused
    );
    const look = () => {
      const problem = wrong(area.value);
      setText(check, problem);
      setAttribute(check, "data-tone", problem ? "bad" : void 0);
      show(check, problem !== "");
      send.allow(problem || (area.value === start ? "Change something first: an equal branch would teach nothing." : true));
    };
    let start = area.value;
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
};
function badge(tone, shape, text) {
  return element("span", { class: "al-badge", "data-tone": tone }, shape, text);
}
function guardNote(note) {
  return element(
    "p",
    { class: "al-guard" },
    element("span", { class: "al-badge", "data-tone": "guard" }, icon("shield"), `guard ${note.guard}`),
    element("span", { class: "al-guard-why", dir: "auto" }, visibleText(note.why, true))
  );
}
function callBox(call, all = false) {
  const box = element("div", { class: "al-call" }, element("span", { class: "al-call-mark", "aria-hidden": "true" }, icon("forward")), element("span", { class: "al-only-spoken" }, "calls "));
  const line = element("code", { class: "al-call-line" }, element("strong", {}, visibleText(call.name)));
  const whole = call.arguments;
  const more = call.more ?? 0;
  const found = more ? void 0 : pairs(whole);
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

// src/stepper/link.ts
var SILENT_AFTER = 3e3;
var NOTED_AFTER = 350;
var CLICK_WAIT = 2e3;
var TAIL_WAIT = 500;
var RUNS_AFTER = 200;
var HELLO_AGAIN = [1e3, 2e3, 5e3, 1e4, 2e4, 4e4];
var SILENT = "The kernel does not answer: this is a picture of the last state. Run the cell again to step.";
var Link = class {
  memory = emptyMemory();
  health = "connecting";
  /** The command that was sent and not answered yet: while it waits, a second click does nothing. */
  pending = "";
  said;
  /** The control that has the keyboard: an output that is drawn anew keeps it. */
  focus = "";
  model;
  watchers = /* @__PURE__ */ new Set();
  timers = /* @__PURE__ */ new Map();
  texts = /* @__PURE__ */ new Map();
  readers = /* @__PURE__ */ new Map();
  views = 0;
  hellos = 0;
  noted = false;
  runsSince = 0;
  constructor(model) {
    this.model = model;
  }
  open() {
    const hear = (message) => this.hear(message);
    const lost = () => this.hello();
    this.model.on("msg:custom", hear);
    this.model.on("comm_live_update", lost);
    this.hello();
    return () => {
      this.model.off("msg:custom", hear);
      this.model.off("comm_live_update", lost);
      for (const timer of this.timers.values()) window.clearTimeout(timer);
    };
  }
  watch(changed) {
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  }
  /** A view was put on the page; the answer says that it was taken off. Without any, the kernel need not wait for clicks. */
  seen() {
    this.views += 1;
    if (this.views === 1 && this.health === "live") this.hello();
    return () => {
      this.views -= 1;
      if (this.views === 0 && this.health === "live") this.send({ op: "gone" });
    };
  }
  /** The state to show: what the kernel said, else the picture that was kept with the widget. */
  get state() {
    return this.memory.state ?? this.picture.state;
  }
  get kept() {
    if (this.memory.state) return kept(this.memory, this.memory.state.branch);
    const { rows = [], bars = [] } = this.picture;
    return { rows, bars, totalRows: rows.length, totalBars: bars.length };
  }
  get picture() {
    return this.model.get("picture") ?? {};
  }
  /** Whether to show that it runs: false for the first moment of it. */
  get runs() {
    return this.state?.running === true && performance.now() - this.runsSince >= RUNS_AFTER;
  }
  /** Send a command, unless one is still on its way. It names the place it was meant for; the kernel ignores stale ones. */
  command(op, extra = {}) {
    if (this.pending || this.health !== "live") return false;
    if (!this.send({ op, ...extra })) return false;
    this.pending = op;
    this.said = void 0;
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
  full(row) {
    const key = this.key(row.i);
    const have = this.texts.get(key);
    if (have !== void 0) return Promise.resolve(have);
    return new Promise((read) => {
      const waiting = this.readers.get(key);
      if (waiting) waiting.push(read);
      else this.readers.set(key, [read]);
      this.send({ op: "full", row: row.i });
    });
  }
  key(row) {
    return `${this.memory.epoch}/${this.memory.state?.branch}/${row}`;
  }
  /** False where there is no line to the kernel any more: it was restarted, or it died. */
  send(content) {
    const { state, epoch } = this.memory;
    try {
      this.model.send({ branch: state?.branch ?? null, at: state?.at ?? 0, epoch: epoch ?? null, ...content });
    } catch {
      this.silence();
      return false;
    }
    return true;
  }
  silence() {
    this.clear("silent");
    this.clear("noted");
    this.health = "silent";
    this.pending = "";
    this.said = void 0;
    this.changed();
  }
  hello() {
    const { rows, bars } = kept(this.memory, this.memory.state?.branch);
    const sent = this.send({ op: "hello", rows: rows.length, bars: bars.length });
    if (sent && !this.timers.has("silent")) this.after("silent", SILENT_AFTER, () => this.silence());
    const again = HELLO_AGAIN[this.hellos];
    this.hellos += 1;
    if (again !== void 0) this.after("hello", again, () => this.hello());
  }
  hear(message) {
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
  take(batch) {
    for (const name of ["silent", "hello", "noted", "click", "tail"]) this.clear(name);
    this.hellos = 0;
    this.health = "live";
    this.pending = "";
    if (this.memory.epoch !== batch.epoch || this.noted) this.said = void 0;
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
  after(name, wait, act) {
    this.clear(name);
    this.timers.set(
      name,
      window.setTimeout(() => {
        this.timers.delete(name);
        act();
      }, wait)
    );
  }
  clear(name) {
    window.clearTimeout(this.timers.get(name));
    this.timers.delete(name);
  }
  changed() {
    for (const watcher of this.watchers) watcher();
  }
};

// src/stepper/stepper.ts
var CONTROLS = ["back", "step", "forward", "run", "stop", "reset"];
var Stepper = class {
  root;
  link;
  history;
  chart = new Chart();
  controls;
  title = element("h2", { class: "al-title", dir: "auto" });
  pill = element("span", { class: "al-pill" });
  pillIcon = element("span", { class: "al-pill-icon" });
  pillWord = element("span");
  position = element("span", { class: "al-position" });
  next = element("p", { class: "al-next", dir: "auto" });
  spoken = element("p", { class: "al-only-spoken", role: "status", "aria-live": "polite" });
  said = element("p", { class: "al-said", role: "status" });
  answer = element("div", { class: "al-answer" });
  notes = element("div", { class: "al-notes" });
  track = element("ol", { class: "al-track", role: "list", "aria-label": "The four places of a turn, and what is decided at each" });
  places = /* @__PURE__ */ new Map();
  lamps = /* @__PURE__ */ new Map();
  cards = element("div", { class: "al-cards" });
  branches = element("nav", { class: "al-branches", "aria-label": "Branches" });
  code = element("section", { class: "al-pane al-code" });
  held = /* @__PURE__ */ new Map();
  closers = [];
  drawnCode = "";
  drawnBranches = "";
  drawnNotes = "";
  refusedText = "";
  refusedAt = { state: void 0, said: void 0 };
  told;
  frame = 0;
  drawnAt = 0;
  constructor(link) {
    this.link = link;
    const refused = (why) => this.refuse(why);
    this.history = new History(link, refused);
    const make = (control, text, shape, title, hint = "", kind = "") => button({ text, icon: icon(shape), title, hint, class: `al-control al-${control} ${kind}`.trim() }, () => this.press(control), refused);
    this.controls = {
      back: make("back", "Back", "back", "Back one stop (left arrow)", "←"),
      step: make("step", "Step", "step", "Go to the next stop (right arrow)", "→", "al-primary"),
      forward: make("forward", "Forward", "forward", "Along the steps that are already recorded (right arrow)"),
      run: make("run", "Run", "run", "Run to the end, or until a person is needed"),
      stop: make("stop", "Stop", "stop", "End the run here"),
      reset: make("reset", "Reset", "reset", "Start again from the question")
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
        this.spoken
      ),
      this.track,
      this.notes,
      this.cards,
      this.answer,
      this.branches,
      element("div", { class: "al-columns" }, this.history.node, element("div", { class: "al-side" }, this.code, this.chart.node))
    );
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("focusin", (event) => {
      const control = CONTROLS.find((name) => this.controls[name].node === event.target);
      link.focus = control ?? (event.target === this.root ? "root" : "");
    });
    this.root.addEventListener("focusout", () => {
      setTimeout(() => {
        if (this.root.isConnected && !this.root.contains(document.activeElement)) link.focus = "";
      });
    });
    this.closers.push(
      link.watch(() => this.ask()),
      link.seen(),
      followTheme(this.root),
      () => this.chart.close(),
      () => cancelAnimationFrame(this.frame)
    );
    this.draw();
  }
  /** Take over the keyboard and the place in the history from a view that this one replaces. */
  takeOver() {
    requestAnimationFrame(() => {
      if (this.link.focus && (document.activeElement === document.body || !document.activeElement)) {
        const control = CONTROLS.find((name) => name === this.link.focus);
        (control ? this.controls[control].node : this.root).focus({ preventScroll: true });
      }
    });
  }
  close() {
    for (const close of this.closers) close();
  }
  /** Draw now, so that the next frame shows it; what comes thick and fast waits for its frame. */
  ask() {
    if (!this.frame && performance.now() - this.drawnAt > 30) return this.draw();
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }
  // ---- Commands ----
  press(control) {
    this.refusedText = "";
    const op = control === "run" && this.link.runs ? "pause" : control;
    this.link.command(op);
  }
  refuse(why) {
    if (this.link.pending) return;
    this.refusedText = why;
    this.refusedAt = { state: this.link.state, said: this.link.said };
    this.ask();
  }
  /** What was refused at another stop, or before the kernel had something to say, is no news any more. */
  forgetRefusal() {
    const { state, said } = this.link;
    const before = this.refusedAt;
    const moved = state?.running && before.state?.running ? false : state !== before.state;
    if (moved || said !== before.said) this.refusedText = "";
  }
  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const target = event.target;
    if (target.matches("textarea, input, [contenteditable]")) return;
    const state = this.link.state;
    if (!state) return;
    const act = (() => {
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
          return () => state.running ? this.link.command("pause") : this.leave();
        default:
          return void 0;
      }
    })();
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
  goto(to) {
    const state = this.link.state;
    if (!state || to === state.at) return;
    const allowed = can(state, to < state.at ? "back" : "forward");
    if (allowed === true) this.link.command("goto", { to });
    else this.refuse(allowed);
  }
  /** Give the keyboard back to the notebook. */
  leave() {
    this.root.parentElement?.closest("[tabindex]")?.focus();
  }
  // ---- Drawing: each part changes only what differs ----
  draw() {
    const focused = this.root.contains(document.activeElement);
    this.drawParts();
    if (!focused) return;
    queueMicrotask(() => {
      if (document.activeElement === document.body) this.controls.step.node.focus({ preventScroll: true });
    });
  }
  drawParts() {
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
    this.drawCode(state.line ?? void 0, state.phase === "end");
    this.history.draw(rows, state, live);
    this.chart.draw(bars.slice(0, state.bars));
    if (live && this.told !== state) {
      const words = announcement(this.told, state);
      this.told = state;
      if (words) setText(this.spoken, words);
    }
  }
  drawTitle(text) {
    if (this.title.dataset["text"] === text) return;
    this.title.dataset["text"] = text;
    this.title.replaceChildren(visibleText(text, true));
  }
  drawSaid() {
    const { health, said } = this.link;
    this.forgetRefusal();
    const text = health === "silent" ? SILENT : this.refusedText || said?.text || "";
    const tone = health === "silent" ? "warn" : this.refusedText ? "info" : said?.tone ?? "info";
    if (this.said.dataset["text"] === text + tone) return;
    this.said.dataset["text"] = text + tone;
    setAttribute(this.said, "data-tone", tone);
    this.said.replaceChildren(icon(health === "silent" ? "plug" : tone === "error" ? "warn" : "info"), element("span", {}, visibleText(text, true)));
    show(this.said, text !== "");
  }
  drawPill(state) {
    const { icon: name, word, tone } = pill(state, this.link.runs);
    show(this.pill, true);
    if (this.pill.dataset["word"] === word) return;
    this.pill.dataset["word"] = word;
    setAttribute(this.pill, "data-tone", tone);
    setText(this.pillWord, word);
    this.pillIcon.replaceChildren(icon(name));
  }
  drawNext(state) {
    const text = state.next;
    if (this.next.dataset["text"] === text) return;
    this.next.dataset["text"] = text;
    this.next.replaceChildren(element("strong", {}, state.phase === "end" ? "End: " : "Next: "), visibleText(text.replace(/^Next:\s*/i, ""), true));
    show(this.next, text !== "");
  }
  drawControls(state, live) {
    const why = live ? "" : this.link.health === "silent" ? SILENT : "The kernel has not answered yet.";
    for (const control of CONTROLS) {
      const waiting = this.link.pending ? "Your last click is still on its way." : "";
      this.controls[control].allow(why || waiting || canNow(state, control));
    }
    if (this.link.runs) this.controls.run.label("Pause", icon("pause"));
    else this.controls.run.label("Run", icon("run"));
    const looking = state.at < state.last && can(state, "forward") === true;
    this.controls.forward.node.classList.toggle("al-primary", looking);
    this.controls.step.node.classList.toggle("al-primary", !looking);
  }
  place(place) {
    const here = element("span", { class: "al-here", hidden: true }, "you are here");
    const lamps = element("ul", { class: "al-lamps", role: "list" });
    for (const lamp of place.lamps) {
      const state = element("span", { class: "al-lamp-state" });
      const node2 = element(
        "li",
        { class: "al-lamp", title: LAMPS[lamp].question },
        element("span", { class: "al-bulb", "aria-hidden": "true" }),
        element("span", { class: "al-lamp-id" }, lamp),
        element("span", { class: "al-lamp-name" }, LAMPS[lamp].name),
        state
      );
      this.lamps.set(lamp, { node: node2, state });
      lamps.append(node2);
    }
    const node = element(
      "li",
      { class: "al-place", "data-phase": place.phase },
      element("div", { class: "al-place-head" }, element("span", { class: "al-place-name" }, place.name), element("span", { class: "al-place-gloss" }, place.gloss), here),
      lamps
    );
    this.places.set(place.phase, { node, here });
    return node;
  }
  drawTrack(state) {
    for (const [phase, { node, here }] of this.places) {
      const now = phase === state.phase;
      setAttribute(node, "aria-current", now ? "step" : void 0);
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
  drawNotes(state) {
    const key = JSON.stringify(state.notes);
    show(this.notes, state.notes.length > 0);
    if (key === this.drawnNotes) return;
    this.drawnNotes = key;
    this.notes.replaceChildren(...state.notes.map(guardNote));
  }
  drawCards(state, live) {
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
  card(held) {
    return approvalCard(held, (answer) => {
      this.refusedText = "";
      this.link.command("rule", { ...answer });
    });
  }
  drawAnswer(state) {
    const text = state.phase === "end" && state.answer ? state.answer : "";
    show(this.answer, text !== "");
    if (this.answer.dataset["text"] === text) return;
    this.answer.dataset["text"] = text;
    this.answer.replaceChildren(element("strong", {}, icon("flag"), "Answer"), element("div", { class: "al-text", dir: "auto" }, visibleText(text, true)));
  }
  drawBranches(state, live) {
    const key = JSON.stringify([state.branches, live]);
    show(this.branches, state.branches.length > 1);
    if (key === this.drawnBranches) return;
    const focused = this.branches.contains(document.activeElement) ? document.activeElement.dataset["branch"] : void 0;
    this.drawnBranches = key;
    const list = element("ul", { class: "al-tree", role: "list" });
    for (const { branch, depth, parts } of branchTree(state.branches)) {
      const go = button(
        { text: branch.name, icon: icon(depth ? "branch" : "flag"), class: "al-tab", title: branch.current ? "This branch is shown" : `Show ${branch.name}` },
        () => !branch.current && this.link.command("branch", { id: branch.id }),
        (why) => this.refuse(why)
      );
      go.allow(live || SILENT);
      go.node.dataset["branch"] = String(branch.id);
      setAttribute(go.node, "aria-current", branch.current ? "true" : void 0);
      const about = [parts, `${branch.rows} ${branch.rows === 1 ? "message" : "messages"}`, branch.current ? "shown" : ""].filter(Boolean).join(" · ");
      const item = element("li", { class: "al-leaf" }, go.node, element("span", { class: "al-leaf-about" }, about));
      item.style.setProperty("--al-depth", String(depth));
      list.append(item);
      if (focused === String(branch.id)) queueMicrotask(() => go.node.focus());
    }
    this.branches.replaceChildren(element("h3", {}, icon("branch"), "Branches"), list);
  }
  drawCode(line, over) {
    const key = line ? JSON.stringify([line, over]) : "";
    show(this.code, line !== void 0);
    if (key === this.drawnCode || !line) return;
    this.drawnCode = key;
    const around = line.around.length ? line.around : [[line.lineno, line.text]];
    const source = element("div", { class: "al-source", role: "img", "aria-label": `${over ? "Ended" : "Paused"} at line ${line.lineno}: ${line.text.trim()}` });
    for (const [number, text] of around) {
      const here = number === line.lineno;
      source.append(
        element(
          "div",
          { class: "al-source-line", "data-here": here },
          element("span", { class: "al-source-mark" }, here ? icon("run") : ""),
          element("span", { class: "al-source-number" }, String(number)),
          element("code", {}, visibleText(text || " "))
        )
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
      line.locals.length ? locals : ""
    );
  }
};
var EMPTY = {
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
  can: {},
  branches: [],
  title: "",
  door: false
};
var stepper_default = () => {
  let link;
  return {
    initialize({ model }) {
      link = new Link(model);
      return link.open();
    },
    render({ el }) {
      if (!link) return void 0;
      const stepper = new Stepper(link);
      el.append(stepper.root);
      stepper.takeOver();
      return () => stepper.close();
    }
  };
};
export {
  stepper_default as default
};
