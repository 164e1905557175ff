// The token chart: what each request carries, by role. A light SVG of our own, with a table as its twin.
import { element, setAttribute, setText, show, svg } from "../shared/dom.ts";
import { roleShape } from "../shared/icons.ts";
import { tokenCount } from "../shared/text.ts";
import type { Bar } from "./protocol.ts";
import { KIND_NAMES, KINDS, barSentence, chartCaption, drawBars, shortCount, total, type Box, type Kind } from "./view.ts";

/** Each kind has a pattern as well as a colour. */
const PATTERNS: Record<Kind, string> = {
  tools: "M0 3h6",
  system: "M3 0v6",
  user: "M-1 1l2-2M0 6l6-6M5 7l2-2",
  assistant: "",
  tool: "M0 0l6 6M6 0l-6 6",
};

let made = 0;

export class Chart {
  readonly node: HTMLElement;
  private readonly id = `al-chart-${(made += 1)}`;
  private readonly picture: SVGSVGElement;
  private readonly caption = element("span", { class: "al-sum" });
  private readonly reading = element("p", { class: "al-reading" });
  private readonly empty = element("p", { class: "al-empty" }, "No request has been sent yet. Each one will be a bar here.");
  private readonly body = element("tbody");
  private readonly table: HTMLElement;
  private readonly legend = element("ul", { class: "al-legend", role: "list" });
  private readonly watch: ResizeObserver;
  private bars: readonly Bar[] = [];
  private tabled: Bar[] = [];
  private width = 0;
  private box: Box = { width: 0, height: 190, left: 46, right: 8, top: 22, bottom: 22 };

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
          this.body,
        ),
      ),
    );
    for (const kind of [...KINDS].reverse()) this.legend.append(element("li", { "data-kind": kind }, this.swatch(kind), roleShape(kind), KIND_NAMES[kind]));
    this.node = element(
      "section",
      { class: "al-pane al-tokens-pane" },
      element("header", { class: "al-pane-head" }, element("h3", {}, "Tokens in each request"), this.caption),
      element("div", { class: "al-pane-body" }, this.empty, this.picture, this.reading, this.legend, this.table),
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

  close(): void {
    this.watch.disconnect();
  }

  draw(bars: readonly Bar[]): void {
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

  private swatch(kind: Kind): SVGSVGElement {
    return svg("svg", { class: "al-swatch", viewBox: "0 0 18 12", "aria-hidden": "true" }, this.pattern(kind, "swatch"), ...this.filled(kind, "swatch", "M0 0h18v12H0z"));
  }

  private pattern(kind: Kind, use: string): SVGDefsElement {
    return svg(
      "defs",
      {},
      svg("pattern", { id: `${this.id}-${use}-${kind}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, svg("path", { d: PATTERNS[kind], class: "al-pattern" })),
    );
  }

  private filled(kind: Kind, use: string, path: string): SVGPathElement[] {
    const colour = svg("path", { d: path, class: "al-fill", "data-kind": kind });
    return PATTERNS[kind] ? [colour, svg("path", { d: path, fill: `url(#${this.id}-${use}-${kind})` })] : [colour];
  }

  private paint(): void {
    if (!this.width || !this.bars.length) return;
    const box = { ...this.box, width: this.width };
    const { paths, marks, columns, labels } = drawBars(this.bars, box);
    const parts: SVGElement[] = [];
    for (const { value, y } of marks) {
      parts.push(
        svg("path", { d: `M${box.left} ${y.toFixed(1)}H${box.width - box.right}`, class: "al-grid" }),
        svg("text", { x: box.left - 6, y: y + 4, class: "al-axis", "text-anchor": "end" }, shortCount(value)),
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
      // Near the right edge the number stands to the left of the bar's end, so that it is never cut off.
      const middle = column.x + column.width / 2;
      const near = middle + text.length * 4 > box.width - 2;
      parts.push(
        svg("rect", { x: column.x - 2, y: column.top - 2, width: column.width + 4, height: floor - column.top + 3, rx: 2, class: `al-last${last.exact ? "" : " al-estimate"}` }),
        svg("text", { x: near ? box.width - 2 : middle, y: column.top - 7, class: "al-last-label", "text-anchor": near ? "end" : "middle" }, text),
      );
    }
    setAttribute(this.picture, "viewBox", `0 0 ${box.width} ${box.height}`);
    setAttribute(this.picture, "aria-label", last ? `${barSentence(last)} ${chartCaption(this.bars)}.` : "");
    this.picture.replaceChildren(...parts);
  }

  private read(event: PointerEvent): void {
    const x = event.clientX - this.picture.getBoundingClientRect().left;
    const { columns } = drawBars(this.bars, { ...this.box, width: this.width });
    const bar = this.bars[columns.findIndex((column) => x >= column.x - 2 && x <= column.x + column.width + 2)];
    if (bar) setText(this.reading, barSentence(bar));
    else this.readLast();
  }

  private readLast(): void {
    const last = this.bars.at(-1);
    setText(this.reading, last ? barSentence(last) : "");
  }

  /** The table is filled when it is opened, and then row by row. */
  private fillTable(): void {
    if (!(this.table as HTMLDetailsElement).open) return;
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
}
