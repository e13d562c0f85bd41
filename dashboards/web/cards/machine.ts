// Was the machine free, and other courses of many figures: a small chart for each, all over the same
// time.
import { moveCursor, spark } from "../charts/spark";
import { Fitted, h } from "../element";
import * as numbers from "../numbers";
import { meanInRange, timeline, windowAt } from "../time";
import type { CardText, Series } from "../types";
import { card } from "./card";
import type { Cell } from "./table";

function value(series: Series): string {
  const at = timeline.at;
  if (at !== null) {
    const window = windowAt(series.t, series.d, at);
    return numbers.inUnit(window < 0 ? null : series.v[window], series.unit);
  }
  if (series.atEnd) {
    const last = series.t.filter((t) => t < timeline.to).length - 1;
    return numbers.inUnit(series.v[last] ?? null, series.unit);
  }
  return numbers.inUnit(
    meanInRange(series.t, series.d, (i) => series.v[i]),
    series.unit,
  );
}

function small(series: Series, signal: AbortSignal): HTMLElement {
  const view = () => ({
    from: timeline.from,
    to: timeline.to,
    top: series.of,
    height: 44,
    at: timeline.at,
  });
  let drawn: SVGSVGElement | null = null;
  const chart = new Fitted((width) => {
    drawn = spark(width, series, view());
    return drawn;
  });
  const said = h("b", null, value(series));
  timeline.subscribe((rangeChanged) => {
    said.textContent = value(series);
    if (rangeChanged) chart.redraw();
    else if (drawn) moveCursor(drawn, view());
  }, signal);
  const of =
    series.of !== null && series.unit === "cores"
      ? h("span", { class: "u" }, ` of ${numbers.count(series.of)}`)
      : null;
  return h(
    "div",
    { class: "multiple" },
    h("p", null, h("span", null, series.title), h("span", { class: "nowrap" }, said, of)),
    chart.element,
  );
}

export function machineCard(
  series: readonly Series[],
  text: CardText,
  signal: AbortSignal,
  key = "machine",
): HTMLElement | null {
  const shown = series.filter((each) => each.v.some((v) => v !== null));
  if (shown.length === 0) return null;
  return card({
    key,
    text,
    chart: h(
      "div",
      { class: [4, 7, 8].includes(shown.length) ? "multiples four" : "multiples" },
      shown.map((each) => small(each, signal)),
    ),
    table: () => ({
      columns: [
        { title: "series" },
        { title: "unit" },
        { title: "from", format: numbers.seconds },
        { title: "value", format: numbers.rateNumber },
      ],
      rows: shown.flatMap((each) =>
        each.t.map((t, i): Cell[] => [each.title, each.unit, t, each.v[i] ?? null]),
      ),
    }),
  });
}
