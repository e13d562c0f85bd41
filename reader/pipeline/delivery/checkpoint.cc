#include "reader/pipeline/delivery/checkpoint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "headrace.checkpoint/3\n";
constexpr std::string_view kMagicBefore = "headrace.checkpoint/2\n";
constexpr std::string_view kMagicOfRank = "headrace.checkpoint/5\n";
static_assert(kMagic.size() == kMagicBefore.size() && kMagic.size() == kMagicOfRank.size());
constexpr size_t kMagicName = sizeof "headrace.checkpoint/" - 1;  // before the version
constexpr uint64_t kMaxCheckpointBytes = uint64_t{1} << 32;
static_assert(std::endian::native == std::endian::little);

class Writer {
 public:
  void Number(uint64_t value) { text_.append(reinterpret_cast<const char*>(&value), 8); }
  void Bytes(std::string_view bytes) { text_ += bytes; }
  std::string Take() { return std::move(text_); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(ExitCode::kBadData, "is not a checkpoint, or a damaged one: " + what,
                fmt::format("{}: byte {}", name_, at_),
                "without it a run starts from the first row");
  }
  uint64_t left() const { return text_.size() - at_; }
  std::string_view Bytes(uint64_t count) {
    if (count > left()) Fail(fmt::format("{} bytes are announced, {} are left", count, left()));
    const std::string_view bytes = text_.substr(at_, count);
    at_ += count;
    return bytes;
  }
  uint64_t Number() {
    uint64_t value;
    std::memcpy(&value, Bytes(8).data(), 8);
    return value;
  }
  // How many of something follow, each of at least `bytes`.
  uint64_t Count(uint64_t bytes) {
    const uint64_t count = Number();
    if (count > left() / bytes)
      Fail(fmt::format("{} entries are announced, {} bytes are left", count, left()));
    return count;
  }

 private:
  std::string_view text_;
  const std::string& name_;
  uint64_t at_ = 0;
};

uint64_t Hash(std::string_view text) { return XXH64(text.data(), text.size(), 0); }

// The settled rows of an epoch, as version 2 has them.
RowSet PartialOfVersion2(Parser* in) {
  RowSet rows;
  uint64_t end = 0;
  for (uint64_t splits = in->Count(32); splits > 0; --splits) {
    in->Number();  // the split: its rows say it
    for (uint64_t left = in->Count(16); left > 0; --left) {
      const uint64_t first = in->Number(), count = in->Number();
      if (first < end || first > RowSet::kMostRows || count == 0 ||
          count > RowSet::kMostRows - first)
        in->Fail("rows out of order");
      rows.Append({first, count});
      end = first + count;
    }
  }
  return rows;
}

}  // namespace

std::string SerializeCheckpoint(const Checkpoint& checkpoint) {
  Writer out;
  const DeliveryState& delivered = checkpoint.delivered;
  out.Bytes(delivered.closed ? kMagicOfRank : kMagic);
  const Fingerprint& print = checkpoint.fingerprint;
  for (const uint64_t part : {print.table, print.projection, print.transforms, print.seed})
    out.Number(part);
  for (const uint64_t value :
       {checkpoint.splits, checkpoint.batches, checkpoint.rows, delivered.first_epoch})
    out.Number(value);
  if (delivered.closed) {
    out.Number(delivered.closed->rows);
    out.Number(delivered.closed->sum);
  }
  out.Number(delivered.epochs.size());
  for (const auto& [number, epoch] : delivered.epochs) {
    out.Number(number);
    for (const uint64_t word : epoch.done) out.Number(word);
    const std::string partial = epoch.partial.Serialize();
    out.Number(partial.size());
    out.Bytes(partial);
  }
  out.Number(checkpoint.consumer_state.size());
  out.Bytes(checkpoint.consumer_state);
  out.Number(Hash(out.text()));
  return out.Take();
}

