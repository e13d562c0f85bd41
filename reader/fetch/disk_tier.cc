#include "reader/fetch/disk_tier.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
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
#include "probes/account/scope.h"
#include "reader/fetch/fetch.h"
#include "reader/fetch/read_plan.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".streams";
constexpr char kLockName[] = "tier.lock";
// A stripe whose streams come in by so many projections takes no more of them: each is looked into
// at every use.
constexpr size_t kMaxEntriesOfStripe = 16;
constexpr uint64_t kMaxStreams = uint64_t{1} << 20;  // of an entry
constexpr size_t kMaxEntries = size_t{1} << 18;      // 200 bytes of memory each

struct EntryHeader {
  char magic[8] = {'h', 'r', 't', 'i', 'e', 'r', '0', '1'};
  uint64_t file = 0, content = 0;
  uint64_t stripe = 0;
  uint64_t streams = 0;
  uint64_t bytes = 0;  // of the streams
  uint64_t unused = 0;
  uint64_t checksum = 0;  // of the index, seeded by that of the header with checksum 0
};
static_assert(sizeof(EntryHeader) == 64);

struct IndexLine {
  uint64_t offset = 0, length = 0;
  uint64_t checksum = 0;  // of the bytes, seeded by the offset
};
static_assert(sizeof(IndexLine) == 24);

uint64_t IndexChecksum(EntryHeader header, std::span<const IndexLine> index) {
  header.checksum = 0;
  return XXH3_64bits_withSeed(index.data(), index.size_bytes(),
                              XXH3_64bits(&header, sizeof header));
}

uint64_t StreamChecksum(uint64_t offset, std::span<const uint8_t> bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), offset);
}

struct EntryName {
  SourceIdentity file;
  uint32_t stripe = 0;
  uint64_t number = 0;
};

// "0123456789abcdef-0123456789abcdef-17-1.streams"
bool ParseName(const std::string& name, EntryName* out) {
  if (!name.ends_with(kEnding)) return false;
  const char* at = name.data();
  const char* const end = at + name.size() - (sizeof kEnding - 1);
  const auto take = [&](auto* value, int base, ptrdiff_t digits) {
    const auto [next, failure] = std::from_chars(at, end, *value, base);
    if (failure != std::errc() || (digits > 0 && next - at != digits)) return false;
    at = next;
    return true;
  };
  const auto dash = [&] { return at < end && *at++ == '-'; };
  return take(&out->file.name, 16, 16) && dash() && take(&out->file.content, 16, 16) && dash() &&
         take(&out->stripe, 10, 0) && dash() && take(&out->number, 10, 0) && at == end;
}

// What a process was writing when it died.
bool IsLeftOver(const std::string& name) {
  const auto unfinished = ParseTemporaryName(name);
  EntryName ignored;
  return unfinished && ParseName(unfinished->name, &ignored);
}

[[noreturn]] void Bad(const std::string& what, const std::string& path) {
  throw Error(ExitCode::kBadData, what, path);
}

}  // namespace

DiskTier::DiskTier(const TierOptions& options, std::optional<std::set<std::string>> features,
                   const std::vector<const Source*>& sources)
    : StreamTier(options, std::move(features)) {
  std::vector<SourceIdentity> identities;
  for (const Source* source : sources) {
    identities.push_back(IdentityOf(*source));
    sources_[source->name()] = identities.back();
  }
  LockFolder();
  try {
    ScanFolder(identities);
  } catch (...) {
    close(lock_);
    throw;
  }
}

DiskTier::~DiskTier() { close(lock_); }

