// A table of figures: the same rows are shown on the page, rounded, and written to a file with all
// digits. More rows than fit a page are made only while they are looked at.
import { h } from "../element";
import { NONE } from "../numbers";

export type Cell = string | number | null;

export interface Column {
  title: string;
  format?: (value: number) => string; // how people read its numbers; without one, as they are
}

export interface Table {
  columns: Column[];
  rows: Cell[][];
}

function shown(cell: Cell, column: Column): string {
  if (cell === null || cell === undefined) return NONE;
  if (typeof cell === "number") return column.format ? column.format(cell) : String(cell);
  return cell;
}

function isNumeric(table: Table, index: number): boolean {
  return table.rows.some((row) => typeof row[index] === "number");
}

export function tableElement(table: Table, caption: string): HTMLElement {
  const numeric = table.columns.map((_, index) => isNumeric(table, index));
  const head = h(
    "thead",
    null,
    h(
      "tr",
      null,
      table.columns.map((column, i) =>
        h("th", { scope: "col", class: numeric[i] && "num" }, column.title),
      ),
    ),
  );
  const row = (cells: Cell[]) =>
    h(
      "tr",
      null,
      table.columns.map((column, i) =>
        h("td", { class: numeric[i] && "num" }, shown(cells[i] ?? null, column)),
      ),
    );
  const windowed = new WindowedRows(table.rows, row, 29, table.columns.length);
  const element = h("table", null, h("caption", { class: "vh" }, caption), head, windowed.body);
  element.setAttribute("aria-rowcount", String(table.rows.length + 1));
  return windowed.scroller(element, caption);
}

const ALL_AT_ONCE = 60;
const OVERSCAN = 8;

// The rows of a long table, of equal height, of which only those in view exist.
export class WindowedRows<T> {
  readonly body = h("tbody");
  private box: HTMLElement | null = null;
  private made = new Map<number, HTMLTableRowElement>();
  private readonly ready = new Map<T, HTMLTableRowElement>(); // of the rows before, until they are replaced
  private readonly above = h("tr", { class: "spacer", "aria-hidden": "true" });
  private readonly below = h("tr", { class: "spacer", "aria-hidden": "true" });

  constructor(
    private rows: readonly T[],
    private readonly render: (row: T, index: number) => HTMLTableRowElement,
    private readonly height: number,
    columns: number,
  ) {
    this.above.append(h("td", { colspan: columns }));
    this.below.append(h("td", { colspan: columns }));
    this.show();
  }

  // The box in which the table scrolls, where it has to.
  scroller(table: HTMLElement, label: string): HTMLElement {
    const long = this.rows.length > ALL_AT_ONCE;
    const attributes = {
      class: long ? "scroll tall" : "scroll",
      tabindex: 0,
      role: "region",
      "aria-label": label,
    };
    this.box = h("div", attributes, table);
    this.box.addEventListener("scroll", () => this.show(), { passive: true });
    requestAnimationFrame(() => this.show());
    return this.box;
  }

  // Rows that are there already are not made again.
  replace(rows: readonly T[]): void {
    for (const [index, row] of this.made) this.ready.set(this.rows[index], row);
    this.rows = rows;
    this.made.clear();
    this.body.replaceChildren();
    this.box?.classList.toggle("tall", rows.length > ALL_AT_ONCE);
    if (this.box) this.box.scrollTop = 0;
    this.show();
    this.ready.clear();
  }

  // Draws the rows again that are there: what they show has changed.
  refresh(): void {
    this.made.clear();
    this.body.replaceChildren();
    this.show();
  }

  // Scrolls so that a row is in view.
  reveal(index: number): void {
    if (this.rows.length <= ALL_AT_ONCE || !this.box || index < 0) return;
    const top = index * this.height;
    const inView =
      top >= this.box.scrollTop &&
      top < this.box.scrollTop + this.box.clientHeight - 2 * this.height;
    if (!inView) this.box.scrollTop = Math.max(0, top - this.box.clientHeight / 2);
    this.show();
  }

  private range(): [number, number] {
    const count = this.rows.length;
    if (count <= ALL_AT_ONCE) return [0, count];
    const top = this.box?.scrollTop ?? 0;
    const seen = this.box?.clientHeight || 600;
    const first = Math.max(0, Math.floor(top / this.height) - OVERSCAN);
    return [first, Math.min(count, Math.ceil((top + seen) / this.height) + OVERSCAN)];
  }

  private space(row: HTMLTableRowElement, rows: number): void {
    row.hidden = rows === 0;
    (row.firstElementChild as HTMLElement).style.setProperty("height", `${rows * this.height}px`);
  }

  // Rows that stay are not touched, so that one of them may keep the keyboard.
  private show(): void {
    const [first, last] = this.range();
    for (const [index, row] of this.made) {
      if (index >= first && index < last) continue;
      row.remove();
      this.made.delete(index);
    }
    if (this.above.parentNode !== this.body) this.body.prepend(this.above);
    if (this.below.parentNode !== this.body) this.body.append(this.below);
    let before: Element = this.above;
    for (let index = first; index < last; index++) {
      let row = this.made.get(index);
      if (!row) {
        row = this.ready.get(this.rows[index]) ?? this.render(this.rows[index], index);
        row.setAttribute("aria-rowindex", String(index + 2));
        this.made.set(index, row);
        before.after(row);
      }
      before = row;
    }
    this.space(this.above, first);
    this.space(this.below, this.rows.length - last);
  }
}
