// What reaches the device: sizes and latencies of its requests.
import { latencyEdge, sizeEdge } from "../charts/heat_map";
import { histogram } from "../charts/histogram";
import type { Child } from "../element";
import { Fitted, h } from "../element";
import * as numbers from "../numbers";
import type { Bucket, CardText, Histograms } from "../types";
import { card } from "./card";
import type { Cell } from "./table";

function part(
  title: string,
  buckets: Bucket[] | null,
  name: (edge: number) => string,
  tone: "c" | "b",
): Child {
  if (!buckets || buckets.length === 0) {
    return h(
      "div",
      null,
      h("h3", { class: "sub" }, title),
      h("p", { class: "dim" }, "not measured"),
    );
  }
  const total = buckets.reduce((sum, bucket) => sum + bucket[1], 0);
  const label = `${title} of ${numbers.plural(total, "request")}, in buckets that double`;
  return h(
    "div",
    null,
    h("h3", { class: "sub" }, title),
    new Fitted((width) => histogram(width, buckets, name, tone, label)).element,
  );
}

export function requestsCard(histograms: Histograms | null, text: CardText): HTMLElement | null {
  const io = (histograms?.io ?? []).filter((each) => each.size?.length || each.latency?.length);
  if (io.length === 0) return null;
  const several = io.length > 1;
  return card({
    key: "requests",
    text,
    chart: io.map((each) =>
      h(
        "div",
        { class: "halves" },
        part(several ? `size, ${each.direction}` : "size", each.size, sizeEdge, "c"),
        part(several ? `latency, ${each.direction}` : "latency", each.latency, latencyEdge, "b"),
      ),
    ),
    table: () => ({
      columns: [
        { title: "direction" },
        { title: "what" },
        { title: "from", format: (value) => String(value) },
        { title: "requests" },
      ],
      rows: io.flatMap((each) => [
        ...(each.size ?? []).map(([from, count]): Cell[] => [
          each.direction,
          "size in bytes",
          from,
          count,
        ]),
        ...(each.latency ?? []).map(([from, count]): Cell[] => [
          each.direction,
          "latency in seconds",
          from,
          count,
        ]),
      ]),
    }),
  });
}