Checkpoint ParseCheckpoint(std::string_view text, const std::string& name) {
  Parser in(text, name);
  const bool is_version_2 = text.starts_with(kMagicBefore);
  const bool is_of_rank = text.starts_with(kMagicOfRank);
  if (text.starts_with(kMagic.substr(0, kMagicName)) && !text.starts_with(kMagic) &&
      !is_version_2 && !is_of_rank)
    throw Error(ExitCode::kBadData, "is a checkpoint of another version of headrace", name,
                "go on with that version, or without the checkpoint: the run then starts from the "
                "first row");
  const std::string_view magic = is_version_2 ? kMagicBefore : is_of_rank ? kMagicOfRank : kMagic;
  if (in.left() < magic.size() + 8 || in.Bytes(magic.size()) != magic)
    in.Fail("it does not begin with headrace.checkpoint/3");
  const std::string_view body = text.substr(0, text.size() - 8);
  uint64_t sum;
  std::memcpy(&sum, text.data() + body.size(), 8);
  if (sum != Hash(body)) in.Fail("its checksum differs");
  Checkpoint checkpoint;
  Fingerprint& print = checkpoint.fingerprint;
  for (uint64_t* part : {&print.table, &print.projection, &print.transforms, &print.seed})
    *part = in.Number();
  DeliveryState& delivered = checkpoint.delivered;
  for (uint64_t* value :
       {&checkpoint.splits, &checkpoint.batches, &checkpoint.rows, &delivered.first_epoch})
    *value = in.Number();
  if (is_of_rank) {
    RowTotal& closed = delivered.closed.emplace();
    closed.rows = in.Number();
    closed.sum = in.Number();
  }
  if (checkpoint.splits > UINT64_MAX - 63) in.Fail("too many splits");
  const uint64_t words = (checkpoint.splits + 63) / 64;
  for (uint64_t left = in.Count(16); left > 0; --left) {
    const uint64_t number = in.Number();
    if (!delivered.epochs.empty() && number <= delivered.epochs.rbegin()->first)
      in.Fail("epochs out of order");
    DeliveryState::Epoch& epoch = delivered.epochs[number];
    if (words > in.left() / 8) in.Fail(fmt::format("{} splits do not fit", checkpoint.splits));
    epoch.done.resize(words);
    for (uint64_t& word : epoch.done) word = in.Number();
    if (is_version_2) {
      epoch.partial = PartialOfVersion2(&in);
      continue;
    }
    auto partial = RowSet::Parse(in.Bytes(in.Number()));
    if (!partial) in.Fail("its settled rows are no ranges in order");
    epoch.partial = std::move(*partial);
  }
  checkpoint.consumer_state = in.Bytes(in.Number());
  if (in.left() != 8) in.Fail("bytes are left over");
  return checkpoint;
}

void WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
  AtomicFile file(path, true);
  file.Write(SerializeCheckpoint(checkpoint));
  file.Commit();
}

Checkpoint ReadCheckpoint(const std::string& path) {
  return ParseCheckpoint(ReadWholeFile(path, kMaxCheckpointBytes), path);
}

void RemoveTornCheckpoints(const std::string& path) {
  const fs::path place(path);
  const std::string mine = place.filename().string();
  std::error_code ignored;
  const fs::path folder = place.has_parent_path() ? place.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto unfinished = ParseTemporaryName(entry.path().filename().string());
    if (unfinished && unfinished->name == mine) fs::remove(entry.path(), ignored);
  }
}

void CheckFingerprint(const Fingerprint& saved, const Fingerprint& now, const std::string& path) {
  if (saved == now) return;
  const char* part = saved.table != now.table ? "table"
                     : saved.projection != now.projection
                         ? "projection, filter or set of locked columns"
                     : saved.transforms != now.transforms ? "list of transforms"
                                                          : "seed";
  throw Error(ExitCode::kUsage, fmt::format("is the checkpoint of a run with another {}", part),
              path,
              "a run goes on only with the same table, [projection], [[filter]], [[transform]], "
              "pipeline.seed and columns that source.keys opens (on_locked); give another "
              "--checkpoint to start from the first row");
}

}  // namespace headrace::reader
