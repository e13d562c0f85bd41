#include "reader/dwrf/file_writer.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/dwrf.pb.h"
#include "reader/dwrf/stripe_writer.h"

namespace headrace::reader::dwrf {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are stored as they lie in memory");

constexpr uint64_t kFullCheckRows = 256;  // a stripe is tested for being full at multiples of it
constexpr uint32_t kWriterVersion = 4;
constexpr uint32_t kChecksumXxhash = 4;
constexpr uint32_t kCacheNone = 0, kCacheBoth = 3;

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Copies of the stripes' index areas and footers, in the order of the file, up to a size limit.
class StripeCache {
 public:
  explicit StripeCache(const WriterOptions& options)
      : limit_(options.stripe_cache ? std::min<uint64_t>(options.stripe_cache_bytes, UINT32_MAX)
                                    : 0),
        full_(!options.stripe_cache) {}
  void Add(std::span<const uint8_t> section) {
    // Sections are found by their number: after one that is left out none can follow.
    full_ = full_ || bytes_.size() + section.size() > limit_;
    if (full_) return;
    bytes_.Append(section);
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  bool empty() const { return bytes_.size() == 0; }
  std::span<const uint8_t> bytes() const { return bytes_.span(); }
  const std::vector<uint32_t>& offsets() const { return offsets_; }

 private:
  uint64_t limit_;
  bool full_;
  ByteSink bytes_;
  std::vector<uint32_t> offsets_ = {0};
};

}  // namespace

struct FileWriter::State {
  State(const std::string& path, Schema file_schema, WriterOptions options, bool replace)
      : schema(std::move(file_schema)),
        policy(schema, std::move(options)),
        encryptor(policy.options()),
        output(std::in_place, path, replace),
        stripe(schema, policy, encryptor),
        cache(policy.options()),
        statistics(schema.size()),
        stored_bytes(schema.size()) {
    layout.goal = policy.options().goal;
    layout.nodes.resize(schema.size());
  }

  // Calls append(begin, end) for pieces after each of which a stripe may end.
  template <class Function>
  void ForPieces(uint64_t rows, Function append);
  bool StripeIsFull() const;
  void WriteStripe();
  void ChooseCodec();
  void FillFooter(proto::Footer* out) const;
  void FillEncryption(std::vector<proto::ColumnStatistics> statistics,
                      proto::Encryption* out) const;
  uint64_t SubtreeBytes(uint32_t node) const;

  const Schema schema;
  LayoutPolicy policy;
  const Encryptor encryptor;
  std::optional<AtomicFile> output;
  StripeWriter stripe;
  StripeCache cache;
  std::vector<StatisticsBuilder> statistics;  // per node
  std::vector<uint64_t> stored_bytes;         // per node
  LayoutChoice layout;
  proto::Footer footer;  // its stripes
  uint64_t rows = 0;     // with those of the stripe being filled
};

FileWriter::FileWriter(const std::string& path, Schema schema, WriterOptions options,
                       bool replace) {
  if (schema.size() == 0 || schema.root().kind != TypeKind::kStruct)
    throw Error(ExitCode::kUsage, "a table's schema is a struct", path);
  state_ = std::make_unique<State>(path, std::move(schema), std::move(options), replace);
  state_->output->Write("ORC");
}

FileWriter::~FileWriter() = default;

const Schema& FileWriter::schema() const { return state_->schema; }
uint64_t FileWriter::rows() const { return state_->rows; }

bool FileWriter::State::StripeIsFull() const {
  const WriterOptions& options = policy.options();
  if (options.stripe_rows > 0) return stripe.rows() >= options.stripe_rows;
  return stripe.rows() % kFullCheckRows == 0 && stripe.raw_bytes() >= options.stripe_bytes;
}

template <class Function>
void FileWriter::State::ForPieces(uint64_t count, Function append) {
  const uint64_t stripe_rows = policy.options().stripe_rows;
  for (uint64_t begin = 0; begin < count;) {
    const uint64_t room = stripe_rows > 0 ? stripe_rows - stripe.rows()
                                          : kFullCheckRows - stripe.rows() % kFullCheckRows;
    const uint64_t end = begin + std::min(room, count - begin);
    append(begin, end);
    rows += end - begin;
    begin = end;
    if (StripeIsFull()) WriteStripe();
  }
}

void FileWriter::Write(const Column& batch) {
  State& s = *state_;
  CheckColumn(s.schema, 0, batch);
  if (std::any_of(batch.present.begin(), batch.present.end(), [](uint8_t p) { return p == 0; }))
    throw Error(ExitCode::kBadData, "a row of the table is null", "batch");
  s.ForPieces(batch.rows,
              [&](uint64_t begin, uint64_t end) { s.stripe.Append(batch, begin, end); });
}

void FileWriter::WriteFlat(const FlatBatch& batch) {
  State& s = *state_;
  const SchemaNode& root = s.schema.root();
  std::vector<const FlatColumn*> columns(root.children.size(), nullptr);
  for (const FlatColumn& column : batch.columns) {
    const auto field = std::find(root.field_names.begin(), root.field_names.end(), column.name);
    if (field == root.field_names.end())
      throw Error(ExitCode::kUsage, fmt::format("the schema has no column '{}'", column.name),
                  "batch");
    const FlatColumn*& place = columns[static_cast<size_t>(field - root.field_names.begin())];
    if (place != nullptr)
      throw Error(ExitCode::kUsage, fmt::format("column '{}' is given twice", column.name),
                  "batch");
    place = &column;
  }
  std::vector<std::vector<FlatCursor>> cursors;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == nullptr)
      throw Error(ExitCode::kUsage, fmt::format("column '{}' is missing", root.field_names[i]),
                  "batch");
    CheckFlatColumn(s.schema, s.policy, root.children[i], *columns[i], batch.rows);
    cursors.emplace_back(columns[i]->features.size());
  }
  s.ForPieces(batch.rows, [&](uint64_t begin, uint64_t end) {
    s.stripe.AppendFlat(columns, &cursors, begin, end);
  });
}

