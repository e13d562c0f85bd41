#include "reader/service/measured.h"

#include "base/clock.h"
#include "base/error.h"
#include "reader/service/control.h"

namespace headrace::reader::service {
namespace {

constexpr int64_t kLastMeasuredNs = 1'000'000'000;
constexpr int kKeptWaitMs = 20;

}  // namespace

void SayMeasured(MeasuredSource* source, ControlConnection* connection) {
  if (source == nullptr) return;
  while (const auto measured = source->Next(false)) connection->Send(*measured);
}

bool HearKept(MeasuredSource* source, const Message& message) {
  const auto* kept = std::get_if<Kept>(&message);
  if (kept == nullptr) return false;
  if (source != nullptr) source->Handle(*kept);
  return true;
}

void SayLastMeasured(MeasuredSource* source, ControlConnection* connection) {
  if (source == nullptr) return;
  try {
    uint64_t unkept = 0;
    while (const auto measured = source->Next(true)) {
      connection->Send(*measured);
      unkept = measured->number;
    }
    const int64_t until = MonotonicNs() + kLastMeasuredNs;
    while (unkept != 0 && !connection->is_closed() && MonotonicNs() < until) {
      for (const Message& message : connection->Receive(kKeptWaitMs)) {
        const auto* kept = std::get_if<Kept>(&message);
        if (kept != nullptr && kept->number == unkept) unkept = 0;
      }
    }
  } catch (const Error&) {
    // What it measured last is lost; its part is done nevertheless.
  }
}

}  // namespace headrace::reader::service
