// The layout of the table that a run read.
#include "collectors/store/store.h"

namespace headrace::collectors {

void RunStore::SetLayout(int64_t run_id, const LayoutRows& layout) {
  Transaction transaction(database_);
  for (const char* table : {"layouts", "layout_stripes", "layout_streams", "layout_reads"}) {
    Statement(database_, std::string("DELETE FROM ") + table + " WHERE run_id = ?1")
        .Bind(run_id)
        .Run();
  }
  const bool known = layout.reason.empty();
  Statement head(database_,
                 "INSERT INTO layouts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  head.Bind(run_id);
  if (known) {
    head.BindNull();
  } else {
    head.Bind(std::string_view(layout.reason));
  }
  for (const int64_t value :
       {layout.gap_bytes, layout.most_read_bytes, int64_t{layout.whole_stripes}, layout.files_count,
        layout.file_bytes, layout.stripes_count, static_cast<int64_t>(layout.stripes.size()),
        layout.features_count, layout.columns_count, layout.detailed_stripes_count,
        layout.stored_features_count, layout.used_features_count, layout.stored_features_bytes,
        layout.used_features_bytes}) {
    head.Bind(known ? std::optional(value) : std::nullopt);
  }
  head.Run();
  for (const LayoutStripeRow& row : layout.stripes) {
    Prepared("INSERT INTO layout_stripes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")
        .Bind(run_id)
        .Bind(row.stripe_index)
        .Bind(std::string_view(row.file))
        .Bind(row.offset_bytes)
        .Bind(row.stored_bytes)
        .Bind(row.rows_count)
        .Bind(row.streams_count)
        .Bind(row.wanted_streams_count)
        .Bind(row.wanted_bytes)
        .Bind(row.over_read_bytes)
        .Bind(row.reads_count)
        .Run();
  }
  for (const LayoutStreamRow& row : layout.streams) {
    Prepared("INSERT INTO layout_streams VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")
        .Bind(run_id)
        .Bind(row.stripe_index)
        .Bind(row.offset_bytes)
        .Bind(row.stored_bytes)
        .Bind(std::string_view(row.area))
        .Bind(std::string_view(row.column_name))
        .Bind(std::string_view(row.feature_key))
        .Bind(row.streams_count)
        .Bind(row.wanted_bytes)
        .Bind(row.over_read_bytes)
        .Run();
  }
  for (const LayoutReadRow& row : layout.reads) {
    Prepared("INSERT INTO layout_reads VALUES (?1, ?2, ?3, ?4, ?5)")
        .Bind(run_id)
        .Bind(row.stripe_index)
        .Bind(row.offset_bytes)
        .Bind(row.read_bytes)
        .Bind(row.wanted_bytes)
        .Run();
  }
  transaction.Commit();
}

}  // namespace headrace::collectors
