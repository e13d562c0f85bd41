// Which requests are slow: size and latency of each together.
import { heatMap } from "../charts/heat_map";
import { Fitted, h } from "../element";
import * as numbers from "../numbers";
import type { CardText, IoLatency } from "../types";
import { card } from "./card";
import type { Cell } from "./table";

export function ioLatencyCard(latency: IoLatency, text: CardText): HTMLElement | null {
  const all = latency.histograms.filter((each) => each.count.length > 0);
  if (all.length === 0) return null;
  return card({
    key: "io-latency",
    text,
    chart: all.map((each) => {
      const total = each.count.reduce((sum, count) => sum + count, 0);
      const name = `${each.of}, ${each.direction}`;
      const label = `${numbers.plural(total, "request")} (${name}) by size and latency`;
      return [
        h("h3", { class: "sub" }, `${name}: latency against size`),
        new Fitted((width) => heatMap(width, each, label)).element,
      ];
    }),
    table: () => ({
      columns: [
        { title: "of" },
        { title: "direction" },
        { title: "size from", format: (value) => String(value) },
        { title: "latency from", format: numbers.seconds },
        { title: "requests" },
      ],
      rows: all.flatMap((each) =>
        each.count.map((count, i): Cell[] => [
          each.of,
          each.direction,
          each.size[i],
          each.latency[i],
          count,
        ]),
      ),
    }),
  });
}