void DiskTier::LockFolder() {
  const std::string& folder = options().folder;
  std::error_code failure;
  const fs::path above = fs::path(folder).parent_path();
  if (!above.empty()) fs::create_directories(above, failure);
  // What it holds may be for the owner of the table alone.
  if (!failure && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    failure.assign(errno, std::generic_category());
  if (failure) throw ErrnoError(failure.value(), "make the folder of the tier", folder);
  const std::string path = folder + "/" + kLockName;
  lock_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (lock_ < 0) throw ErrnoError(errno, "create", path);
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  close(lock_);
  if (error != EWOULDBLOCK) throw ErrnoError(error, "lock", path);
  throw Error(ExitCode::kUsage, "another process has this folder as its tier", folder,
              "give each process a source.tier.folder of its own, or wait for that one to end");
}

void DiskTier::ScanFolder(const std::vector<SourceIdentity>& sources) {
  struct Seen {
    int64_t used_ns;
    EntryName name;
    uint64_t size;
  };
  std::vector<Seen> seen;
  const auto is_older = [&](const SourceIdentity& file) {
    return std::any_of(sources.begin(), sources.end(), [&](const SourceIdentity& source) {
      return source.name == file.name && source.content != file.content;
    });
  };
  std::error_code failure;
  for (fs::directory_iterator it(options().folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    const std::string name = it->path().filename().string(), path = it->path().string();
    EntryName entry;
    struct stat status = {};
    if (IsLeftOver(name)) unlink(path.c_str());
    // A name that we would write otherwise is not ours.
    if (!ParseName(name, &entry) || path != PathOf({entry.file, entry.stripe}, entry.number) ||
        lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    if (is_older(entry.file) && unlink(path.c_str()) == 0) {
      ++figures_.removed;
      continue;
    }
    seen.push_back({status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, entry,
                    static_cast<uint64_t>(status.st_size)});
    if (seen.size() > kMaxEntries)
      throw Error(ExitCode::kUsage, fmt::format("holds more than {} entries", kMaxEntries),
                  options().folder, "use another source.tier.folder, or remove this one");
  }
  if (failure) throw ErrnoError(failure.value(), "read the folder of the tier", options().folder);
  std::sort(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) {
    return std::tie(a.used_ns, a.name.number) < std::tie(b.used_ns, b.name.number);
  });
  for (const Seen& one : seen) Add({one.name.file, one.name.stripe}, one.name.number, one.size);
  // A budget that was larger before.
  while (bytes_ > options().budget_bytes && Drop(entries_.back())) ++figures_.removed;
}

std::string DiskTier::PathOf(const Key& key, uint64_t number) const {
  return fmt::format("{}/{:016x}-{:016x}-{}-{}{}", options().folder, key.file.name,
                     key.file.content, key.stripe, number, kEnding);
}

void DiskTier::Add(const Key& key, uint64_t number, uint64_t size) {
  auto entry = std::make_shared<Entry>(Entry{key, number, size, false, {}});
  entries_.push_front(entry);
  entry->place = entries_.begin();
  Stripe& stripe = stripes_[key];
  stripe.entries.push_back(std::move(entry));
  stripe.next_number = std::max(stripe.next_number, number + 1);
  bytes_ += size;
}

bool DiskTier::Drop(std::shared_ptr<Entry> entry) {
  if (entry->is_gone) return true;
  const std::string path = PathOf(entry->key, entry->number);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    Stop(ErrnoError(errno, "remove", path).what());
    return false;
  }
  entry->is_gone = true;
  entries_.erase(entry->place);
  bytes_ -= entry->size;
  const auto stripe = stripes_.find(entry->key);
  std::erase(stripe->second.entries, entry);
  return true;
}

bool DiskTier::MakeRoom(uint64_t bytes) {
  if (writing_bytes_ + bytes > options().budget_bytes) return false;  // whatever is dropped
  const auto has_room = [&] {
    return bytes_ + bytes <= options().budget_bytes && entries_.size() < kMaxEntries;
  };
  while (!has_room()) {
    if (options().policy == TierPolicy::kPinned || entries_.empty()) return false;
    if (!Drop(entries_.back())) return false;
    ++figures_.removed;
  }
  return true;
}

void DiskTier::Stop(const std::string& why) {
  if (stopped_.empty())
    stopped_ =
        fmt::format("nothing more came into the tier after {} entries: {}", figures_.kept, why);
}

void DiskTier::Reject(const std::shared_ptr<Entry>& entry, const std::string& why) {
  const std::lock_guard lock(mutex_);
  auto& listed = stripes_.find(entry->key)->second.entries;
  // Displaced, or rejected by another thread.
  if (std::find(listed.begin(), listed.end(), entry) == listed.end()) return;
  ++figures_.rejected;
  if (first_rejected_.empty()) first_rejected_ = why;
  // One that cannot be removed takes its bytes, but is not looked into again.
  if (!Drop(entry)) std::erase(listed, entry);
}

TierStreams DiskTier::Find(const dwrf::StripePlan& plan, const Source& source) {
  TierStreams found;
  found.streams.resize(plan.streams.size());
  const auto file = sources_.find(source.name());
  if (file == sources_.end()) return found;
  std::vector<std::shared_ptr<Entry>> entries;
  {
    const std::lock_guard lock(mutex_);
    const auto stripe = stripes_.find({file->second, plan.stripe_index});
    if (stripe == stripes_.end()) return found;
    found.state = stripe->second.next_number;
    entries.assign(stripe->second.entries.rbegin(), stripe->second.entries.rend());
  }
  if (entries.empty()) return found;
  const account::OperatorScope scope(read_account_);
  std::map<uint64_t, size_t> missing;
  struct Repeated {
    size_t stream, first;
  };
  std::vector<Repeated> repeated;  // a feature may be asked for twice
  for (size_t i = 0; i < plan.streams.size(); ++i) {
    const auto [place, is_new] = missing.emplace(plan.streams[i].offset, i);
    if (!is_new && plan.streams[place->second].length == plan.streams[i].length)
      repeated.push_back({i, place->second});
  }
  Reads reads;
  for (const std::shared_ptr<Entry>& entry : entries) {
    if (missing.empty()) break;
    const size_t before = missing.size();
    const std::string path = PathOf(entry->key, entry->number);
    std::optional<File> file;
    try {
      file.emplace(path);
    } catch (const Error& error) {
      // Without file descriptors, say, nothing is known of the entry.
      if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) Reject(entry, error.what());
      continue;
    }
    try {
      TakeFrom(*file, *entry, plan, &missing, &found, &reads);
      if (missing.size() < before) Touch(entry);
    } catch (const Error& error) {
      if (error.code() == ExitCode::kResources) throw;
      Reject(entry, error.what());
    }
  }
  for (const Repeated& one : repeated) found.streams[one.stream] = found.streams[one.first];
  scope.Done(reads.requests, 0, 0, reads.bytes);
  return found;
}

