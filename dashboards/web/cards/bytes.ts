// What a row costs in bytes at each stage boundary.
import { h } from "../element";
import * as numbers from "../numbers";
import type { CardText, Report } from "../types";
import { card } from "./card";

export function bytesCard(report: Report, text: CardText): HTMLElement | null {
  const rows = (report.bytes ?? []).filter((row) => typeof row.bytes_per_row === "number");
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map((row) => row.bytes_per_row ?? 0)) || 1;
  const bars = h(
    "table",
    { class: "bars" },
    h("caption", { class: "vh" }, text.question),
    h(
      "tbody",
      null,
      rows.map((row) => {
        const over = row.border.includes("over-read");
        const width = `${(((row.bytes_per_row ?? 0) / most) * 100).toFixed(2)}%`;
        return h(
          "tr",
          null,
          h("th", { scope: "row" }, row.border.replace(/ \(.*/, "")),
          h(
            "td",
            { class: "grow" },
            h("i", {
              class: over ? "bar fill-wo" : "bar fill-c",
              style: { width },
              "aria-hidden": "true",
            }),
          ),
          h("td", { class: "num" }, numbers.bytes(row.bytes_per_row)),
        );
      }),
    ),
  );
  return card({
    key: "bytes",
    text,
    chart: bars,
    table: () => ({
      columns: [
        { title: "boundary" },
        { title: "bytes a row", format: numbers.bytes },
        { title: "source" },
      ],
      rows: rows.map((row) => [row.border, row.bytes_per_row, row.told_by ?? ""]),
    }),
  });
}
