#include "reader/dwrf/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/registry.h"
#include "reader/dwrf/codec.h"
#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/column_reader.h"

namespace headrace::reader::dwrf {
namespace {

// Rows of a stripe that needs no byte per row (all null, empty maps); more are believed only if
// bytes say so.
constexpr uint64_t kMaxRowsWithoutBytes = uint64_t{1} << 33;

// One output column: a top-level node, and the keys to keep of its maps.
struct Selected {
  uint32_t node = 0;
  std::string name;
  bool all_keys = true;
  KeyFilter keys;
};

// Copies the subtree of `id`, giving new ids in pre-order.
void CopyNodes(const Schema& from, uint32_t id, std::vector<SchemaNode>* nodes) {
  const size_t at = nodes->size();
  nodes->push_back({from.node(id).kind, 0, 0, 0, {}, from.node(id).field_names});
  for (uint32_t child : from.node(id).children) {
    (*nodes)[at].children.push_back(static_cast<uint32_t>(nodes->size()));
    CopyNodes(from, child, nodes);
  }
}

Error UnknownColumn(const FileReader& file, const std::string& name) {
  const std::string nearest = NearestName(name, file.schema().ColumnNames());
  return Error(ExitCode::kUsage, fmt::format("no column '{}'", Printable(name)),
               file.source().name(),
               nearest.empty() ? "'headrace inspect' lists the columns"
                               : fmt::format("did you mean '{}'?", nearest));
}

// The columns of one stripe from its first row on, as far as read.
class StripeRows {
 public:
  StripeRows(std::shared_ptr<const FileReader> file, std::shared_ptr<const Stripe> stripe,
             const RowReaderOptions& options, uint64_t* unpacked_bytes = nullptr) {
    context_.file = std::move(file);
    context_.stripe = std::move(stripe);
    context_.unpacked_bytes = unpacked_bytes;
    context_.budget = &budget_;
    context_.max_dictionary_bytes = options.max_row_bytes;
    context_.timestamp_base = options.timestamp_base;
    max_row_bytes_ = options.max_row_bytes;
    stride_rows_ = context_.file->tail().footer.row_index_stride();
    CheckRows();
  }
  StripeRows(const StripeRows&) = delete;
  StripeRows& operator=(const StripeRows&) = delete;

  void Add(const Selected& column) {
    columns_.push_back(
        MakeColumnReader(&context_, column.node, column.all_keys ? nullptr : &column.keys));
    needs_strides_ = needs_strides_ || columns_.back()->NeedsStrides();
  }
  void AddNulls() { columns_.push_back(MakeNullReader(&context_)); }

  const Stripe& stripe() const { return *context_.stripe; }
  uint64_t rows() const { return context_.stripe->rows; }
  uint64_t row() const { return row_; }

  // Appends up to `max_rows` rows, at least one, to `out`, whose children are the columns added.
  void Read(uint64_t max_rows, uint64_t max_bytes, Column* out, const Column& empty) {
    uint64_t want = std::min({max_rows, rows() - row_, guess_});
    for (;;) {
      for (auto& column : columns_) column->Mark();
      const uint64_t marked_row = row_, marked_stride = begun_stride_;
      budget_.left = want == 1 ? std::max(max_bytes, max_row_bytes_) : max_bytes;
      const uint64_t allowed = budget_.left;
      *out = empty;
      try {
        ReadRows(want, out);
        const uint64_t used = allowed - budget_.left;
        // Twice as many next time unless that would pass the limit; halving later costs a second
        // decode.
        guess_ = used == 0
                     ? want * 2
                     : std::min(want * 2, std::max<uint64_t>(1, want * (max_bytes / 4 * 3) /
                                                                    std::max<uint64_t>(used, 1)));
        if (want > UINT64_MAX / std::max<uint64_t>(max_bytes, 1)) guess_ = want;
        guess_ = std::max<uint64_t>(guess_, 1);
        return;
      } catch (const BatchTooLarge&) {
        for (auto& column : columns_) column->Rewind();
        row_ = marked_row;
        begun_stride_ = marked_stride;
        if (want == 1) {
          throw Error(ExitCode::kResources,
                      fmt::format("row {} takes more than {} bytes in memory",
                                  stripe().first_row + row_, max_row_bytes_),
                      context_.file->source().name(), "leave its column out, or raise the limit");
        }
        want = std::max<uint64_t>(1, want / 8);
      }
    }
  }

