// [source]: where elements come from, and how they are read.
#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"
#include "reader/source/open.h"

namespace headrace::reader {

void ParseSource(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("source");
  if (!table) table.Fail("a pipeline needs [source] with a table or synthetic elements");
  table.CheckKeys("[source]",
                  {"table", "synthetic", "epochs", "keys", "coalesce_gap", "coalesce_max", "io",
                   "direct", "depth", "registered", "device", "throttle", "remote", "tier", "fault",
                   "checksum", "on_corrupt", "on_locked", "cold"});
  spec->epochs = table.Count("epochs", 1, 0, UINT64_MAX >> 1);
  spec->gap_is_auto = table["coalesce_gap"].AsText() == "auto";
  if (spec->gap_is_auto)
    table.Text("coalesce_gap", "auto");
  else
    spec->fetch.max_gap_bytes = table.Bytes("coalesce_gap", spec->fetch.max_gap_bytes);
  spec->fetch.max_read_bytes = table.Bytes("coalesce_max", spec->fetch.max_read_bytes);
  spec->io.io = table.IsSecond("io", "pread", "uring") ? IoMethod::kUring : IoMethod::kPread;
  spec->io.direct = table.Flag("direct", false);
  spec->io.depth = static_cast<uint32_t>(table.Count("depth", 16, 1, kMaxDepth));
  spec->io.registered = table.Flag("registered", true);
  ParseDevice(table, spec);
  ParseThrottle(table, spec);
  ParseFault(table, spec);
  spec->verify_checksums = table.Flag("checksum", false);
  spec->cold_reads = table.Flag("cold", false);
  if (spec->cold_reads && spec->io.direct)
    table["cold"].Fail("direct reads go past the page cache: there is nothing to forget");
  spec->skip_corrupt = table.IsSecond("on_corrupt", "error", "skip");
  spec->projection.locked_as_null = table.IsSecond("on_locked", "error", "null");
  spec->keys = table.Text("keys", "");
  if (!spec->keys.empty() && !spec->keys.starts_with("env:")) spec->keys = table.Path(spec->keys);
  ParseRemote(table, spec);
  ParseTier(table, spec);
  const std::string path = table.Text("table", "");
  if (const SpecValue synthetic = table.Table("synthetic")) {
    if (!path.empty()) table["table"].Fail("a source has a table or synthetic elements, not both");
    synthetic.CheckKeys("synthetic", {"elements", "rows", "bytes"});
    SyntheticSource source;
    source.elements = synthetic.Count("elements", 0, 0, UINT64_MAX >> 1);
    source.rows = synthetic.Count("rows", 1, 1, 1u << 30);
    source.bytes = synthetic.Bytes("bytes", source.bytes);
    spec->synthetic = source;
  } else if (path.empty()) {
    table.Fail("a source needs table = \"FOLDER\" or synthetic = { ... }");
  } else {
    spec->table = IsRemote(path) ? path : table.Path(path);
  }
}

}  // namespace headrace::reader