void FileWriter::EndStripe() {
  if (state_->stripe.rows() > 0) state_->WriteStripe();
}

void FileWriter::State::ChooseCodec() {
  const LayoutGoal goal = policy.options().goal;
  if (goal == LayoutGoal::kFixed || !policy.options().choose_codec) return;
  for (const CompressionKind kind :
       {CompressionKind::kZstd, CompressionKind::kLz4, CompressionKind::kNone}) {
    LayoutPolicy candidate = policy;
    candidate.SetCompression(kind);
    layout.tried.emplace_back(kind, stripe.Try(candidate));
  }
  const auto& tried = layout.tried;
  const auto least = std::min_element(
      tried.begin(), tried.end(),
      [&](const auto& a, const auto& b) { return a.second.At(goal) < b.second.At(goal); });
  policy.SetCompression(least->first);
  stripe.UseCodec();
}

void FileWriter::State::WriteStripe() {
  if (footer.stripes_size() == 0) ChooseCodec();
  const uint64_t offset = output->size();
  const EncodedStripe encoded = stripe.Finish(&statistics, &stored_bytes, &layout.nodes);
  auto* info = footer.add_stripes();
  info->set_offset(offset);
  info->set_index_length(encoded.index.size());
  info->set_data_length(encoded.data.size());
  info->set_footer_length(encoded.footer.size());
  info->set_number_of_rows(encoded.rows);
  info->set_raw_data_size(encoded.raw_bytes);
  if (footer.stripes_size() == 1)  // the stripes after it use the same keys
    for (const std::string& metadata : encryptor.key_metadata()) info->add_key_metadata(metadata);
  XXH64_state_t hash;
  XXH64_reset(&hash, 0);
  for (const ByteSink* area : {&encoded.index, &encoded.data, &encoded.footer}) {
    output->Write(area->span());
    if (area->size() > 0) XXH64_update(&hash, area->data(), area->size());
  }
  if (policy.options().checksum) info->set_checksum(static_cast<int64_t>(XXH64_digest(&hash)));
  cache.Add(encoded.index.span());
  cache.Add(encoded.footer.span());
}

uint64_t FileWriter::State::SubtreeBytes(uint32_t node) const {
  uint64_t bytes = 0;
  for (uint32_t i = node; i <= schema.node(node).last; ++i) bytes += stored_bytes[i];
  return bytes;
}

