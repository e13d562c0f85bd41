#include "dashboards/pages/card_json.h"

#include <nlohmann/json.hpp>

namespace headrace::dashboards {

std::string ForRun(std::string sql, int64_t run_id) {
  const std::string mark = "{run}";
  for (size_t at = sql.find(mark); at != std::string::npos; at = sql.find(mark)) {
    sql.replace(at, mark.size(), std::to_string(run_id));
  }
  return sql;
}

nlohmann::ordered_json CardJson(const Card& card, int64_t run_id) {
  nlohmann::ordered_json out = {{"question", card.question}};
  if (card.empty.empty()) {
    out["answer"] = card.answer;
  } else {
    out["empty"] = card.empty;
    out["command"] = card.command;
  }
  out["read"] = card.read;
  if (!card.sql.empty()) out["sql"] = ForRun(card.sql, run_id);
  return out;
}

}  // namespace headrace::dashboards
