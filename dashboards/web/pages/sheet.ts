// The characterization of a run: the figures that studies of data ingestion print of a workload.
import { get } from "../api";
import { card, emptyCards, guarded } from "../cards/card";
import { sheetPartCard, sheetStagesCard } from "../cards/sheet_part";
import { h } from "../element";
import type { CardText, Report, RunCharacterization } from "../types";
import type { Context, Shown } from "./context";
import { runTitle, showRun } from "./frame";

// Its evidence is what the card is for, so it is not folded away.
function limitCard(text: CardText): HTMLElement {
  const words = (text.read ?? []).map((line) => h("p", null, line));
  return card({
    key: "sheet-limit",
    text: { ...text, read: [] },
    chart: h("div", { class: "said" }, words),
    svg: false,
  });
}

export async function sheet({ id, signal }: Context): Promise<Shown> {
  const at = `/api/runs/${id}`;
  const [report, found] = await Promise.all([
    get<Report>(`${at}/report?brief=1`, signal),
    get<RunCharacterization>(`${at}/characterization`, signal),
  ]);
  const parts = found.parts ?? [];
  const empty = parts.filter((part) => part.card.empty);
  return {
    title: `Characterization of ${runTitle(report)}`,
    body: [
      h("h1", { class: "vh" }, `Characterization of ${report.run.name || `run ${id}`}`),
      limitCard(found.card),
      parts
        .filter((part) => !part.card.empty)
        .map((part) => guarded(part.card, part.key, (text) => sheetPartCard(part, text))),
      guarded(found.stages_card, "stages", (text) => sheetStagesCard(found.stages ?? [], text)),
      empty.length > 0 ? emptyCards(empty.map((part) => part.card)) : null,
    ],
    after: () => showRun(report),
  };
}
