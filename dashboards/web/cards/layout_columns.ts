// Where the bytes of a stripe lie by column, and what becomes of them.
import { FATES } from "../charts/file_map";
import { legend } from "../charts/states";
import { h } from "../element";
import * as numbers from "../numbers";
import type { CardText, IoLayout } from "../types";
import { card } from "./card";

interface Column {
  name: string;
  stored: number;
  wanted: number;
  over: number;
}

function columnsOf(layout: IoLayout): Column[] {
  const { streams } = layout;
  const columns = new Map<string, Column>();
  streams?.offset.forEach((_, i) => {
    const area = streams.names[streams.area[i]];
    const name =
      area === "index"
        ? "row index"
        : area === "none"
          ? "no stream that can be read"
          : streams.names[streams.column[i]] || "several columns";
    const column = columns.get(name) ?? { name, stored: 0, wanted: 0, over: 0 };
    column.stored += streams.stored[i];
    column.wanted += streams.wanted[i];
    column.over += streams.over[i];
    columns.set(name, column);
  });
  return [...columns.values()].sort((a, b) => b.stored - a.stored);
}

const MOST = 40;

export function layoutColumnsCard(layout: IoLayout, text: CardText): HTMLElement | null {
  const columns = columnsOf(layout);
  if (columns.length === 0) return null;
  const most = columns[0].stored || 1;
  const part = (bytes: number, tone: string) =>
    bytes > 0
      ? h("i", { class: `fill-${tone}`, style: { width: `${((bytes / most) * 100).toFixed(2)}%` } })
      : null;
  const row = ({ name, stored, wanted, over }: Column) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, name),
      h(
        "td",
        { class: "grow" },
        h(
          "span",
          { class: "statebar bare", "aria-hidden": "true" },
          part(wanted, "c"),
          part(over, "wo"),
          part(stored - wanted - over, "wi"),
        ),
      ),
      h("td", { class: "num" }, numbers.bytes(stored)),
      h("td", { class: "num hide" }, numbers.percent(wanted / (stored || 1))),
      h("td", { class: "num hide" }, numbers.percent(over / (stored || 1))),
    );
  const head = ["column", "bytes", "stored", "wanted", "read over"].map((title, i) =>
    h("th", { scope: "col", class: i < 2 ? null : i > 2 ? "num hide" : "num" }, title),
  );
  return card({
    key: "layout-columns",
    text,
    chart: h(
      "table",
      { class: "bars" },
      h("caption", { class: "vh" }, text.question),
      h("thead", null, h("tr", null, head)),
      h("tbody", null, columns.slice(0, MOST).map(row)),
    ),
    legend: legend(FATES.slice(0, 3)),
    table: () => ({
      columns: [
        { title: "column" },
        { title: "bytes" },
        { title: "wanted" },
        { title: "read over" },
      ],
      rows: columns.map(({ name, stored, wanted, over }) => [name, stored, wanted, over]),
    }),
  });
}
