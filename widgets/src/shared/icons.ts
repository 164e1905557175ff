// Icons are drawn, not typed: a glyph or an emoji looks different, or is missing, from font to font.
import { svg } from "./dom.ts";

const PATHS = {
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
  info: "M8 2.500a5.5 5.5 0 1 0 .01 0M8 7.500v3.500M8 5v.4",
} as const;

export type IconName = keyof typeof PATHS;

const FILLED = new Set<IconName>(["run", "pause", "stop"]);

export function icon(name: IconName): SVGSVGElement {
  return svg(
    "svg",
    { class: `al-icon${FILLED.has(name) ? " al-icon-filled" : ""}`, viewBox: "0 0 16 16", "aria-hidden": "true" },
    svg("path", { d: PATHS[name] }),
  );
}

const SHAPES: Record<string, string> = {
  system: "M3 3h10v10H3z",
  user: "M8 2.500a5.5 5.5 0 1 0 .01 0",
  assistant: "M8 1.5 14.5 8 8 14.5 1.5 8z",
  tool: "M8 2 14.5 13.500h-13z",
  tools: "M4.8 2.500h6.400L14.5 8l-3.3 5.500H4.800L1.5 8z",
  note: "M3 6.500h10v3H3z",
};

/** Each role has a shape of its own, so that colour is never the only sign. */
export function roleShape(role: string): SVGSVGElement {
  return svg(
    "svg",
    { class: "al-shape", viewBox: "0 0 16 16", "aria-hidden": "true", "data-role": role },
    svg("path", { d: SHAPES[role] ?? SHAPES["note"] }),
  );
}
