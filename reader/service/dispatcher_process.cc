#include "reader/service/dispatcher_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/engine/table_checks.h"
#include "reader/pipeline/fingerprint.h"
#include "reader/service/connection_room.h"
#include "reader/service/control.h"
#include "reader/service/job_folder.h"
#include "reader/service/unit_check.h"

namespace headrace::reader::service {
namespace {

constexpr int64_t kTickNs = 100'000'000;
constexpr int kWaitMs = 100;
constexpr int64_t kPartingNs = 2'000'000'000;  // for those who are told that it is over

// Greater than that of any dispatcher before, unless the clock went back: then ranks and workers
// say so.
Term FirstTerm() {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
  return static_cast<Term>(
      duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count());
}

// What a pipeline file says of a run's own trainer and transport a job has elsewhere; one who sets
// it for a job means something.
void CheckSettingsHaveEffect(const Settings& settings) {
  for (const auto& [knob, value] : settings) {
    const bool is_ranks = knob.starts_with("consumer.") || knob == "delivery.window";
    if (is_ranks || knob == "delivery.ring" || knob == "pipeline.reorder_window")
      throw Error(ExitCode::kUsage, "does nothing in a job", fmt::format("setting '{}'", knob),
                  is_ranks
                      ? "leave it out; 'headrace consume' has options for its steps and its queue"
                      : "leave it out");
  }
}

PipelineSpec CheckedSpec(const DispatcherProcessOptions& given) {
  CheckSettingsHaveEffect(given.settings);
  const PipelineSpec whole = LoadPipeline(given.pipeline, given.settings);
  if (whole.file_order && given.mode != Mode::kLockstep)
    throw Error(ExitCode::kUsage, "keeps the table's order, which independent ranks do not",
                given.pipeline, "set pipeline.order = \"any\", or leave out --mode");
  WorkerSpec(whole);
  return whole;
}

// What a dispatcher without a job answers.
Answer TakeSubmission(const DispatcherProcessOptions& options, const Submit& submit) {
  constexpr uint32_t kMostRanks = 65536;
  DispatcherProcessOptions given = options;
  given.pipeline = submit.pipeline;
  given.settings = submit.settings;
  given.mode = static_cast<Mode>(submit.mode);
  try {
    if (submit.mode > 1 || submit.ranks == 0 || submit.ranks > kMostRanks)
      throw Error(ExitCode::kUsage, "there is no such mode, or number of ranks", submit.pipeline);
    CheckedSpec(given);
  } catch (const Error& error) {
    return {static_cast<uint32_t>(error.code()), error.what()};
  }
  return {0, ""};
}

DispatcherOptions OptionsOf(const DispatcherProcessOptions& given) {
  const PipelineSpec whole = CheckedSpec(given);
  const PipelineSpec spec = WorkerSpec(whole);
  SourceContext context;
  context.stopped = given.interrupted;
  dwrf::OpenOptions opening;
  if (!spec.keys.empty()) opening.keys = dwrf::KeyRing::Load(spec.keys);
  const Table table = OpenTable(spec.table, spec.io, context, opening);
  dwrf::CheckProjection(table.files[0]->schema(), table.files[0]->source().name(), spec.projection);
  if (table.splits.size() > kMostSplits)
    throw Error(
        ExitCode::kResources,
        fmt::format("has {} stripes, a job's table at most {}", table.splits.size(), kMostSplits),
        given.pipeline, "make larger stripes");
  DispatcherOptions options;
  options.job.ranks = given.ranks;
  options.job.epochs = spec.epochs == 0 ? kEndlessEpochs : spec.epochs;
  options.job.splits = RangesOf(table.splits);
  options.job.fingerprint = FingerprintOf(table, spec);
  options.job.first_term = FirstTerm();
  options.board.mode = given.mode;
  options.board.ranks = given.ranks;
  options.board.epochs = options.job.epochs;
  options.board.in_file_order = whole.file_order;
  options.board.unit_rows = spec.unit_rows;
  options.board.seed = spec.seed;
  options.batch_rows = spec.batch_rows;
  const std::filesystem::path path = std::filesystem::absolute(given.pipeline);
  options.session.path = path.string();
  options.session.folder = path.parent_path().string();
  options.session.text = spec.text;
  options.session.settings = given.settings;
  options.session.fingerprint = options.job.fingerprint;
  options.session.features = FeaturesOf(FinalColumns(table.files[0]->schema(), spec), spec.label);
  options.session.unit_rows = spec.unit_rows;
  try {
    CheckStatesFit(options);
  } catch (const Error& error) {
    throw error.Within(given.pipeline);
  }
  return options;
}

// Workers never take the places of ranks, nor of commands.
DispatcherOptions WithPlaces(DispatcherOptions job, size_t most_connections) {
  constexpr uint64_t kMostOthers = 64;  // commands, and processes that ranks replace one by one
  const uint64_t kept = job.job.ranks + std::min<uint64_t>(kMostOthers, most_connections / 4);
  if (most_connections <= kept)
    throw Error(ExitCode::kResources,
                fmt::format("may have {} connections, too few for {} rank{} and a worker",
                            most_connections, job.job.ranks, job.job.ranks == 1 ? "" : "s"),
                "the dispatcher", FixForMoreConnections(most_connections, kMostControlConnections));
  job.most_workers = std::min<uint64_t>(job.most_workers, most_connections - kept);
  job.more_workers_fix = FixForMoreConnections(most_connections, kMostControlConnections);
  return job;
}

}  // namespace

struct DispatcherProcess::State {
  State(DispatcherProcessOptions given, DispatcherOptions job, size_t most_connections)
      : options(std::move(given)),
        dispatcher(WithPlaces(std::move(job), most_connections)),
        server(DispatcherSocket(options.folder), {.peers = most_connections}) {
    Listen(options, &server);
  }

