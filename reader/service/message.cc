#include "reader/service/message.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/error.h"

namespace headrace::reader::service {
namespace {

static_assert(std::endian::native == std::endian::little);

[[noreturn]] void BadMessage(const std::string& what) {
  throw Error(ExitCode::kBadData, "is not a message of the service: " + what);
}

// The fields of each message, in their order on the wire; the same for writing and reading.
template <typename M, typename V>
void FieldsOf(M& m, V& v) {
  using T = std::remove_const_t<M>;
  if constexpr (std::is_same_v<T, Join>) {
    v(m.rank, m.ranks, m.instance, m.number, m.generation, m.term, m.checkpoint, m.address, m.host,
      m.states);
  } else if constexpr (std::is_same_v<T, Waiting>) {
    v(m.missing);
  } else if constexpr (std::is_same_v<T, Started>) {
    v(m.term, m.generation, m.instance, m.number, m.batch_rows, m.epochs, m.unit_rows,
      m.in_file_order, m.fingerprint, m.features, m.splits, m.split_runs);
  } else if constexpr (std::is_same_v<T, Superseded>) {
    v(m.instance, m.reason);
  } else if constexpr (std::is_same_v<T, Refused>) {
    v(m.code, m.reason, m.fix);
  } else if constexpr (std::is_same_v<T, Report>) {
    v(m.instance, m.term, m.admitted, m.delivered_rows, m.delivered_batches, m.wait_ns,
      m.compute_ns, m.durable_epochs, m.writes_checkpoints, m.progress);
  } else if constexpr (std::is_same_v<T, Ended>) {
    v(m.term);
  } else if constexpr (std::is_same_v<T, Register>) {
    v(m.instance, m.pid, m.host, m.term);
  } else if constexpr (std::is_same_v<T, Session>) {
    v(m.term, m.path, m.text, m.folder, m.settings, m.fingerprint, m.features, m.unit_rows,
      m.clients);
  } else if constexpr (std::is_same_v<T, Ask>) {
    v(m.term, m.count);
  } else if constexpr (std::is_same_v<T, Lease>) {
    v(m.term, m.epoch, m.split, m.deal.first, m.deal.stride, m.deal.ranks, m.wanted);
  } else if constexpr (std::is_same_v<T, Cut>) {
    v(m.term, m.rank);
  } else if constexpr (std::is_same_v<T, Failed>) {
    v(m.code, m.reason);
  } else if constexpr (std::is_same_v<T, Alive>) {
    v(m.sent_units, m.idle_ns, m.no_room_ns, m.made_rows, m.busy_ns);
  } else if constexpr (std::is_same_v<T, Command>) {
    v(m.verb, m.argument);
  } else if constexpr (std::is_same_v<T, Answer>) {
    v(m.code, m.text);
  } else if constexpr (std::is_same_v<T, Measured>) {
    v(m.instance, m.number, m.sent_realtime_ns, m.bytes);
  } else if constexpr (std::is_same_v<T, Kept>) {
    v(m.instance, m.number);
  } else if constexpr (std::is_same_v<T, Submit>) {
    v(m.pipeline, m.settings, m.ranks, m.mode);
  } else if constexpr (std::is_same_v<T, EpochsOver>) {
    v(m.term, m.admitted_epochs, m.durable_epochs);
  } else if constexpr (std::is_same_v<T, AskSplits>) {
    v(m.term, m.first);
  } else if constexpr (std::is_same_v<T, Splits>) {
    v(m.term, m.first, m.runs);
  } else if constexpr (std::is_same_v<T, Offer>) {
    v(m.instance, m.machine, m.workers, m.running);
  } else if constexpr (std::is_same_v<T, Assign>) {
    v(m.workers);
  } else if constexpr (std::is_same_v<T, Want>) {
    v(m.job, m.place, m.machine, m.origin, m.weight, m.workers);
  } else if constexpr (std::is_same_v<T, Grant>) {
    v(m.workers, m.of);
  } else if constexpr (std::is_same_v<T, GiveBack>) {
    v(m.term, m.splits);
  }
}

class MessageWriter {
 public:
  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (Put(fields), ...);
  }
  std::string Take() { return std::move(text_); }

 private:
  template <typename T>
  requires std::is_integral_v<T>
  void Put(T value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Put(const std::string& text) {
    Put(static_cast<uint32_t>(text.size()));
    text_ += text;
  }
  void Put(const std::pair<std::string, std::string>& pair) { (*this)(pair.first, pair.second); }
  void Put(const RowRange& range) { (*this)(range.first, range.count); }
  void Put(const SplitRun& run) { (*this)(run.rows, run.splits); }
  void Put(const EpochSplit& one) { (*this)(one.epoch, one.split); }
  void Put(const WorkersAt& some) { (*this)(some.place, some.workers); }
  void Put(const RowSpan& span) {
    (*this)(span.epoch, span.split, span.first, span.count, span.rows);
  }
  void Put(const Fingerprint& print) {
    (*this)(print.table, print.projection, print.transforms, print.seed);
  }
  template <typename T>
  void Put(const std::vector<T>& values) {
    Put(static_cast<uint32_t>(values.size()));
    for (const T& value : values) Put(value);
  }

  std::string text_;
};

class MessageReader {
 public:
  explicit MessageReader(std::span<const uint8_t> left) : left_(left) {}
  template <typename... Fields>
  void operator()(Fields&... fields) {
    (Get(fields), ...);
  }
  size_t left() const { return left_.size(); }

