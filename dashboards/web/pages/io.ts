// IO layout: what of the table's file a run reads, reads over and skips, and which requests are slow.
import { current } from "../address";
import { get, getOr } from "../api";
import { emptyCards, guarded, plainCard } from "../cards/card";
import { fileLayoutCard } from "../cards/file_layout";
import { ioLatencyCard } from "../cards/io_latency";
import { layoutColumnsCard } from "../cards/layout_columns";
import { h } from "../element";
import type { CardText, IoLatency, IoLayout, Report } from "../types";
import type { Context, Shown } from "./context";
import { runTitle, showRun } from "./frame";

export async function io({ id, signal }: Context): Promise<Shown> {
  const at = `/api/runs/${id}`;
  const stripe = current().query.get("stripe");
  const wanted = stripe !== null && /^\d{1,9}$/.test(stripe) ? `?stripe=${stripe}` : "";
  const [report, layout, latency] = await Promise.all([
    get<Report>(`${at}/report?brief=1`, signal),
    getOr<IoLayout | null>(`${at}/io_layout${wanted}`, null, signal),
    getOr<IoLatency | null>(`${at}/io_latency`, null, signal),
  ]);
  const columns = h("div");
  const showColumns = (shown: IoLayout) => {
    const made = guarded(layout?.columns_card, "layout-columns", (text) =>
      layoutColumnsCard(shown, text),
    );
    columns.replaceChildren(...(made ? [made] : []));
  };
  const empty = [layout?.card, latency?.card].filter((text): text is CardText =>
    Boolean(text?.empty),
  );
  const body =
    empty.length === 2
      ? emptyCards(empty)
      : [
          guarded(layout?.card, "io-layout", (text) =>
            fileLayoutCard(id, layout as IoLayout, text, signal, showColumns),
          ),
          columns,
          guarded(latency?.card, "io-latency", (text) => ioLatencyCard(latency as IoLatency, text)),
        ];
  if (layout && !layout.card.empty) showColumns(layout);
  columns.hidden = columns.childElementCount === 0;
  return {
    title: `IO layout of ${runTitle(report)}`,
    body: [
      h("h1", { class: "vh" }, `IO layout of ${report.run.name || `run ${id}`}`),
      layout || latency
        ? body
        : plainCard("What of the file is read?", "This recording does not say what was read."),
    ],
    after: () => showRun(report),
  };
}
