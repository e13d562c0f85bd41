// What of the table's file is read: all stripes in a line, and one of them byte after byte.
import { replaceQuery } from "../address";
import { get } from "../api";
import { FATES, fileMap, nameOf } from "../charts/file_map";
import { legend } from "../charts/states";
import { stripeStrip } from "../charts/stripe_strip";
import type { Child } from "../element";
import { Fitted, h } from "../element";
import * as numbers from "../numbers";
import type { CardText, IoLayout, LayoutStreams } from "../types";
import { card, failure } from "./card";
import type { Table } from "./table";

function totals(plan: NonNullable<IoLayout["plan"]>): HTMLElement {
  const stored = plan.stored_bytes || 1;
  const skipped = plan.stored_bytes - plan.wanted_bytes - plan.over_read_bytes;
  const fact = (name: string, value: string, more: string) =>
    h("div", null, h("dt", null, name), h("dd", null, h("b", null, value), " ", more));
  const of = (bytes: number) => `${numbers.percent(bytes / stored)} of the stripes`;
  return h(
    "dl",
    { class: "facts" },
    fact("wanted", numbers.bytes(plan.wanted_bytes), of(plan.wanted_bytes)),
    fact("read over", numbers.bytes(plan.over_read_bytes), of(plan.over_read_bytes)),
    fact("skipped", numbers.bytes(skipped), of(skipped)),
    fact(
      "reads of a pass",
      numbers.count(plan.reads_count),
      plan.reads_count > 0
        ? `of ${numbers.bytes((plan.wanted_bytes + plan.over_read_bytes) / plan.reads_count)} on average`
        : "",
    ),
  );
}

function tableOf(layout: IoLayout): Table {
  const streams = layout.streams as LayoutStreams;
  return {
    columns: [
      { title: "stripe" },
      { title: "offset in the file" },
      { title: "what" },
      { title: "streams" },
      { title: "bytes" },
      { title: "wanted" },
      { title: "read over" },
    ],
    rows: streams.offset.map((offset, i) => [
      String(layout.stripe),
      offset,
      nameOf(streams, i),
      streams.streams[i],
      streams.stored[i],
      streams.wanted[i],
      streams.over[i],
    ]),
  };
}

export function fileLayoutCard(
  id: number,
  first: IoLayout,
  text: CardText,
  signal: AbortSignal,
  onStripe: (layout: IoLayout) => void,
): HTMLElement | null {
  const { plan, stripes, detailed = [] } = first;
  if (!plan || !stripes || !first.streams?.offset.length || !first.reads) return null;
  let layout = first;
  const says = h("p", { class: "sub", role: "status" });
  const map = new Fitted((width) => {
    const streams = layout.streams as LayoutStreams;
    const reads = layout.reads ?? { offset: [], bytes: [], wanted: [] };
    const name = `Stripe ${layout.stripe}`;
    says.textContent = `${name}, byte after byte, ${numbers.plural(reads.offset.length, "read")}`;
    return fileMap(width, streams, reads, `${name}: what is wanted, read over and skipped`);
  });
  const box = h("div", null, map.element);
  const known = new Set(detailed);
  const strip = new Fitted((width) =>
    stripeStrip(
      width,
      stripes,
      layout.stripe ?? 0,
      `${numbers.plural(plan.known_count, "stripe")} in the order of the files`,
      (stripe) => {
        if (known.has(stripe)) void show(stripe);
      },
    ),
  );
  const choice = h(
    "select",
    { "aria-label": "Stripe", "data-focus": "stripe" },
    detailed.map((index) =>
      h("option", { value: index, selected: index === layout.stripe }, `Stripe ${index}`),
    ),
  );
  choice.addEventListener("change", () => void show(Number(choice.value)));

  async function show(stripe: number): Promise<void> {
    try {
      layout = await get<IoLayout>(`/api/runs/${id}/io_layout?stripe=${stripe}`, signal);
    } catch (error) {
      if (!signal.aborted) box.replaceChildren(failure(error));
      return;
    }
    replaceQuery({ stripe: String(stripe) });
    choice.value = String(layout.stripe);
    box.replaceChildren(map.element);
    strip.redraw();
    map.redraw();
    onStripe(layout);
  }

  const all: Child =
    plan.known_count > 1
      ? [
          h(
            "p",
            { class: "sub" },
            `${numbers.plural(plan.known_count, "stripe")} in ${numbers.plural(plan.files_count, "file")}`,
          ),
          strip.element,
        ]
      : null;
  return card({
    key: "io-layout",
    text,
    class: "layout",
    chart: [totals(plan), all, says, box],
    legend: legend(FATES),
    controls: detailed.length > 1 ? choice : null,
    table: () => tableOf(layout),
  });
}
