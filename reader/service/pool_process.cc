#include "reader/service/pool_process.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "reader/service/connection_room.h"
#include "reader/service/job_folder.h"

namespace headrace::reader::service {
namespace {

constexpr int64_t kPoolTickNs = 100'000'000;
constexpr int kPoolWaitMs = 100;

}  // namespace

struct PoolProcess::State {
  explicit State(PoolProcessOptions given)
      : options(std::move(given)),
        server(DispatcherSocket(options.folder),
               {.peers = RoomForConnections(kMostControlConnections)},
               "another process has this pool, or a job of this name",
               "end it, or give the pool another name") {
    Listen(options, &server);
  }

  void Send(const std::vector<Addressed>& messages) {
    for (const Addressed& one : messages) server.Send(one.peer, one.message);
  }
  void Take(const ControlServer::Event& event);
  Answer Obey(const Command& command);
  void Turn();

  PoolProcessOptions options;
  Pool pool;
  ControlServer server;
  bool was_told_to_end = false, is_parting = false;
  int64_t ticked_ns = 0;
};

void PoolProcess::State::Take(const ControlServer::Event& event) {
  const int64_t now = MonotonicNs();
  for (const Message& message : event.messages) {
    if (const auto* command = std::get_if<Command>(&message)) {
      server.Send(event.peer, Obey(*command));
    } else if (std::holds_alternative<Submit>(message)) {
      server.Send(event.peer,
                  Answer{static_cast<uint32_t>(ExitCode::kUsage),
                         "this is a pool of workers: start the job by service up --pool"});
    } else {
      Send(pool.Handle(event.peer, message, now));
    }
  }
  if (!event.is_gone) return;
  if (!event.why.empty() && options.note) options.note("disconnected a process: " + event.why);
  pool.Gone(event.peer, now);
}

Answer PoolProcess::State::Obey(const Command& command) {
  if (command.verb == "status")
    return {0, options.describe ? options.describe(pool.status()) : std::string()};
  if (command.verb != "end")
    return {static_cast<uint32_t>(ExitCode::kUsage), "a pool knows no such command"};
  was_told_to_end = true;
  return {0, ""};
}

void PoolProcess::State::Turn() {
  for (const auto& event : server.Wait(kPoolWaitMs)) Take(event);
  const int64_t now = MonotonicNs();
  if (now - ticked_ns < kPoolTickNs) return;
  ticked_ns = now;
  Send(pool.Tick(now));
  if (options.watch) options.watch(is_parting);
}

PoolProcess::PoolProcess(PoolProcessOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

PoolProcess::~PoolProcess() = default;

bool PoolProcess::Run() {
  State& state = *state_;
  const auto interrupted = [&] { return state.options.interrupted && state.options.interrupted(); };
  while (!interrupted() && !state.was_told_to_end) state.Turn();
  state.is_parting = true;
  state.Send(state.pool.BeginParting());
  if (state.options.note && state.pool.has_machines())
    state.options.note(fmt::format(
        "ends once workers have finished the splits that they have begun, after {} s at most",
        state.options.parting_ns / 1'000'000'000));
  const int64_t until = MonotonicNs() + state.options.parting_ns;
  while (state.pool.has_machines() && MonotonicNs() < until) state.Turn();
  return state.was_told_to_end;
}

}  // namespace headrace::reader::service
