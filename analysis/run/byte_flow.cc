#include "analysis/run/byte_flow.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace headrace::analysis {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 12> kNames = {
    {{"decrypt", "decrypted"},
     {"decompress", "decompressed"},
     {"decode", "decoded"},
     {"extract", "extracted"},
     {"rowmap", "through row maps"},
     {"transform", "transformed"},
     {"shuffle", "shuffled"},
     {"batch", "batched"},
     {"tensorize", "tensors"},
     {"rebatch", "rebatched"},
     {"serialize", "serialised"},
     {"send", "sent"}}};

std::string NameOf(const OperatorRow& op) {
  for (const auto& [kind, name] : kNames) {
    if (op.kind == kind) return name;
  }
  return "after " + op.name;
}

// Accounts inside an operator: parts of its work, not borders that elements cross.
bool IsPart(const OperatorRow& op) {
  if (op.name.find('.') != std::string::npos) return true;
  return op.kind == "dedup" || op.kind == "cache" || op.kind == "tier" || op.kind == "trainer";
}

class Flow {
 public:
  Flow(const RunView& run, const Doubts& doubts) : run_(run), doubts_(doubts) {}

  std::optional<size_t> FindKind(const std::string& kind) const {
    for (size_t i = 0; i < run_.operators.size(); ++i) {
      if (run_.operators[i].kind == kind && !IsPart(run_.operators[i])) return i;
    }
    return std::nullopt;
  }
  std::optional<size_t> FindName(const std::string& name) const {
    for (size_t i = 0; i < run_.operators.size(); ++i) {
      if (run_.operators[i].name == name) return i;
    }
    return std::nullopt;
  }
  std::string DoubtOf(size_t op) const { return Doubts::Of(doubts_.operators, op); }

  // Adds a border: `bytes` are those of operator `op`; per-row figures use the rows of operator
  // `rows_of`.
  void Add(const std::string& key, const std::string& name, size_t op, size_t rows_of, double bytes,
           const std::string& told_by, const std::string& against) {
    if (const std::string doubt = DoubtOf(op); !doubt.empty()) {
      return AddUnavailable(key, name, doubt, against);
    }
    ByteBorder border{key, name, told_by, {}, {}, {}, {}, against};
    border.bytes = Quantity::Of(bytes, Unit::kBytes, Source::kAccount);
    double rows = static_cast<double>(run_.operators[rows_of].rows_count);
    if (rows <= 0 && doubts_.steps.empty()) rows = static_cast<double>(run_.steps.rows_count);
    border.per_row = rows > 0 ? Quantity::Of(bytes / rows, Unit::kBytes, Source::kAccount)
                              : Quantity::Unavailable("no rows were counted", Unit::kBytes);
    const double seconds = static_cast<double>(run_.run.duration_ns) * 1e-9;
    border.per_second =
        seconds > 0 ? Quantity::Of(bytes / seconds, Unit::kBytesPerSecond, Source::kAccount)
                    : Quantity::Unavailable("no duration was recorded", Unit::kBytesPerSecond);
    const ByteBorder* before = FindBorder(borders_, against);
    border.ratio = before == nullptr
                       ? Quantity::Unavailable("the first boundary that is counted", Unit::kRatio)
                       : Divide(border.per_row, before->per_row, Unit::kRatio);
    borders_.push_back(std::move(border));
  }

  void AddUnavailable(const std::string& key, const std::string& name, const std::string& reason,
                      const std::string& against) {
    borders_.push_back({key, name, "", Quantity::Unavailable(reason, Unit::kBytes),
                        Quantity::Unavailable(reason, Unit::kBytes),
                        Quantity::Unavailable(reason, Unit::kBytesPerSecond),
                        Quantity::Unavailable(reason, Unit::kRatio), against});
  }

  // The last border so far that has figures.
  std::string Last() const {
    for (size_t i = borders_.size(); i-- > 0;) {
      if (borders_[i].key != "over_read" && borders_[i].per_row.available()) return borders_[i].key;
    }
    return "";
  }

  std::vector<ByteBorder>& borders() { return borders_; }

 private:
  const RunView& run_;
  const Doubts& doubts_;
  std::vector<ByteBorder> borders_;
};

double Bytes(int64_t bytes) { return static_cast<double>(bytes); }

