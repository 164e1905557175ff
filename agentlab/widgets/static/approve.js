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
function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// src/shared/dom.ts
function element(tag, attributes = {}, ...children) {
  const made2 = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made2, name, value);
  if (FOCUSABLE.has(tag) || "tabindex" in attributes) made2.setAttribute("data-lm-suppress-shortcuts", "true");
  append(made2, children);
  return made2;
}
var FOCUSABLE = /* @__PURE__ */ new Set(["button", "input", "textarea", "summary"]);
var SVG = "http://www.w3.org/2000/svg";
function svg(tag, attributes = {}, ...children) {
  const made2 = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made2, name, value);
  append(made2, children);
  return made2;
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

// src/approve/approve.ts
var READY_EVERY = 300;
var READY_TIMES = 20;
var ANSWER_WAIT = 3e3;
var OPEN = /* @__PURE__ */ new Set(["asking", "later"]);
var GONE = "The kernel is gone, and nothing was run. Run the cell again: you will be asked anew.";
function standing(state, why, name) {
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
        settled: false
      };
    default:
      return { text: "The run waits for your answer. No answer means no.", tone: "wait", settled: false };
  }
}
function render({ model, el }, keyboard) {
  const held = model.get("call");
  let waiting = 0;
  const card = approvalCard(held, (answer) => {
    if (waiting) return;
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
  root.addEventListener("focusin", () => keyboard.here = true);
  root.addEventListener("focusout", () => {
    setTimeout(() => {
      if (root.isConnected && !root.contains(document.activeElement) && document.activeElement !== document.body) keyboard.here = false;
    });
  });
  requestAnimationFrame(() => {
    if (keyboard.here && document.activeElement === document.body) root.querySelector(".al-card-state")?.focus({ preventScroll: true });
  });
  const draw = () => {
    window.clearTimeout(waiting);
    waiting = 0;
    const { text, tone, settled } = standing(model.get("state"), model.get("why"), nameOf(held.name));
    card.allow(true);
    card.say(text, tone, settled);
  };
  const gone = () => {
    if (!OPEN.has(String(model.get("state")))) return;
    window.clearTimeout(waiting);
    card.allow(GONE);
    card.say(GONE, "muted");
  };
  const hear = (message) => {
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
function sayReady(model, gone) {
  const view = `${Date.now()}-${Math.random()}`;
  const say = (op) => {
    try {
      model.send({ op, view });
    } catch {
      gone();
    }
  };
  let times = 0;
  const hello = () => {
    if (!OPEN.has(String(model.get("state"))) || times && model.get("ack") || (times += 1) > READY_TIMES) window.clearInterval(timer);
    else say("ready");
  };
  const lost = () => say("ready");
  const timer = window.setInterval(hello, READY_EVERY);
  model.on("comm_live_update", lost);
  hello();
  return () => {
    window.clearInterval(timer);
    model.off("comm_live_update", lost);
    if (OPEN.has(String(model.get("state")))) say("gone");
  };
}
var approve_default = () => {
  const keyboard = { here: false };
  return { render: (props) => render(props, keyboard) };
};
export {
  approve_default as default
};
