// How the rate of each pipeline went from run to run.
import { trend } from "../charts/trend";
import { fitted, h } from "../element";
import * as numbers from "../numbers";
import type { Trends } from "../types";
import { card, emptyCard } from "./card";
import type { Cell } from "./table";

export const shortPath = (path: string) => path.split("/").slice(-2).join("/");

const QUESTION = "How did the rate go from run to run?";

export function trendsCard({ trends, answer, command }: Trends): HTMLElement | null {
  if (trends.length === 0)
    return answer ? emptyCard({ question: QUESTION, empty: answer, command }, "trends") : null;
  const several = trends.length > 1;
  return card({
    key: "trends",
    text: {
      question: QUESTION,
      answer,
      read: [
        "A dot is a run, the last one is the largest. A dotted line is where another version begins.",
        "Runs of one pipeline with the same settings are one chart. Runs of comparisons are not in it.",
      ],
    },
    chart: h(
      "div",
      { class: several ? "multiples wide" : "" },
      trends.map((each) => {
        const name = shortPath(each.pipeline);
        const label = `Rate of ${numbers.plural(each.runs.length, "run")} of ${name}. ${each.text}`;
        return h(
          "div",
          { class: "multiple" },
          h(
            "p",
            null,
            h("b", null, name),
            h("span", { class: "dim" }, numbers.plural(each.runs.length, "run")),
          ),
          answer === each.text ? null : h("p", { class: "trendtext" }, each.text),
          each.settings
            ? h("p", { class: "dim settings" }, each.settings.replace(/\n/g, ", "))
            : null,
          fitted((width) => trend(width, several ? 76 : 110, each.runs, label)),
        );
      }),
    ),
    table: () => ({
      columns: [
        { title: "pipeline" },
        { title: "settings" },
        { title: "run", format: String },
        { title: "name" },
        { title: "tags" },
        { title: "version" },
        { title: "started", format: numbers.moment },
        { title: "rows/s", format: numbers.rateNumber },
      ],
      rows: trends.flatMap((each) =>
        each.runs.map((run): Cell[] => [
          each.pipeline,
          each.settings,
          run.id,
          run.name,
          run.tags,
          run.version,
          run.started_seconds,
          run.rows_per_second,
        ]),
      ),
    }),
  });
}