void AddFetch(const RunView& run, size_t fetch, Flow* flow) {
  const OperatorRow& row = run.operators[fetch];
  if (const auto stored = flow->FindName(row.name + ".stored")) {
    flow->Add("stored", "stored (whole stripes)", *stored, fetch,
              Bytes(run.operators[*stored].bytes_out_bytes),
              "counter " + run.operators[*stored].name, "");
  } else {
    flow->AddUnavailable("stored", "stored (whole stripes)",
                         "no operator (fetch.stored) counts what a stripe holds besides the "
                         "projection; 'headrace layout TABLE --pipeline FILE' says it",
                         "");
  }
  flow->Add("selected", "selected (projected streams)", fetch, fetch, Bytes(row.bytes_out_bytes),
            "counter " + row.name + ", out", flow->Last());
  if (const auto hit = flow->FindName("tier.hit"); hit && run.operators[*hit].bytes_out_bytes > 0) {
    flow->Add("tier", "of these from the tier", *hit, fetch,
              Bytes(run.operators[*hit].bytes_out_bytes), "counter tier.hit", "selected");
  }
  const auto io = flow->FindName(row.name + ".io");
  if (io && run.operators[*io].bytes_out_bytes > 0) {
    flow->Add("read", "read from the storage", *io, fetch,
              Bytes(run.operators[*io].bytes_out_bytes), "counter " + run.operators[*io].name,
              "selected");
  } else {
    flow->Add("read", "read from the storage", fetch, fetch, Bytes(row.bytes_in_bytes),
              "counter " + row.name + ", in", "selected");
  }
  flow->Add("over_read", "of it over-read (holes, alignment)", fetch, fetch,
            std::max(0.0, Bytes(row.bytes_in_bytes - row.bytes_out_bytes)),
            "counter " + row.name + ", in - out", "read");
}

}  // namespace

const ByteBorder* FindBorder(const std::vector<ByteBorder>& borders, const std::string& key) {
  for (const ByteBorder& border : borders) {
    if (border.key == key) return &border;
  }
  return nullptr;
}

std::vector<ByteBorder> ByteFlow(const RunView& run, const Doubts& doubts) {
  Flow flow(run, doubts);
  bool any = false;
  for (const OperatorRow& op : run.operators) any = any || op.bytes_out_bytes > 0;
  if (!any) return {};
  const std::optional<size_t> fetch = flow.FindKind("fetch");
  const bool fetched = fetch && run.operators[*fetch].bytes_out_bytes > 0;
  if (fetched) {
    AddFetch(run, *fetch, &flow);
  } else {
    flow.AddUnavailable("stored", "stored", "no operator of the kind \"fetch\" counts bytes", "");
  }
  std::string before = fetched ? "selected" : "";
  bool sent = false;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& op = run.operators[i];
    if ((fetched && i == *fetch) || IsPart(op)) continue;
    if (before.empty() && op.bytes_in_bytes > 0) {
      flow.Add("into " + op.name, "into " + op.name, i, i, Bytes(op.bytes_in_bytes),
               "counter " + op.name + ", in", "");
      before = "into " + op.name;
    }
    if (op.bytes_out_bytes <= 0) continue;
    flow.Add(op.name, NameOf(op), i, i, Bytes(op.bytes_out_bytes), "counter " + op.name + ", out",
             before);
    if (flow.borders().back().per_row.available()) before = op.name;
    sent = sent || op.kind == "send";
  }
  if (!sent) {
    flow.AddUnavailable("send", "sent",
                        "no operator \"send\": batches are handed over within the process", before);
  }
  return std::move(flow.borders());
}

std::vector<Duplication> DuplicationOf(const RunView& run, const Doubts& doubts) {
  std::vector<Duplication> groups;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& op = run.operators[i];
    if (op.kind != "dedup") continue;
    const size_t dot = op.name.find('.');
    Duplication group;
    group.group = dot == std::string::npos ? op.name : op.name.substr(dot + 1);
    std::string reason = Doubts::Of(doubts.operators, i);
    if (reason.empty() && op.bytes_out_bytes <= 0) reason = "the group had no bytes";
    if (!reason.empty()) {
      group.factor = Quantity::Unavailable(reason, Unit::kRatio);
      group.bytes_in = group.bytes_out = Quantity::Unavailable(reason, Unit::kBytes);
    } else {
      group.bytes_in = Quantity::Of(Bytes(op.bytes_in_bytes), Unit::kBytes, Source::kAccount);
      group.bytes_out = Quantity::Of(Bytes(op.bytes_out_bytes), Unit::kBytes, Source::kAccount);
      group.factor = Divide(group.bytes_in, group.bytes_out, Unit::kCount);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace headrace::analysis
