// Fuzzes the service's messages: any bytes are refused by an Error or read as a message that has
// one form, which a dispatcher, a worker and a client in the midst of a job, and a pool, take
// without harm.
// Inputs get a valid header first, so that they come past it.
//
// fuzz run: share=2 length=4096
// fuzz sources: reader/pipeline/delivery/checkpoint.cc reader/pipeline/delivery/ledger.cc
// fuzz sources: reader/pipeline/delivery/row_set.cc
// fuzz sources: reader/service/message.cc reader/service/split_board.cc reader/service/job.cc
// fuzz sources: reader/service/dispatcher.cc reader/service/unit_order.cc reader/service/client.cc
// fuzz sources: reader/service/worker.cc reader/service/pool.cc
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "reader/service/client.h"
#include "reader/service/dispatcher.h"
#include "reader/service/pool.h"
#include "reader/service/worker.h"

namespace {

using namespace headrace;
using namespace headrace::reader;
using namespace headrace::reader::service;

// The body of the input as a message of the kind that its first byte says.
std::string Sealed(const uint8_t* data, size_t size) {
  std::string text = Serialize(Again{});
  text.append(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto kind = static_cast<uint16_t>(1 + data[0] % std::variant_size_v<Message>);
  const auto bytes = static_cast<uint32_t>(size - 1);
  std::memcpy(text.data() + 6, &kind, sizeof kind);
  std::memcpy(text.data() + 8, &bytes, sizeof bytes);
  const uint64_t sum =
      XXH3_64bits_withSeed(text.data() + 24, size - 1, XXH3_64bits(text.data(), 16));
  std::memcpy(text.data() + 16, &sum, sizeof sum);
  return text;
}

void Take(const Message& message) {
  const std::vector<RowRange> splits = {{0, 10}, {10, 0}, {10, 5}};
  DispatcherOptions options;
  options.job = {2, 2, splits, {}, 100};
  options.board = {Mode::kIndependent, 2, 2, 4};
  Dispatcher dispatcher(std::move(options));
  Client client(ClientOptions{.rank = 0, .ranks = 2, .instance = 1});
  Worker worker(WorkerOptions{.instance = 3});
  dispatcher.Handle(1, client.Connected(), 0);
  Join other;
  other.rank = 1;
  other.ranks = 2;
  other.instance = 2;
  for (const Addressed& one : dispatcher.Handle(2, other, 0))
    if (one.peer == 1) client.Handle(one.message);
  for (const Addressed& one : dispatcher.Handle(3, worker.Connected(), 0))
    worker.Handle(one.message);
  for (const uint64_t peer : {1, 2, 3, 4}) {
    dispatcher.Handle(peer, message, 1);
    dispatcher.Handle(3, Ask{100, 1}, 2);
  }
  dispatcher.status();
  worker.Handle(message);
  while (const auto taken = worker.Take()) worker.Place(taken->local, 1, 1);
  client.Handle(message);
  if (const auto* report = std::get_if<Report>(&message)) client.Admit(100, report->admitted);
}

void Share(const Message& message) {
  Pool pool;
  pool.Handle(1, Offer{1, "a", 3, {{"/x", 1}}}, 1);
  pool.Handle(2, Want{"x", "/x", "a", "o", 2, 2}, 1);
  for (const uint64_t peer : {1, 2, 3}) pool.Handle(peer, message, 2);
  uint64_t lent = 0;
  for (const Addressed& one : pool.Tick(1'000'000'000))
    if (const auto* assign = std::get_if<Assign>(&one.message))
      for (const WorkersAt& some : assign->workers) lent += some.workers;
  HR_CHECK(lent <= pool.status().workers, "no more than there are");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  for (const bool sealed : {false, true}) {
    const std::string text =
        sealed ? Sealed(data, size) : std::string(reinterpret_cast<const char*>(data), size);
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()),
                                         text.size());
    try {
      const Message message = ParseMessage(bytes);
      HR_CHECK(Serialize(message) == text, "a message has one form");
      Take(message);
      Share(message);
    } catch (const Error& error) {
      const ExitCode code = error.code();
      HR_CHECK(code == ExitCode::kBadData || code == ExitCode::kUsage, error.what());
    }
  }
  return 0;
}
