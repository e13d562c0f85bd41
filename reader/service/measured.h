// MeasuredSource: what a process of a job has measured of itself, for the dispatcher to keep. The
// service carries the bytes and knows nothing of them; whoever starts a worker or a client gives
// the source (collectors/shipper.h).
#pragma once
#include <optional>

#include "reader/service/message.h"

namespace headrace::reader::service {

class ControlConnection;

// Called by the thread of the control connection alone. A call takes a few milliseconds at most.
class MeasuredSource {
 public:
  virtual ~MeasuredSource() = default;
  // A connection stands, on which this process is `instance`: what was said before and is not kept
  // is to be said again.
  virtual void Connected(uint64_t instance) = 0;
  // What is to be said now, if anything. `last`: nothing is measured after this.
  virtual std::optional<Measured> Next(bool last) = 0;
  virtual void Handle(const Kept& kept) = 0;
};

// Says what is due. `source` may be null, here and below.
void SayMeasured(MeasuredSource* source, ControlConnection* connection);
// True when the message is for the source, which has it then.
bool HearKept(MeasuredSource* source, const Message& message);
// Says the rest, and waits for up to a second until it is kept.
void SayLastMeasured(MeasuredSource* source, ControlConnection* connection);

}  // namespace headrace::reader::service