void FileWriter::State::FillFooter(proto::Footer* out) const {
  out->set_header_length(3);
  out->set_content_length(output->size() - 3);
  std::vector<proto::ColumnStatistics> secret(schema.size());  // of encrypted nodes
  for (const SchemaNode& node : schema.nodes()) {
    auto* type = out->add_types();
    type->set_kind(static_cast<uint32_t>(node.kind));
    for (const uint32_t child : node.children) type->add_subtypes(child);
    for (const std::string& name : node.field_names) type->add_field_names(name);
    auto* entry = out->add_statistics();
    statistics[node.id].ToProto(node.kind, entry);
    entry->set_size(SubtreeBytes(node.id));
    if (policy.GroupOf(node.id) == 0) continue;
    // Sizes and counts stay in the open, values do not.
    secret[node.id] = *entry;
    proto::ColumnStatistics open;
    open.set_number_of_values(entry->number_of_values());
    open.set_has_null(entry->has_null());
    open.set_raw_size(entry->raw_size());
    open.set_size(entry->size());
    *entry = std::move(open);
  }
  if (encryptor.num_groups() > 0) FillEncryption(std::move(secret), out->mutable_encryption());
  for (const auto& [name, value] : policy.Metadata()) {
    auto* item = out->add_metadata();
    item->set_name(name);
    item->set_value(value);
  }
  out->set_number_of_rows(rows);
  out->set_row_index_stride(policy.options().row_index_stride);
  out->set_raw_data_size(statistics[0].raw_bytes);
  if (!cache.empty())
    for (const uint32_t at : cache.offsets()) out->add_stripe_cache_offsets(at);
  out->set_checksum_algorithm(policy.options().checksum ? kChecksumXxhash : 0);
}

void FileWriter::State::FillEncryption(std::vector<proto::ColumnStatistics> secret,
                                       proto::Encryption* out) const {
  out->set_key_provider(0);
  for (uint32_t g = 1; g <= encryptor.num_groups(); ++g) {
    proto::EncryptionGroup* group = out->add_encryption_groups();
    group->set_key_metadata(encryptor.key_metadata()[g - 1]);
    for (const uint32_t column : schema.root().children) {
      if (policy.GroupOf(column) != g) continue;
      proto::FileStatistics message;
      for (uint32_t id = column; id <= schema.node(column).last; ++id)
        *message.add_statistics() = std::move(secret[id]);
      ChunkPlace place;
      place.stripe = kStatisticsStripe;
      place.ordinal = static_cast<uint32_t>(group->nodes_size());
      const ChunkSeal seal = encryptor.Seal(g, place);
      ByteSink stored;
      ChunkEncoder(policy.options())
          .Encode(AsBytes(message.SerializeAsString()), true, &stored, &seal);
      group->add_nodes(column);
      group->add_statistics(stored.data(), stored.size());
    }
  }
}

WrittenFile FileWriter::Close(bool sync) {
  EndStripe();
  State& s = *state_;
  s.FillFooter(&s.footer);
  s.output->Write(s.cache.bytes());
  ByteSink stored;
  ChunkEncoder(s.policy.options()).Encode(AsBytes(s.footer.SerializeAsString()), true, &stored);
  s.output->Write(stored.span());

  proto::PostScript postscript;
  postscript.set_footer_length(stored.size());
  postscript.set_compression(static_cast<uint32_t>(s.policy.options().compression));
  if (s.policy.options().compression != CompressionKind::kNone)
    postscript.set_compression_block_size(s.policy.options().block_size);
  postscript.set_writer_version(kWriterVersion);
  postscript.set_cache_mode(s.cache.empty() ? kCacheNone : kCacheBoth);
  postscript.set_cache_size(static_cast<uint32_t>(s.cache.bytes().size()));
  std::string tail = postscript.SerializeAsString();
  tail.push_back(static_cast<char>(tail.size()));
  s.output->Write(tail);
  s.layout.compression = s.policy.options().compression;
  s.layout.stripe_rows = s.policy.options().stripe_rows;
  s.layout.rows = s.rows;
  WrittenFile written{s.output->size(), s.rows, s.statistics[0].raw_bytes,
                      static_cast<uint32_t>(s.footer.stripes_size()), std::move(s.layout)};
  s.output->Commit(sync);
  s.output.reset();
  return written;
}

}  // namespace headrace::reader::dwrf