  void Skip(uint64_t count) {
    ForEachStride(count, [&](uint64_t n) {
      for (auto& column : columns_) column->Skip(n);
    });
  }
  // Continues at the first row of a stride; on failure this object is unusable.
  void SeekToStride(uint64_t stride) {
    for (auto& column : columns_) column->Seek(stride);
    row_ = stride * stride_rows_;
  }
  uint64_t stride_rows() const { return stride_rows_; }

 private:
  void CheckRows() const {
    const FileTail& tail = context_.file->tail();
    const Stripe& s = stripe();
    const uint64_t bytes =
        MaxExpansion(tail.compression, s.index_length + s.data_length, tail.block_size);
    // 130 bytes of 8 bits per 2 bytes of a boolean stream.
    const uint64_t most = bytes > UINT64_MAX / 1040 ? UINT64_MAX : bytes * 520;
    if (s.rows > most && s.rows > kMaxRowsWithoutBytes) {
      throw Error(ExitCode::kBadData,
                  fmt::format("stripe {} claims {} rows in {} bytes", s.index, s.rows,
                              s.index_length + s.data_length),
                  fmt::format("{}: byte {}", context_.file->source().name(), s.offset),
                  "the file is damaged");
    }
  }
  void ReadRows(uint64_t count, Column* out) {
    budget_.Charge(count, 8);
    ForEachStride(count, [&](uint64_t n) {
      for (size_t c = 0; c < columns_.size(); ++c) columns_[c]->Read(n, &out->children[c]);
    });
    out->rows += count;
  }
  // Calls step(n) for portions that end at stride borders, where any reader cares.
  template <typename Step>
  void ForEachStride(uint64_t count, Step step) {
    while (count > 0) {
      uint64_t n = count;
      if (needs_strides_) {
        const uint64_t stride = stride_rows_ == 0 ? 0 : row_ / stride_rows_;
        if (stride != begun_stride_) {
          for (auto& column : columns_) column->BeginStride(stride);
          begun_stride_ = stride;
        }
        if (stride_rows_ != 0) n = std::min(n, stride_rows_ - row_ % stride_rows_);
      }
      step(n);
      row_ += n;
      count -= n;
    }
  }

