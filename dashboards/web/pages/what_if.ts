// What if the settings were others: every answer is the server's, of the same model that makes the
// plan. A slider that moves asks again, and the last one asked is the one shown.
import { current, replaceQuery } from "../address";
import { ApiError, get, offline, post } from "../api";
import { emptyCard, failure, plainCard } from "../cards/card";
import { command } from "../cards/command";
import { rungName } from "../cards/resource_ladder";
import { ladder } from "../charts/ladder";
import type { Child } from "../element";
import { fitted, h } from "../element";
import * as numbers from "../numbers";
import type { Report, Setting, WhatIf } from "../types";
import type { Context, Shown } from "./context";
import { runTitle, showRun } from "./frame";

const WAIT = 120; // milliseconds after the last move

type Values = Record<string, number>;

// "fetch.parallelism:2,decode.queue:8" in the address.
function fromAddress(settings: readonly Setting[]): Values {
  const values: Values = {};
  for (const part of (current().query.get("set") ?? "").split(",")) {
    const at = part.lastIndexOf(":");
    const setting = settings.find((each) => each.key === part.slice(0, at));
    const value = Number(part.slice(at + 1));
    if (setting && Number.isFinite(value)) {
      values[setting.key] = Math.min(setting.max, Math.max(setting.min, value));
    }
  }
  return values;
}

function toAddress(settings: readonly Setting[], values: Values): void {
  const changed = settings
    .filter((each) => values[each.key] !== each.value)
    .map((each) => `${each.key}:${values[each.key]}`);
  replaceQuery({ set: changed.length > 0 ? changed.join(",") : null });
}

interface Slider {
  element: HTMLElement;
  set(value: number): void;
}

const amount = (value: number, unit: string) => {
  const one = value === 1 ? unit.replace(/s$/, "") : unit;
  return `${numbers.count(value)} ${one}`.trim();
};

function slider(setting: Setting, onMove: (value: number) => void): Slider {
  const id = `set-${setting.key.replace(/\W/g, "-")}`;
  const value = h("b");
  const recorded = h("span", { class: "u" }, `recorded ${numbers.count(setting.value)}`);
  const input = h("input", {
    id,
    type: "range",
    min: setting.min,
    max: setting.max,
    step: 1,
    value: setting.value,
    "data-focus": id,
  });
  const show = () => {
    const text = amount(Number(input.value), setting.unit);
    value.textContent = text;
    input.setAttribute("aria-valuetext", text);
    recorded.hidden = Number(input.value) === setting.value;
  };
  input.addEventListener("input", () => {
    show();
    onMove(Number(input.value));
  });
  show();
  return {
    element: h(
      "div",
      { class: "slider" },
      h(
        "label",
        { for: id },
        h("span", null, setting.title),
        h("span", null, recorded, " ", value),
      ),
      input,
      h(
        "div",
        { class: "ends", "aria-hidden": "true" },
        h("span", null, setting.min),
        h("span", null, setting.max),
      ),
    ),
    set(number) {
      input.value = String(number);
      show();
    },
  };
}

function answerElement(answer: WhatIf, same: boolean): Child {
  const { predicted } = answer;
  const least = answer.limited_by?.name ?? "";
  const limit = rungName(least);
  const rows = (answer.limits ?? []).map((each) => ({
    name: rungName(each.name),
    short: rungName(each.name),
    rate: each.batches_per_second,
    limit: each.name === least,
    note: "",
  }));
  rows.sort((a, b) => (a.rate ?? Infinity) - (b.rate ?? Infinity));
  const lines = { rate: predicted.batches_per_second, rateName: "predicted", wanted: null };
  const gain = answer.gain_interval;
  const unsure =
    gain?.low !== null && gain?.low !== undefined && gain.low <= 0 && (gain.high ?? 0) >= 0;
  const big = (name: string, value: string, more: string, tone = "") =>
    h(
      "div",
      null,
      h("dt", null, name),
      h("dd", { class: tone }, h("b", null, value), h("span", { class: "u" }, ` ${more}`)),
    );
  return [
    h(
      "dl",
      { class: "predicted" },
      big(
        same ? "predicted as recorded" : "predicted",
        numbers.rateNumber(predicted.batches_per_second),
        `batches/s ${numbers.interval(predicted.low, predicted.high)}`,
      ),
      same
        ? null
        : big(
            "against now",
            numbers.change(answer.gain_ratio),
            numbers.percentInterval(gain?.low, gain?.high),
            unsure ? "unsure" : "",
          ),
      big(same ? "limited by" : "then limited by", limit, "", "accent"),
    ),
    answer.text ? h("p", { class: "said" }, answer.text) : null,
    fitted((width) =>
      ladder(width, rows, lines, `What each resource would allow; ${limit} is the least`),
    ),
    answer.command ? command(answer.command, "cmd flat") : null,
  ];
}

