#include "collectors/shipment.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace headrace::collectors {
namespace {

static_assert(std::endian::native == std::endian::little);

// Beyond what a process can have counted; sums of so many stay within 63 bits.
constexpr int64_t kMostFigure = int64_t{1} << 56;
constexpr size_t kMostText = 1 << 16;

[[noreturn]] void BadShipment(const std::string& what) {
  throw Error(ExitCode::kBadData, "is not what a member of a job measured: " + what);
}

// The fields of each part, the same for writing and reading.
template <typename V>
void ShipmentFields(auto& m, V& v) {
  using T = std::remove_const_t<std::remove_reference_t<decltype(m)>>;
  if constexpr (std::is_same_v<T, StageSample>) {
    v(m.id);
#define HR_STAGE_COLUMN(type, member, column, merge, help) v(m.member);
#include "collectors/store/columns.def"
  } else if constexpr (std::is_same_v<T, OperatorSample>) {
    v(m.id);
#define HR_OPERATOR_COLUMN(type, member, column, merge, help) v(m.member);
#include "collectors/store/columns.def"
  } else if constexpr (std::is_same_v<T, QueueSample>) {
    v(m.id);
#define HR_QUEUE_COLUMN(type, member, column, merge, help) v(m.member);
#include "collectors/store/columns.def"
  } else if constexpr (std::is_same_v<T, ResourceSample>) {
    v(m.id);
#define HR_RESOURCE_COLUMN(type, member, column, merge, help) v(m.member);
#include "collectors/store/columns.def"
  } else if constexpr (std::is_same_v<T, RunInfo>) {
#define HR_RUN_COLUMN(type, column, help) v(m.column);
#include "collectors/store/columns.def"
  } else if constexpr (std::is_same_v<T, ProcessRow>) {
#define HR_PROCESS_COLUMN(type, member, column, help) v(m.member);
#include "collectors/store/columns.def"
  } else if constexpr (std::is_same_v<T, StepSample>) {
    v(m.steps, m.rows, m.wait_ns, m.compute_ns, m.first_ns, m.last_ns, m.durations_ns);
  } else if constexpr (std::is_same_v<T, IntervalSample>) {
    v(m.start_ns, m.duration_ns, m.stages, m.operators, m.queues, m.resources, m.steps);
  } else if constexpr (std::is_same_v<T, MetricRow>) {
    v(m.metric, m.unit, m.kind, m.source, m.privilege, m.help);
  } else if constexpr (std::is_same_v<T, MeasurementRow>) {
    v(m.id, m.metric, m.source, m.operator_id, m.process_id, m.thread, m.subject, m.cause,
      m.bucket);
  } else if constexpr (std::is_same_v<T, MeasurementTotal>) {
    v(m.id, m.weight_ns, m.weighted_sum, m.minimum, m.maximum, m.last, m.running_ratio);
  } else if constexpr (std::is_same_v<T, MeasurementInterval>) {
    v(m.id, m.start_ns, m.duration_ns, m.value);
  } else if constexpr (std::is_same_v<T, MeasurementBatch>) {
    v(m.metrics, m.processes, m.definitions, m.totals, m.intervals);
  } else if constexpr (std::is_same_v<T, Shipment>) {
    v(m.role, m.rank, m.info, m.interval, m.measured, m.is_last);
  } else {
    static_assert(sizeof(T) == 0, "a part without fields");
  }
}

class ShipmentWriter {
 public:
  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (Put(fields), ...);
  }
  std::string Take() { return std::move(text_); }

  template <typename T>
  requires std::is_arithmetic_v<T>
  void Put(T value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }

 private:
  void Put(const std::string& text) {
    Put(static_cast<uint32_t>(text.size()));
    text_ += text;
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    Put(value.has_value());
    if (value) Put(*value);
  }
  template <typename T>
  void Put(const std::vector<T>& values) {
    Put(static_cast<uint32_t>(values.size()));
    for (const T& value : values) Put(value);
  }
  template <typename T>
  requires std::is_class_v<T>
  void Put(const T& part) { ShipmentFields(part, *this); }

  std::string text_;
};

class ShipmentReader {
 public:
  explicit ShipmentReader(std::span<const uint8_t> left) : left_(left) {}
  template <typename... Fields>
  void operator()(Fields&... fields) {
    (Get(fields), ...);
  }
  size_t left() const { return left_.size(); }

  void Get(uint32_t& value) { std::memcpy(&value, Bytes(sizeof value).data(), sizeof value); }

