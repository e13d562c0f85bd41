#include "dashboards/what_if_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "analysis/model/limits/limit_kind.h"
#include "base/error.h"
#include "base/units.h"
#include "dashboards/json_number.h"
#include "dashboards/rates.h"
#include "dashboards/worths.h"

namespace headrace::dashboards {

std::string WhatIfText(const WhatIfPage& page) {
  const analysis::Prediction& prediction = page.prediction;
  std::string text = fmt::format("run {} as recorded        {}\n", page.run.run.run_id,
                                 RatesText(page.now, page.rows_per_batch));
  text += fmt::format("if {}  {}, 90 % of such predictions within [{}, {}]\n",
                      Printable(fmt::format("{}", fmt::join(page.what_if, " "))),
                      RatesText(prediction.rate, page.rows_per_batch),
                      FormatCount(prediction.interval.low), FormatCount(prediction.interval.high));
  text += fmt::format("gain {:+.0f} % [{:.0f}, {:.0f}]; then limited by {}\n",
                      100 * (prediction.rate / page.now - 1), 100 * page.gain_interval.low,
                      100 * page.gain_interval.high,
                      analysis::Describe(prediction.limits[prediction.binding]));
  if (const std::string dearer = analysis::Words(page.contention, prediction.cpu_cost);
      !dearer.empty()) {
    text += dearer + "\n";
  }
  if (prediction.handing_over_s > 0) {
    text += analysis::HandingOverWords(prediction.handing_over_s) + "\n";
  }
  return text + WorthsText(page.worths);
}

std::string WhatIfJson(const WhatIfPage& page) {
  using Json = nlohmann::ordered_json;
  const analysis::Prediction& prediction = page.prediction;
  Json out;
  out["schema"] = "headrace.what_if/1";
  out["run"] = page.run.run.run_id;
  out["run_name"] = page.run.run.name;
  out["what_if"] = page.what_if;
  out["now"] = RatesJson(page.now, page.rows_per_batch);
  out["predicted"] = RatesJson(prediction.rate, page.rows_per_batch);
  out["predicted"].update(IntervalJson(prediction.interval, 0.9));
  out["predicted"]["cpu_cost_ratio"] = prediction.cpu_cost;
  out["contention"] = {{"each_core_ratio", page.contention.each},
                       {"deviation_ratio", page.contention.deviation},
                       {"runs", page.contention.runs}};
  out["gain_ratio"] = prediction.rate / page.now - 1;
  out["gain_interval"] = IntervalJson(page.gain_interval, 0.9);
  out["limited_by"] = LimitJson(prediction.limits[prediction.binding]);
  out["limits"] = Json::array();
  for (const analysis::Limit& limit : prediction.limits) out["limits"].push_back(LimitJson(limit));
  out["worth_of_more"] = WorthsJson(page.worths);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