function simulator(id: number, settings: Setting[], signal: AbortSignal): Child {
  const recorded: Values = Object.fromEntries(settings.map((each) => [each.key, each.value]));
  const values: Values = { ...recorded, ...fromAddress(settings) };
  const out = h("div", { class: "answerbox" });
  const status = h("p", { class: "vh", role: "status" });
  let asked = new AbortController();
  let timer = 0;

  const ask = async (body: unknown, solved: boolean) => {
    asked.abort();
    asked = new AbortController();
    const own = asked;
    signal.addEventListener("abort", () => own.abort());
    out.setAttribute("aria-busy", "true");
    try {
      const answer = await post<WhatIf>(`/api/runs/${id}/whatif`, body, own.signal);
      if (own.signal.aborted) return;
      if (solved) {
        for (const each of settings) move(each.key, answer.set?.[each.key] ?? each.value);
        toAddress(settings, values);
      }
      out.replaceChildren(...h("div", null, answerElement(answer, isRecorded())).childNodes);
      status.textContent = answer.text ?? "";
    } catch (error) {
      if (own.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      out.replaceChildren(failure(error));
    }
    out.removeAttribute("aria-busy");
  };
  const isRecorded = () => settings.every((each) => values[each.key] === each.value);
  const changed = () =>
    Object.fromEntries(
      settings
        .filter((each) => values[each.key] !== each.value)
        .map((each) => [each.key, values[each.key]]),
    );
  const later = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void ask({ set: changed() }, false), WAIT);
    toAddress(settings, values);
  };
  const sliders = new Map(
    settings.map((each) => [
      each.key,
      slider(each, (value) => {
        values[each.key] = value;
        later();
      }),
    ]),
  );
  function move(key: string, value: number): void {
    values[key] = value;
    sliders.get(key)?.set(value);
  }
  for (const each of settings) move(each.key, values[each.key]);
  const button = (text: string, run: () => void) =>
    h("button", { class: "btn", type: "button", click: run }, text);
  const buttons = h(
    "div",
    { class: "buttons" },
    button("Solve for the best", () => {
      window.clearTimeout(timer);
      void ask({ best: true }, true);
    }),
    button("As recorded", () => {
      for (const each of settings) move(each.key, each.value);
      later();
    }),
  );
  void ask({ set: changed() }, false);
  return h(
    "div",
    { class: "two narrow-left" },
    plainCard(
      "What if?",
      "Settings",
      h(
        "div",
        { class: "sliders" },
        [...sliders.values()].map((each) => each.element),
      ),
      buttons,
    ),
    plainCard("What would it do?", "Prediction", status, out),
  );
}

export async function whatIf({ id, signal }: Context): Promise<Shown> {
  const report = await get<Report>(`/api/runs/${id}/report?brief=1`, signal);
  const question = "What would other settings do?";
  const heading = h("h1", { class: "vh" }, `What if: ${report.run.name || `run ${id}`}`);
  const shown = (body: Child): Shown => ({
    title: `What if: ${runTitle(report)}`,
    body: [heading, body],
    after: () => showRun(report),
  });
  if (offline) {
    const empty = "A file holds no predictions: the server makes them.";
    return shown(emptyCard({ question, empty, command: "headrace serve" }, "what-if"));
  }
  try {
    const { settings } = await get<{ settings: Setting[] }>(`/api/runs/${id}/settings`, signal);
    if (settings.length === 0) {
      return shown(
        emptyCard(
          { question, empty: "This run has no settings that a plan could change." },
          "what-if",
        ),
      );
    }
    return shown(simulator(id, settings, signal));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return shown(plainCard(question, "No prediction for this run.", failure(error)));
  }
}