void DiskTier::TakeFrom(const File& file, const Entry& entry, const dwrf::StripePlan& plan,
                        std::map<uint64_t, size_t>* missing, TierStreams* found, Reads* reads) {
  const std::string& path = file.path();
  EntryHeader header;
  const EntryHeader ours;
  if (file.size() != entry.size || file.size() < sizeof header) Bad("has another size", path);
  const auto read = [&](uint64_t offset, std::span<uint8_t> out) {
    file.ReadAt(offset, out);
    ++reads->requests;
    reads->bytes += out.size();
  };
  read(0, {reinterpret_cast<uint8_t*>(&header), sizeof header});
  const uint64_t behind = file.size() - sizeof header;
  if (std::memcmp(header.magic, ours.magic, sizeof ours.magic) != 0 ||
      SourceIdentity{header.file, header.content} != entry.key.file ||
      header.stripe != entry.key.stripe ||
      header.streams > std::min(kMaxStreams, behind / sizeof(IndexLine)) ||
      header.bytes != behind - header.streams * sizeof(IndexLine))
    Bad("is not the entry that its name says", path);
  std::vector<IndexLine> index(header.streams);
  read(sizeof header,
       {reinterpret_cast<uint8_t*>(index.data()), header.streams * sizeof(IndexLine)});
  if (IndexChecksum(header, index) != header.checksum) Bad("its index has another checksum", path);

  struct Wanted {
    IndexLine line;
    uint64_t place;  // in the file
    size_t stream;   // of the plan
  };
  std::vector<Wanted> wanted;
  std::vector<ByteRange> ranges;
  uint64_t place = file.size() - header.bytes;
  for (const IndexLine& line : index) {
    if (line.length > file.size() - place) Bad("its index does not fit its bytes", path);
    const auto stream = missing->find(line.offset);
    if (stream != missing->end() && plan.streams[stream->second].length == line.length) {
      wanted.push_back({line, place, stream->second});
      ranges.push_back({place, line.length});
    }
    place += line.length;
  }
  if (wanted.empty()) return;
  const ReadPlan planned =
      PlanReads(std::move(ranges), {.max_read_bytes = file.size(), .source_bytes = file.size()});
  BufferPool::Handle buffer = StripeBuffers().Take(planned.read_bytes);
  std::vector<std::span<const uint8_t>> streams;  // as `wanted`
  uint8_t* at = buffer->data();
  size_t next = 0;
  for (const ByteRange& one : planned.reads) {
    read(one.offset, {at, one.length});
    for (; next < wanted.size() && wanted[next].place < one.offset + one.length; ++next) {
      const Wanted& stream = wanted[next];
      const std::span<const uint8_t> bytes(at + (stream.place - one.offset), stream.line.length);
      if (StreamChecksum(stream.line.offset, bytes) != stream.line.checksum)
        Bad(fmt::format("the stream at byte {} has another checksum", stream.place), path);
      streams.push_back(bytes);
    }
    at += one.length;
  }
  // Nothing of an entry that fails in the middle: its bytes go with `buffer`.
  for (size_t k = 0; k < wanted.size(); ++k) {
    found->streams[wanted[k].stream] = streams[k];
    missing->erase(wanted[k].line.offset);
  }
  found->buffers.push_back(std::move(buffer));
}

void DiskTier::Touch(const std::shared_ptr<Entry>& entry) {
  if (options().policy != TierPolicy::kLru) return;
  const std::lock_guard lock(mutex_);
  if (entry->is_gone) return;
  entries_.splice(entries_.begin(), entries_, entry->place);
  // For the runs to come; where it cannot be said, they find the time at which it came in.
  utimensat(AT_FDCWD, PathOf(entry->key, entry->number).c_str(), nullptr, 0);
}

