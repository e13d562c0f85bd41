// Fuzzes what members of a job say they measured: any bytes are refused by an Error, or read as a
// shipment that has one form. Inputs get the version first, so that they come past it; then they
// are bytes that change a real one. (What a fleet file does with such:
// tests/collectors/shipment_test.cc.)
//
// fuzz run: share=1 length=4096
// fuzz layers: base
// fuzz libs: fmt::fmt
// fuzz sources: collectors/shipment.cc
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "collectors/shipment.h"

namespace {

using namespace headrace;
using namespace headrace::collectors;

std::string Real() {
  Shipment s;
  s.role = "worker";
  s.info.program = "worker";
  s.interval.duration_ns = 1'000;
  s.interval.stages.resize(1);
  s.interval.operators.resize(2);
  s.interval.operators[1].id = 1;
  s.interval.queues.resize(1);
  s.measured.metrics = {{"m", "ns", "counter", "counter", "none", ""}};
  s.measured.definitions = {{1, "m", "counter", {}, {}, "", "", "", {}}};
  s.measured.totals = {{1, 1, 1, 1, 1, 1, {}}};
  return SerializeShipment(s);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string real = Real();
  for (const bool mixed : {false, true}) {
    std::string text(reinterpret_cast<const char*>(data), size);
    if (mixed) {
      // Bytes at places of a real one: place, value, place, value, ...
      text = real;
      for (size_t i = 0; i + 2 < size; i += 3)
        text[(data[i] | static_cast<size_t>(data[i + 1]) << 8) % text.size()] =
            static_cast<char>(data[i + 2]);
    } else if (size >= sizeof kShipmentVersion) {
      std::memcpy(text.data(), &kShipmentVersion, sizeof kShipmentVersion);
    }
    try {
      const Shipment shipment =
          ParseShipment({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
      HR_CHECK(SerializeShipment(shipment) == text, "a shipment has one form");
    } catch (const Error& error) {
      HR_CHECK(error.code() == ExitCode::kBadData, error.what());
    }
  }
  return 0;
}
