#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "reader/pipeline/delivery/options.h"
#include "reader/pipeline/delivery/ring.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {

void ParseDelivery(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("delivery");
  table.CheckKeys("[delivery]", {"to", "ring", "window", "wire"});
  DeliveryOptions& delivery = spec->delivery;
  try {
    delivery.to = ParseDeliveryAddress(table.Text("to", "inline"), table.file().folder);
  } catch (const Error& error) {
    table["to"].Fail(fmt::format("{}; {}", error.fact(), error.fix()));
  }
  delivery.ring_bytes = table.Bytes("ring", delivery.ring_bytes);
  if (delivery.ring_bytes < kMinRingBytes || delivery.ring_bytes > kMaxRingBytes)
    table["ring"].Fail("ring must be from 64KiB to 4GiB");
  delivery.window = table.Count("window", delivery.window, 0, 1u << 20);
  try {
    delivery.wire = ParseWire(table.Text("wire", "auto"));
  } catch (const Error& error) {
    table["wire"].Fail(fmt::format("{}; {}", error.fact(), error.fix()));
  }
  if (delivery.to.kind != DeliveryKind::kInline && !HasOperator(*spec, "tensorize"))
    table["to"].Fail(
        "only tensor batches go to another process: the last operator must be tensorize");
}

}  // namespace headrace::reader