std::vector<TierOffer> DiskTier::Fitting(std::span<const TierOffer> offers) const {
  uint64_t left = options().budget_bytes;
  if (options().policy == TierPolicy::kPinned) left -= std::min(left, bytes());
  std::vector<TierOffer> fitting;
  left -= std::min<uint64_t>(left, sizeof(EntryHeader));
  for (const TierOffer& offer : offers) {
    const uint64_t size = sizeof(IndexLine) + offer.bytes.size();
    if (offer.bytes.empty() || size > left || fitting.size() == kMaxStreams) continue;
    left -= size;
    fitting.push_back(offer);
  }
  return fitting;
}

BufferPool::Handle DiskTier::EntryOf(const Key& key, const dwrf::StripePlan& plan,
                                     std::vector<TierOffer> offers, uint64_t size) {
  const auto offset_of = [&](const TierOffer& offer) { return plan.streams[offer.stream].offset; };
  std::sort(offers.begin(), offers.end(),
            [&](const TierOffer& a, const TierOffer& b) { return offset_of(a) < offset_of(b); });
  BufferPool::Handle entry = StripeBuffers().Take(size);
  EntryHeader header;
  header.file = key.file.name;
  header.content = key.file.content;
  header.stripe = key.stripe;
  header.streams = offers.size();
  std::vector<IndexLine> index;
  uint8_t* at = entry->data() + sizeof header + offers.size() * sizeof(IndexLine);
  for (const TierOffer& offer : offers) {
    index.push_back(
        {offset_of(offer), offer.bytes.size(), StreamChecksum(offset_of(offer), offer.bytes)});
    std::memcpy(at, offer.bytes.data(), offer.bytes.size());
    at += offer.bytes.size();
    header.bytes += offer.bytes.size();
  }
  header.checksum = IndexChecksum(header, index);
  std::memcpy(entry->data(), &header, sizeof header);
  std::memcpy(entry->data() + sizeof header, index.data(), index.size() * sizeof(IndexLine));
  return entry;
}

void DiskTier::Insert(const dwrf::StripePlan& plan, const Source& source, const TierStreams& found,
                      std::span<const TierOffer> offers) {
  const auto file = sources_.find(source.name());
  if (file == sources_.end()) return;
  const Key key{file->second, plan.stripe_index};
  // Another thread may fetch the same stripe of another epoch, or have done so meanwhile.
  const auto is_wanted = [&](const Stripe& stripe) {
    return stopped_.empty() && !stripe.is_writing && stripe.next_number == found.state &&
           stripe.entries.size() < kMaxEntriesOfStripe;
  };
  {
    const std::lock_guard lock(mutex_);
    if (!is_wanted(stripes_[key])) return;
  }
  const std::vector<TierOffer> fitting = Fitting(offers);
  if (fitting.empty()) return;
  uint64_t size = sizeof(EntryHeader), number = 0;
  for (const TierOffer& offer : fitting) size += sizeof(IndexLine) + offer.bytes.size();
  const account::OperatorScope scope(fill_account_);
  BufferPool::Handle bytes;
  try {
    bytes = EntryOf(key, plan, fitting, size);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kResources) throw;
    return;  // the stripe is here, and goes on without
  }
  {
    const std::lock_guard lock(mutex_);
    Stripe& stripe = stripes_[key];
    if (!is_wanted(stripe) || !MakeRoom(size)) return;
    stripe.is_writing = true;
    number = stripe.next_number;
    bytes_ += size;
    writing_bytes_ += size;
  }
  std::string failure;
  try {
    AtomicFile file(PathOf(key, number), true, 0600);
    file.Write(std::span<const uint8_t>(bytes->data(), size));
    file.Commit(false);
    scope.Done(0, 0, size);
  } catch (const Error& error) {
    failure = error.what();
  }
  const std::lock_guard lock(mutex_);
  stripes_[key].is_writing = false;
  bytes_ -= size;
  writing_bytes_ -= size;
  if (!failure.empty()) return Stop(failure);
  Add(key, number, size);
  ++figures_.kept;
}

uint64_t DiskTier::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

DiskTierFigures DiskTier::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

std::vector<std::string> DiskTier::notes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> notes;
  if (!stopped_.empty()) notes.push_back(stopped_);
  if (figures_.rejected > 0)
    notes.push_back(fmt::format(
        "dropped {} damaged entries of the tier, and read their streams again; the first: {}",
        figures_.rejected, first_rejected_));
  return notes;
}

void DiskTier::SetAccounts(uint32_t read, uint32_t fill) {
  read_account_ = read;
  fill_account_ = fill;
}

}  // namespace headrace::reader
