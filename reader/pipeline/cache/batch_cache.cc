#include "reader/pipeline/cache/batch_cache.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "reader/pipeline/cache/batch_bytes.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".batches";

struct EntryHeader {
  char magic[8] = {'h', 'r', 'c', 'a', 'c', 'h', 'e', '1'};
  uint64_t fingerprint = 0;
  uint64_t split = 0;
  uint64_t batches = 0;
  uint64_t bytes = 0;     // behind the header
  uint64_t checksum = 0;  // XXH3-64 of them, seeded by XXH3-64 of the header with checksum 0
  uint64_t unused[2] = {};
};
static_assert(sizeof(EntryHeader) == 64);

// Checksum of the header and of the parts of the body, in their order.
uint64_t ChecksumOf(EntryHeader header, std::span<const std::span<const uint8_t>> body) {
  header.checksum = 0;
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_64bits_reset_withSeed(state.get(), XXH3_64bits(&header, sizeof header));
  for (const std::span<const uint8_t>& part : body)
    XXH3_64bits_update(state.get(), part.data(), part.size());
  return XXH3_64bits_digest(state.get());
}

// Whether these are all bytes of the entry of that split.
bool IsEntry(std::span<const uint8_t> bytes, uint64_t fingerprint, uint64_t split) {
  EntryHeader header;
  const EntryHeader ours;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::span<const uint8_t> body[] = {bytes.subspan(sizeof header)};
  return std::memcmp(header.magic, ours.magic, sizeof ours.magic) == 0 &&
         header.fingerprint == fingerprint && header.split == split &&
         header.bytes == bytes.size() - sizeof header &&
         header.checksum == ChecksumOf(header, body);
}

// "/f/0123456789abcdef-17.batches" -> its fingerprint and split.
bool ParseName(const std::string& name, uint64_t* fingerprint, uint64_t* split) {
  if (name.size() < 18 || name[16] != '-' || !name.ends_with(kEnding)) return false;
  const char* text = name.data();
  const char* end = text + name.size() - (sizeof kEnding - 1);
  const auto first = std::from_chars(text, text + 16, *fingerprint, 16);
  const auto second = std::from_chars(text + 17, end, *split);
  return first.ec == std::errc() && first.ptr == text + 16 && second.ec == std::errc() &&
         second.ptr == end;
}

// A file that a process was writing when it died.
bool IsLeftOver(const std::string& name) {
  const auto unfinished = ParseTemporaryName(name);
  if (!unfinished || !unfinished->name.ends_with(kEnding)) return false;
  const auto pid = static_cast<pid_t>(unfinished->pid);
  return pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH);
}

}  // namespace

std::vector<FlatMapBatch> CachedBatches::Read() const {
  std::vector<FlatMapBatch> result;
  EntryHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  auto left = std::span<const uint8_t>(bytes.data(), bytes.size()).subspan(sizeof header);
  for (uint64_t i = 0; i < header.batches; ++i) result.push_back(TakeBatch(&left));
  return result;
}

BatchCache::BatchCache(CacheOptions options, uint64_t fingerprint)
    : options_(std::move(options)), fingerprint_(fingerprint) {
  if (options_.tier == CacheTier::kDisk) OpenFolder();
}