  bool Interrupted() const { return options.interrupted && options.interrupted(); }
  void Send(std::vector<Addressed>&& messages) {
    for (const Addressed& one : messages) server.Send(one.peer, one.message);
  }
  void Take(const ControlServer::Event& event);
  Answer Obey(const Command& command);
  void TakeMeasured(uint64_t peer, const Measured& measured);
  void SayKept();
  void SayRefused(const ControlServer::Event& event);
  void Watch();
  void WatchLast();
  void Part();

  DispatcherProcessOptions options;
  Dispatcher dispatcher;
  ControlServer server;
  bool was_told_to_end = false;
  std::string refused;  // what was last said of a peer whose bytes are no messages
  std::map<uint64_t, uint64_t> measuring;  // peers by the instance that they measure
};

void DispatcherProcess::State::Take(const ControlServer::Event& event) {
  const int64_t now = MonotonicNs();
  for (const Message& message : event.messages) {
    if (const auto* command = std::get_if<Command>(&message)) {
      server.Send(event.peer, Obey(*command));
    } else if (std::holds_alternative<Submit>(message)) {
      server.Send(event.peer, Answer{static_cast<uint32_t>(ExitCode::kUsage),
                                     "this dispatcher has a job: " + options.pipeline});
    } else if (const auto* measured = std::get_if<Measured>(&message)) {
      TakeMeasured(event.peer, *measured);
    } else {
      Send(dispatcher.Handle(event.peer, message, now));
    }
  }
  if (!event.is_gone) return;
  SayRefused(event);
  std::erase_if(measuring, [&](const auto& one) { return one.second == event.peer; });
  Send(dispatcher.Gone(event.peer, now));
}

void DispatcherProcess::State::TakeMeasured(uint64_t peer, const Measured& measured) {
  if (!options.measured || measured.bytes.size() > kMaxMeasuredBytes)
    return server.Send(peer, Kept{measured.instance, measured.number});
  const auto known = measuring.find(measured.instance);
  if (known == measuring.end() || known->second != peer) {
    // A connection is of one process: it could name ever new ones.
    std::erase_if(measuring, [&](const auto& one) { return one.second == peer; });
    measuring[measured.instance] = peer;
  }
  options.measured(Measured(measured));
}

// Once for each reason: it may come again and again.
void DispatcherProcess::State::SayRefused(const ControlServer::Event& event) {
  if (event.why.empty() || event.why == refused || !options.note) return;
  refused = event.why;
  options.note("disconnected a process: " + event.why);
}

void DispatcherProcess::State::SayKept() {
  if (!options.kept) return;
  for (const Kept& kept : options.kept())
    if (const auto peer = measuring.find(kept.instance); peer != measuring.end())
      server.Send(peer->second, kept);
}

Answer DispatcherProcess::State::Obey(const Command& command) {
  const auto usage = static_cast<uint32_t>(ExitCode::kUsage);
  if (command.verb == "status")
    return {0, options.describe ? options.describe(dispatcher.status()) : ""};
  if (command.verb == "end") {
    was_told_to_end = true;
    return {0, ""};
  }
  if (command.verb != "drain") return {usage, "this dispatcher knows no such command"};
  uint64_t worker = 0;
  const char* const end = command.argument.data() + command.argument.size();
  const auto [stop, error] = std::from_chars(command.argument.data(), end, worker);
  std::vector<Addressed> out;
  if (error != std::errc() || stop != end || !dispatcher.Drain(worker, &out))
    return {usage, "there is no such worker"};
  Send(std::move(out));
  return {0, ""};
}

// Throws what ends the job, once ranks and workers know.
void DispatcherProcess::State::Watch() {
  if (!options.watch) return;
  try {
    Send(options.watch(&dispatcher));
  } catch (const Error&) {
    Part();
    throw;
  }
}

// What happened since it was watched last.
void DispatcherProcess::State::WatchLast() {
  dispatcher.BeginEnding(MonotonicNs());
  Watch();
}

// Says that it is over, and waits a moment for those who listen.
void DispatcherProcess::State::Part() {
  Send(dispatcher.Part({static_cast<uint32_t>(ExitCode::kFailure), "the job was ended",
                        "start it and all its ranks again, each from its checkpoint"}));
  const int64_t until = MonotonicNs() + kPartingNs;
  while (dispatcher.has_peers() && MonotonicNs() < until) {
    for (const auto& event : server.Wait(kWaitMs)) {
      for (const Message& message : event.messages)  // their last words
        if (const auto* measured = std::get_if<Measured>(&message))
          TakeMeasured(event.peer, *measured);
      if (event.is_gone) dispatcher.Gone(event.peer, MonotonicNs());
    }
    SayKept();
  }
}

std::optional<Submit> AwaitSubmission(const DispatcherProcessOptions& options) {
  ControlServer server(DispatcherSocket(options.folder),
                       {.peers = RoomForConnections(kMostControlConnections)});
  Listen(options, &server);
  while (!options.interrupted || !options.interrupted()) {
    for (const auto& event : server.Wait(kWaitMs)) {
      for (const Message& message : event.messages) {
        const auto* submit = std::get_if<Submit>(&message);
        if (submit != nullptr) {
          const Answer answer = TakeSubmission(options, *submit);
          server.Send(event.peer, answer);
          if (answer.code == 0) return *submit;
        } else if (std::holds_alternative<Command>(message)) {
          server.Send(event.peer, Answer{static_cast<uint32_t>(ExitCode::kFailure),
                                         "this dispatcher has no job yet"});
        }
      }
    }
  }
  return std::nullopt;
}

DispatcherProcess::DispatcherProcess(DispatcherProcessOptions options, DispatcherOptions job)
    : state_(std::make_unique<State>(std::move(options), std::move(job),
                                     RoomForConnections(kMostControlConnections))) {}

DispatcherProcess::DispatcherProcess(DispatcherProcessOptions options)
    : DispatcherProcess(options, OptionsOf(options)) {}

DispatcherProcess::~DispatcherProcess() = default;

const DeliveryAddress* DispatcherProcess::address() const {
  const GuardedListener* const guarded = state_->server.guarded();
  return guarded == nullptr ? nullptr : &guarded->address();
}

const DispatcherOptions& DispatcherProcess::job() const { return state_->dispatcher.options(); }

bool DispatcherProcess::Run() {
  State& state = *state_;
  int64_t ticked_ns = 0;
  while (!state.dispatcher.is_over() && !state.Interrupted() && !state.was_told_to_end) {
    for (const auto& event : state.server.Wait(kWaitMs)) state.Take(event);
    state.SayKept();
    const int64_t now = MonotonicNs();
    if (now - ticked_ns >= kTickNs) {
      ticked_ns = now;
      state.Send(state.dispatcher.Tick(now));
      state.Watch();
    }
    if (const auto& failure = state.dispatcher.failure()) {
      state.WatchLast();
      state.Part();
      throw Error(static_cast<ExitCode>(failure->code), failure->reason, state.options.pipeline,
                  failure->fix);
    }
  }
  state.WatchLast();
  const bool is_over = state.dispatcher.is_over();
  if (!is_over && !state.was_told_to_end && state.options.hands_over) return false;
  state.Part();
  return is_over;
}

}  // namespace headrace::reader::service