 private:
  // The fewest bytes that a value takes.
  template <typename T>
  static constexpr size_t kLeast = std::is_integral_v<T> ? sizeof(T) : 4;

  std::span<const uint8_t> Bytes(size_t count) {
    if (count > left_.size())
      BadMessage(fmt::format("{} bytes are announced, {} are left", count, left_.size()));
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  template <typename T>
  requires std::is_integral_v<T>
  void Get(T& value) { std::memcpy(&value, Bytes(sizeof value).data(), sizeof value); }
  void Get(std::string& text) {
    uint32_t size = 0;
    Get(size);
    const auto bytes = Bytes(size);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void Get(std::pair<std::string, std::string>& pair) { (*this)(pair.first, pair.second); }
  void Get(RowRange& range) { (*this)(range.first, range.count); }
  void Get(SplitRun& run) { (*this)(run.rows, run.splits); }
  void Get(EpochSplit& one) { (*this)(one.epoch, one.split); }
  void Get(WorkersAt& some) { (*this)(some.place, some.workers); }
  void Get(RowSpan& span) { (*this)(span.epoch, span.split, span.first, span.count, span.rows); }
  void Get(Fingerprint& print) {
    (*this)(print.table, print.projection, print.transforms, print.seed);
  }
  template <typename T>
  void Get(std::vector<T>& values) {
    uint32_t count = 0;
    Get(count);
    if (count > left_.size() / kLeast<T>)
      BadMessage(fmt::format("{} entries are announced, {} bytes are left", count, left_.size()));
    // Grows with what is really there: an entry may be larger in memory than on the wire.
    values.clear();
    for (uint32_t i = 0; i < count; ++i) Get(values.emplace_back());
  }

  std::span<const uint8_t> left_;
};

struct MessageHeader {
  uint32_t magic = kMessageMagic;
  uint16_t version = kMessageVersion, kind = 0;
  uint32_t bytes = 0, zero = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(MessageHeader) == kMessageHeaderBytes);

uint64_t ChecksumOf(const MessageHeader& header, std::span<const uint8_t> body) {
  const uint64_t seed = XXH3_64bits(&header, offsetof(MessageHeader, checksum));
  return XXH3_64bits_withSeed(body.data(), body.size(), seed);
}

template <size_t... I>
Message EmptyMessage(size_t index, std::index_sequence<I...>) {
  Message message;
  ((index == I ? void(message.emplace<I>()) : void()), ...);
  return message;
}

}  // namespace

std::string Serialize(const Message& message) {
  MessageWriter writer;
  std::visit([&](const auto& m) { FieldsOf(m, writer); }, message);
  const std::string body = writer.Take();
  if (body.size() > kMaxMessageBytes)
    throw Error(ExitCode::kResources, fmt::format("a message of {} bytes is too long", body.size()),
                {}, "make larger stripes: the table has too many");
  MessageHeader header;
  header.kind = static_cast<uint16_t>(message.index() + 1);
  header.bytes = static_cast<uint32_t>(body.size());
  header.checksum =
      ChecksumOf(header, {reinterpret_cast<const uint8_t*>(body.data()), body.size()});
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

uint64_t MessageBytes(std::span<const uint8_t> bytes) {
  MessageHeader header;
  if (bytes.size() < sizeof header) BadMessage("its header is cut off");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMessageMagic) BadMessage("it begins with something else");
  if (header.version != kMessageVersion)
    throw Error(ExitCode::kBadData,
                fmt::format("the message has version {} of the service, this headrace knows {}",
                            header.version, kMessageVersion),
                {}, "use the same headrace on both sides");
  if (header.kind == 0 || header.kind > std::variant_size_v<Message> || header.zero != 0)
    BadMessage(fmt::format("its kind is {}", header.kind));
  if (header.bytes > kMaxMessageBytes) BadMessage(fmt::format("it claims {} bytes", header.bytes));
  return sizeof header + header.bytes;
}

Message ParseMessage(std::span<const uint8_t> bytes) {
  if (MessageBytes(bytes) != bytes.size()) BadMessage("its length differs");
  MessageHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto body = bytes.subspan(sizeof header);
  if (ChecksumOf(header, body) != header.checksum) BadMessage("its checksum differs");
  Message message =
      EmptyMessage(header.kind - 1u, std::make_index_sequence<std::variant_size_v<Message>>());
  MessageReader reader(body);
  std::visit([&](auto& m) { FieldsOf(m, reader); }, message);
  if (reader.left() != 0) BadMessage("bytes are left over");
  return message;
}

}  // namespace headrace::reader::service