void BatchCache::OpenFolder() {
  std::error_code error;
  fs::path folder(options_.folder);
  if (!folder.has_filename()) folder = folder.parent_path();  // "cache/"
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  if (!error && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    error = {errno, std::generic_category()};
  if (error) throw ErrnoError(error.value(), "make the folder of the cache", options_.folder);
  for (fs::directory_iterator it(options_.folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string(), path = it->path().string();
    uint64_t fingerprint = 0, split = 0;
    struct stat status = {};
    if (IsLeftOver(name)) unlink(path.c_str());
    if (!ParseName(name, &fingerprint, &split) || lstat(path.c_str(), &status) != 0) continue;
    const auto size = static_cast<uint64_t>(status.st_size);
    figures_.bytes += size;
    if (fingerprint == fingerprint_) {
      disk_[split] = size;
    } else {
      others_[path] = {size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
    }
  }
  if (error) throw ErrnoError(error.value(), "read the folder of the cache", options_.folder);
  // A budget that was larger before: those of others go first, then our own, the last splits first,
  // as a run that keeps the first ones meets them again.
  TakeRoom(0);
  while (figures_.bytes > options_.budget_bytes && !disk_.empty()) {
    const auto last = std::prev(disk_.end());
    unlink(PathOf(last->first).c_str());
    figures_.bytes -= last->second;
    disk_.erase(last);
  }
}

std::string BatchCache::PathOf(uint64_t split) const {
  return fmt::format("{}/{:016x}-{}{}", options_.folder, fingerprint_, split, kEnding);
}

std::shared_ptr<const CachedBatches> BatchCache::ReadFile(uint64_t split) const {
  try {
    const headrace::File file(PathOf(split));
    if (file.size() > options_.budget_bytes) return nullptr;
    auto entry = std::make_shared<CachedBatches>();
    entry->bytes.resize(file.size());
    file.ReadAt(0, {entry->bytes.data(), entry->bytes.size()});
    return entry;
  } catch (const Error& error) {
    if (error.code() == ExitCode::kResources) throw;
    return nullptr;  // as good as not there
  }
}

bool BatchCache::Holds(uint64_t split) const {
  std::lock_guard lock(mutex_);
  return memory_.contains(split) || disk_.contains(split);
}

std::shared_ptr<const CachedBatches> BatchCache::Find(uint64_t split) {
  std::shared_ptr<const CachedBatches> entry;
  bool there = false;
  {
    std::lock_guard lock(mutex_);
    const auto kept = memory_.find(split);
    if (kept != memory_.end()) entry = kept->second;
    there = entry != nullptr || disk_.contains(split);
  }
  if (there && !entry) entry = ReadFile(split);
  const bool good =
      entry && IsEntry({entry->bytes.data(), entry->bytes.size()}, fingerprint_, split);
  std::lock_guard lock(mutex_);
  if (good) {
    ++figures_.hits;
    return entry;
  }
  ++figures_.misses;
  if (!there) return nullptr;
  ++figures_.rejected;
  if (const auto kept = memory_.find(split); kept != memory_.end()) {
    figures_.bytes -= kept->second->bytes.size();
    memory_.erase(kept);
  }
  if (const auto kept = disk_.find(split); kept != disk_.end()) {
    unlink(PathOf(split).c_str());
    figures_.bytes -= kept->second;
    disk_.erase(kept);
  }
  return nullptr;
}

bool BatchCache::TakeRoom(uint64_t bytes) {
  while (!others_.empty() && figures_.bytes + bytes > options_.budget_bytes) {
    const auto oldest = std::min_element(
        others_.begin(), others_.end(),
        [](const auto& a, const auto& b) { return a.second.changed_ns < b.second.changed_ns; });
    unlink(oldest->first.c_str());
    figures_.bytes -= oldest->second.size;
    others_.erase(oldest);
  }
  if (figures_.bytes + bytes > options_.budget_bytes) return false;
  figures_.bytes += bytes;
  return true;
}

void BatchCache::Add(uint64_t split, uint64_t rows, const FlatMapBatch& batch) {
  uint64_t settled = 0;
  for (const RowSpan& span : batch.spans) settled += span.count;
  Array<uint8_t> bytes;
  {
    std::lock_guard lock(mutex_);
    if (!stopped_.empty() || memory_.contains(split) || disk_.contains(split)) return;
    const auto making = making_.find(split);
    if (making != making_.end() && making->second.failed) {
      making->second.rows += settled;
      if (making->second.rows >= rows) making_.erase(making);
      return;
    }
  }
  bool has_bytes = true;
  try {
    AppendBatch(batch, &bytes);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kResources) throw;
    has_bytes = false;
  }
  Making done;
  {
    std::lock_guard lock(mutex_);
    Making& making = making_[split];
    making.rows += settled;
    const uint64_t header = making.batches.empty() ? sizeof(EntryHeader) : 0;
    const uint64_t first = batch.spans.empty() ? batch.first_row : batch.spans[0].first;
    // Two of a split at once come of two epochs that overlap: neither is kept.
    const bool twice = making.batches.contains(first);
    if (making.failed || twice || !has_bytes || !TakeRoom(bytes.size() + header)) {
      if (!making.failed && !twice) ++figures_.no_room;
      figures_.bytes -= making.bytes;
      making.bytes = 0;
      making.batches.clear();
      making.failed = true;
      if (making.rows >= rows) making_.erase(split);
      return;
    }
    making.bytes += bytes.size() + header;
    making.batches.emplace(first, std::move(bytes));
    if (making.rows < rows) return;
    done = std::move(making);
    making_.erase(split);
  }
  Keep(split, std::move(done));
}

void BatchCache::Keep(uint64_t split, Making&& making) {
  std::vector<std::span<const uint8_t>> body;
  EntryHeader header;
  header.fingerprint = fingerprint_;
  header.split = split;
  header.batches = making.batches.size();
  for (const auto& [first, batch] : making.batches) {
    body.emplace_back(batch.data(), batch.size());
    header.bytes += batch.size();
  }
  header.checksum = ChecksumOf(header, body);
  const std::span<const uint8_t> head(reinterpret_cast<const uint8_t*>(&header), sizeof header);
  const uint64_t size = sizeof header + header.bytes;
  auto entry = std::make_shared<CachedBatches>();
  std::string failure;
  if (options_.tier == CacheTier::kDisk) {
    try {
      AtomicFile file(PathOf(split), true, 0600);  // of encrypted columns it has the plain values
      file.Write(head);
      for (const std::span<const uint8_t>& part : body) file.Write(part);
      file.Commit();
    } catch (const Error& error) {
      failure = error.what();
    }
  } else {
    // Not of BlockPool: its room is set aside.
    const auto bytes = std::make_shared<std::vector<uint8_t>>(head.begin(), head.end());
    bytes->reserve(size);
    for (auto& [first, batch] : making.batches) {
      bytes->insert(bytes->end(), batch.begin(), batch.end());
      batch = {};
    }
    entry->bytes = Array<uint8_t>::Borrow({bytes->data(), bytes->size()}, bytes);
  }
  std::lock_guard lock(mutex_);
  if (!failure.empty()) {
    figures_.bytes -= size;
    if (stopped_.empty())
      stopped_ =
          fmt::format("the cache keeps nothing more after {} splits: {}", figures_.kept, failure);
    return;
  }
  ++figures_.kept;
  if (options_.tier == CacheTier::kDisk) {
    disk_[split] = size;
  } else {
    memory_[split] = std::move(entry);
  }
}

CacheFigures BatchCache::figures() const {
  std::lock_guard lock(mutex_);
  return figures_;
}

std::string BatchCache::note() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

}  // namespace headrace::reader
