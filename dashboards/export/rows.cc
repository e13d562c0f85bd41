#include "dashboards/export/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/terminal_text.h"
#include "collectors/store/embedded_sql.h"
#include "dashboards/export/intervals.h"

namespace headrace::dashboards {
namespace {

using collectors::SqlResult;

bool Holds(const std::vector<std::string>& columns, const char* column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

IntervalQuery CourseOf(const ExportRequest& request) {
  return {request.view, "*", "1", "start_ns"};
}

}  // namespace

std::vector<std::string> ExportedViews() {
  std::vector<std::string> names;
  for (const collectors::SqlFile& view : collectors::ViewFiles()) {
    names.emplace_back(view.name);
  }
  return names;
}

std::vector<std::string> ColumnsOfView(const ExportRequest& request) {
  // The name goes into SQL, so it is one of ours or none.
  const std::vector<std::string> views = ExportedViews();
  if (std::find(views.begin(), views.end(), request.view) == views.end()) {
    const std::string nearest = NearestName(request.view, views);
    throw Error(ExitCode::kUsage, fmt::format("no view '{}'", Printable(request.view, 60)),
                "--view",
                nearest.empty() ? "docs/store.md has the views"
                                : fmt::format("did you mean '{}'?", nearest));
  }
  std::vector<std::string> columns =
      request.store.Query(fmt::format("SELECT * FROM {} LIMIT 0", request.view)).columns;
  if (!request.whole_run() && !Holds(columns, "start_ns")) {
    throw Error(ExitCode::kUsage, fmt::format("view {} is about the whole run", request.view),
                "--view", "leave --since and --until out, or name an interval view");
  }
  return columns;
}

void ForEachRow(const ExportRequest& request,
                const std::function<void(const std::vector<collectors::SqlValue>&)>& visit) {
  const std::vector<std::string> columns = ColumnsOfView(request);
  if (request.part == ExportPart::kFixed) return;
  const auto visit_all = [&](const SqlResult& result) {
    for (const auto& row : result.rows) visit(row);
  };
  if (Holds(columns, "run_id") && Holds(columns, "start_ns")) {
    ForEachPortion(request.store, CourseOf(request), request.run_id, request.since_ns,
                   request.until_ns, visit_all);
  } else if (Holds(columns, "run_id")) {
    visit_all(request.store.Query(fmt::format("SELECT * FROM {} WHERE run_id = ?1", request.view),
                                  {request.run_id}));
  } else {
    visit_all(request.store.Query(fmt::format("SELECT * FROM {}", request.view)));
  }
}

int64_t CountViewRows(const ExportRequest& request) {
  const std::vector<std::string> columns = ColumnsOfView(request);
  if (!Holds(columns, "run_id") || !Holds(columns, "start_ns")) return 0;
  return CountIntervals(request.store, CourseOf(request), request.run_id, request.since_ns,
                        request.until_ns);
}

}  // namespace headrace::dashboards