 private:
  std::span<const uint8_t> Bytes(size_t count) {
    if (count > left_.size())
      BadShipment(fmt::format("{} bytes are announced, {} are left", count, left_.size()));
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  void Get(int64_t& value) {
    std::memcpy(&value, Bytes(sizeof value).data(), sizeof value);
    // A time of day, the one figure that is larger, has 61 bits.
    if (value < -kMostFigure * 32 || value > kMostFigure * 32) BadShipment("a figure is too large");
  }
  void Get(double& value) {
    std::memcpy(&value, Bytes(sizeof value).data(), sizeof value);
    if (!std::isfinite(value)) BadShipment("a figure is not a number");
  }
  void Get(bool& value) {
    const uint8_t byte = Bytes(1)[0];
    if (byte > 1) BadShipment("a yes or no is neither");
    value = byte == 1;
  }
  void Get(std::string& text) {
    uint32_t size = 0;
    Get(size);
    if (size > kMostText) BadShipment("a text is too long");
    const auto bytes = Bytes(size);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.find('\0') != std::string::npos) BadShipment("a text has a zero byte");
  }
  template <typename T>
  void Get(std::optional<T>& value) {
    bool is_there = false;
    Get(is_there);
    value.reset();
    if (is_there) Get(value.emplace());
  }
  template <typename T>
  void Get(std::vector<T>& values) {
    uint32_t count = 0;
    Get(count);
    if (count > left_.size() / 8)  // no entry has fewer bytes
      BadShipment(fmt::format("{} entries are announced, {} bytes are left", count, left_.size()));
    values.clear();  // grows with what is really there
    for (uint32_t i = 0; i < count; ++i) Get(values.emplace_back());
  }
  template <typename T>
  requires std::is_class_v<T>
  void Get(T& part) { ShipmentFields(part, *this); }

  std::span<const uint8_t> left_;
};

void CheckTimes(int64_t start_ns, int64_t duration_ns) {
  if (start_ns < 0 || start_ns > kMostFigure || duration_ns < 0 || duration_ns > kMostFigure)
    BadShipment("an interval is at no time");
}

// Of a sample's figures, which are sums of what was counted.
class FiguresAreCounts {
 public:
  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (Check(fields), ...);
  }

 private:
  static void Check(int64_t value) {
    if (value < 0 || value > kMostFigure) BadShipment("a figure is negative or too large");
  }
  static void Check(const std::optional<int64_t>& value) {
    if (value) Check(*value);
  }
  static void Check(const std::vector<int64_t>& values) {
    for (const int64_t value : values) Check(value);
  }
  static void Check(const std::string&) {}
};

template <typename Sample>
void CheckCounts(const Sample& sample) {
  FiguresAreCounts check;
  ShipmentFields(sample, check);
}

void CheckShipment(const Shipment& s) {
  if (s.role != "worker" && s.role != "rank") BadShipment("its role is neither worker nor rank");
  if (s.rank && (*s.rank < 0 || *s.rank > UINT16_MAX)) BadShipment("its rank is none");
  if ((s.role == "rank") != s.rank.has_value()) BadShipment("a rank has a number, a worker none");
  CheckTimes(s.interval.start_ns, s.interval.duration_ns);
  for (const auto& one : s.interval.stages) CheckCounts(one);
  for (const auto& one : s.interval.operators) CheckCounts(one);
  for (const auto& one : s.interval.queues) CheckCounts(one);
  for (const auto& one : s.interval.resources) CheckCounts(one);
  CheckCounts(s.interval.steps);
  for (const MeasurementInterval& one : s.measured.intervals)
    CheckTimes(one.start_ns, one.duration_ns);
}

}  // namespace

std::string SerializeShipment(const Shipment& shipment) {
  ShipmentWriter writer;
  writer.Put(kShipmentVersion);
  writer(shipment);
  return writer.Take();
}

Shipment ParseShipment(std::span<const uint8_t> bytes) {
  ShipmentReader reader(bytes);
  uint32_t version = 0;
  reader.Get(version);
  if (version != kShipmentVersion)
    throw Error(ExitCode::kBadData,
                fmt::format("a member sends measurements of version {}, this headrace knows {}",
                            version, kShipmentVersion),
                {}, "use the same headrace for all processes of a job");
  Shipment shipment;
  reader(shipment);
  if (reader.left() != 0) BadShipment("bytes are left over");
  CheckShipment(shipment);
  return shipment;
}

}  // namespace headrace::collectors