  StripeContext context_;
  Budget budget_;
  std::vector<std::unique_ptr<ColumnReader>> columns_;
  bool needs_strides_ = false;
  uint64_t max_row_bytes_ = 0, stride_rows_ = 0, row_ = 0, begun_stride_ = UINT64_MAX, guess_ = 64;
};

}  // namespace

ColumnSelection ColumnSelection::Parse(const std::string& text, const Schema& schema) {
  const std::vector<std::string> names = schema.ColumnNames();
  const size_t bracket = text.find('[');
  if (std::find(names.begin(), names.end(), text) != names.end() || bracket == std::string::npos ||
      text.back() != ']') {
    return {text, true, {}};
  }
  ColumnSelection selection{text.substr(0, bracket), false, {}};
  const std::string key = text.substr(bracket + 1, text.size() - bracket - 2);
  const std::optional<uint32_t> node = schema.FindColumn(selection.column);
  if (!node) {
    const std::string nearest = NearestName(selection.column, names);
    throw Error(ExitCode::kUsage, fmt::format("no column '{}'", Printable(selection.column)), {},
                nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
  }
  if (schema.node(*node).kind != TypeKind::kMap) {
    throw Error(ExitCode::kUsage,
                fmt::format("column '{}' is a {}, only maps have keys", Printable(selection.column),
                            TypeKindName(schema.node(*node).kind)));
  }
  const TypeKind key_kind = schema.node(schema.node(*node).children[0]).kind;
  if (!IsInteger(key_kind)) {
    selection.keys.push_back(MapKey::Of(key));
    return selection;
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size()) {
    throw Error(ExitCode::kUsage, fmt::format("key '{}' of column '{}' is not an integer",
                                              Printable(key), Printable(selection.column)));
  }
  selection.keys.push_back(MapKey::Of(number));
  return selection;
}

struct RowReader::State {
  std::shared_ptr<const FileReader> file;
  RowReaderOptions options;
  std::vector<Selected> columns;
  Schema schema;
  Column empty;
  size_t end_stripe = 0;
  size_t next_stripe = 0;     // to open when `rows` is used up
  uint64_t skip_in_next = 0;  // rows to pass over there
  uint64_t unpacked_bytes = 0;
  std::unique_ptr<StripeRows> rows;
  std::vector<std::unique_ptr<Selected>>
      kept;  // what skip_bad left of the columns; `rows` refers to it

  // Uncompressed files of one writer have wrong positions where a string is longer than its buffer
  // (FORMAT 19.30).
  bool TrustsPositions() const {
    if (file->tail().compression != CompressionKind::kNone) return true;
    for (const proto::UserMetadataItem& item : file->tail().footer.metadata()) {
      if (item.name() == "orc.writer.name" && item.value() == "presto") return false;
    }
    return true;
  }
  void Select();
  std::unique_ptr<StripeRows> Open(size_t index);
  void Position(uint64_t row_in_stripe);
  void CheckReadable(uint32_t node) const {
    file->keys().CheckReadable(file->schema(), node, file->source().name());
  }
  // The parts of `column` in the stripe that can be read whole; false: none.
  bool KeepReadable(const std::shared_ptr<const Stripe>& stripe, Selected* column) const;
  bool CanRead(const std::shared_ptr<const Stripe>& stripe, const Selected& column,
               std::string* why) const;
  void Report(const std::string& what) const {
    if (options.on_skip) options.on_skip(what);
  }
  std::string StripeName(size_t index) const {
    return fmt::format("{}: stripe {}", file->source().name(), index);
  }
};

void RowReader::State::Select() {
  const Schema& s = file->schema();
  std::vector<ColumnSelection> wanted = options.columns;
  if (wanted.empty()) {
    for (uint32_t child : s.root().children) {
      CheckReadable(child);
      columns.push_back({child, s.root().field_names[columns.size()], true, {}});
    }
  }
  for (ColumnSelection& selection : wanted) {
    const std::optional<uint32_t> node = s.FindColumn(selection.column);
    if (!node) throw UnknownColumn(*file, selection.column);
    CheckReadable(*node);
    auto same = std::find_if(columns.begin(), columns.end(),
                             [&](const Selected& c) { return c.node == *node; });
    if (same == columns.end()) {
      const auto& ids = s.root().children;
      const auto place = std::find(ids.begin(), ids.end(), *node) - ids.begin();
      columns.push_back({*node, s.root().field_names[static_cast<size_t>(place)],
                         selection.all_keys, std::move(selection.keys)});
      continue;
    }
    same->all_keys = same->all_keys || selection.all_keys;
    for (MapKey& key : selection.keys) {
      if (std::find(same->keys.begin(), same->keys.end(), key) == same->keys.end())
        same->keys.push_back(std::move(key));
    }
  }
  std::vector<SchemaNode> nodes(1);
  for (const Selected& column : columns) {
    nodes[0].field_names.push_back(column.name);
    nodes[0].children.push_back(static_cast<uint32_t>(nodes.size()));
    CopyNodes(s, column.node, &nodes);
  }
  schema = Schema(std::move(nodes));
  empty = EmptyColumn(schema, 0);
}

bool RowReader::State::CanRead(const std::shared_ptr<const Stripe>& stripe, const Selected& column,
                               std::string* why) const {
  try {
    StripeRows rows(file, stripe, options);
    rows.Add(column);
    Column none, scratch;
    none.children.push_back(EmptyColumn(file->schema(), column.node));
    while (rows.row() < rows.rows()) rows.Read(4096, 8 << 20, &scratch, none);
    return true;
  } catch (const Error& error) {
    *why = error.what();
    return false;
  }
}

bool RowReader::State::KeepReadable(const std::shared_ptr<const Stripe>& stripe,
                                    Selected* column) const {
  std::string why;
  if (CanRead(stripe, *column, &why)) return true;
  const std::span<const FlatKey> keys = stripe->FlatKeys(column->node);
  Selected part{column->node, column->name, false, {}};
  if (keys.empty() || !CanRead(stripe, part, &why)) {
    Report(fmt::format("stripe {}: left out column '{}': {}", stripe->index,
                       Printable(column->name), why));
    return false;
  }
  Selected whole{column->node, column->name, false, {}};
  for (const FlatKey& key : keys) {
    if (!column->all_keys &&
        std::find(column->keys.begin(), column->keys.end(), key.key) == column->keys.end())
      continue;
    part.keys = {key.key};
    if (CanRead(stripe, part, &why)) {
      whole.keys.push_back(key.key);
    } else {
      Report(fmt::format("stripe {}: left out key {} of column '{}': {}", stripe->index,
                         key.key.ToString(), Printable(column->name), why));
    }
  }
  *column = std::move(whole);
  return true;
}

std::unique_ptr<StripeRows> RowReader::State::Open(size_t index) {
  if (options.verify_checksums) file->VerifyChecksum(index);
  const std::shared_ptr<const Stripe> stripe = file->ReadStripe(index);
  auto opened = std::make_unique<StripeRows>(file, stripe, options, &unpacked_bytes);
  for (Selected& column : columns) {
    if (!options.skip_bad) {
      opened->Add(column);
      continue;
    }
    Selected readable = column;
    if (KeepReadable(stripe, &readable)) {
      kept.push_back(std::make_unique<Selected>(std::move(readable)));
      opened->Add(*kept.back());
    } else {
      opened->AddNulls();
    }
  }
  return opened;
}

// Moves `rows`, freshly opened, to a row of its stripe.
void RowReader::State::Position(uint64_t row_in_stripe) {
  const uint64_t stride_rows = rows->stride_rows();
  if (stride_rows != 0 && row_in_stripe >= stride_rows && TrustsPositions()) {
    try {
      rows->SeekToStride(row_in_stripe / stride_rows);
      rows->Skip(row_in_stripe - rows->row());
      return;
    } catch (const Error&) {
      if (options.strict_seeks) throw;
      // Some writers left wrong positions behind; reading from the start is right all the same.
      rows = Open(rows->stripe().index);
    }
  }
  rows->Skip(row_in_stripe - rows->row());
}

RowReader::RowReader(std::shared_ptr<const FileReader> file, RowReaderOptions options)
    : state_(std::make_unique<State>()) {
  state_->file = std::move(file);
  state_->options = std::move(options);
  const size_t stripes = state_->file->num_stripes();
  state_->next_stripe = std::min(state_->options.first_stripe, stripes);
  state_->end_stripe =
      state_->next_stripe + std::min(state_->options.num_stripes, stripes - state_->next_stripe);
  state_->Select();
}

RowReader::~RowReader() = default;

const Schema& RowReader::schema() const { return state_->schema; }

uint64_t RowReader::unpacked_bytes() const { return state_->unpacked_bytes; }

uint64_t RowReader::row() const {
  const State& s = *state_;
  if (s.rows && s.rows->row() < s.rows->rows()) return s.rows->stripe().first_row + s.rows->row();
  return s.file->first_row(s.next_stripe) + s.skip_in_next;
}

void RowReader::SeekToRow(uint64_t row) {
  State& s = *state_;
  if (row > s.file->num_rows()) {
    throw Error(ExitCode::kUsage, fmt::format("row {} of {}", row, s.file->num_rows()),
                s.file->source().name());
  }
  s.rows.reset();
  s.next_stripe = 0;
  while (s.next_stripe < s.file->num_stripes() && s.file->first_row(s.next_stripe + 1) <= row)
    ++s.next_stripe;
  s.skip_in_next = row - s.file->first_row(s.next_stripe);
}

bool RowReader::NextBatch(uint64_t max_rows, uint64_t max_bytes, Column* out) {
  State& s = *state_;
  while (!s.rows || s.rows->row() == s.rows->rows()) {
    s.rows.reset();
    s.kept.clear();
    if (s.next_stripe >= s.end_stripe) {
      *out = s.empty;
      return false;
    }
    const size_t index = s.next_stripe++;
    const uint64_t skip = s.skip_in_next;
    s.skip_in_next = 0;
    if (s.file->first_row(index + 1) == s.file->first_row(index)) continue;
    try {
      s.rows = s.Open(index);
      if (skip > 0) s.Position(skip);
    } catch (const Error& error) {
      if (!s.options.skip_bad) throw;
      s.rows.reset();
      s.Report(fmt::format("left out stripe {}, rows {} to {}: {}", index, s.file->first_row(index),
                           s.file->first_row(index + 1) - 1, error.what()));
    }
  }
  s.rows->Read(std::max<uint64_t>(max_rows, 1), max_bytes, out, s.empty);
  return true;
}

}  // namespace headrace::reader::dwrf
