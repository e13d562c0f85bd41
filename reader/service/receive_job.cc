#include "reader/service/receive_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"
#include "reader/batch/rebatch.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/receive_batch.h"
#include "reader/pipeline/stop_signal.h"
#include "reader/service/client.h"
#include "reader/service/connection_room.h"
#include "reader/service/control.h"
#include "reader/service/job_folder.h"
#include "reader/service/process_name.h"
#include "reader/service/unit_check.h"
#include "reader/service/unit_order.h"
#include "reader/service/wakeup.h"

namespace headrace::reader::service {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(50);
constexpr auto kAfterSilence = std::chrono::milliseconds(100);
constexpr int64_t kLongestWaitNs = 10'000'000'000;  // the longest wait for other ranks to know
constexpr int kPollMs = 50;                         // between reports
constexpr int64_t kLastWordNs = 1'000'000'000;  // the longest wait for the dispatcher to hear it
constexpr size_t kMostSaid = 100;  // lines about workers that are kept, to say each once

// A worker's connection.
struct WorkerThread {
  std::thread thread;
  std::atomic<bool> has_ended{false};
};

}  // namespace

std::string TextOfRanks(std::span<const uint32_t> ranks) {
  constexpr size_t kMostNamed = 10;
  const auto named = ranks.first(std::min(ranks.size(), kMostNamed));
  const size_t others = ranks.size() - named.size();
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "),
                     others == 0 ? "" : fmt::format(" and {} more", others));
}

struct ReceiveJob::State {
  State(ReceiveJobOptions given, std::unique_ptr<Consumer> taker);

  void WakeAll() {
    changed.notify_all();
    room.notify_all();
  }
  bool Stopped() const { return stop.stopped() || (options.interrupted && options.interrupted()); }
  void Fail(std::exception_ptr first);
  void Note(const std::string& text) const {
    if (options.note) options.note(text);
  }
  std::string RankText() const { return fmt::format("rank {}/{}", options.rank, options.ranks); }
  // Each on its own thread.
  void Control();
  void Accept();
  void Receive(const std::shared_ptr<Receiver>& from);
  void Consume();

  bool MayLeave();
  void CheckJoining();
  bool TalkTo(ControlConnection* connection);
  void SayFinished(ControlConnection* connection);
  std::unique_ptr<ControlConnection> ConnectControl(std::string* why);
  void Listen(const ControlConnection& through, const DeliveryAddress& to);
  void Take(const std::shared_ptr<Receiver>& worker);
  void NoteOnce(const std::string& text);
  void Hear(const Message& message);
  bool Admit(const Receiver& from, std::optional<uint64_t> features, TensorBatch&& unit);
  void Deliver(TensorBatch&& batch, int64_t wait_begin);
  void Save();
  void SaveInterrupted();
  std::optional<TensorBatch> NextUnit(int64_t* wait_begin);

  const ReceiveJobOptions options;
  const std::unique_ptr<Consumer> consumer;
  std::list<WorkerThread> workers;  // the accepting thread alone
  uint32_t stage, receive, deserialize, consumer_stage, rebatch_account, consumer_account;
  StopSignal stop;
  Wakeup wakeup;  // of the control thread
  std::atomic<uint64_t> bytes{0};
  std::atomic<bool> is_done{false};      // nothing is consumed any more
  std::atomic<bool> is_finished{false};  // all is delivered, and saved
  std::atomic<int64_t> done_ns{0};

  mutable std::mutex mutex;          // guards the following
  std::condition_variable changed;   // a unit is there, or something else changed
  std::condition_variable room;      // for a unit: one place wakes one worker's thread
  std::optional<Listener> listener;  // once set, the accepting thread's
  std::optional<Client> client;
  std::deque<TensorBatch> units;
  std::set<std::string> said;            // of workers
  std::optional<UnitOrder> order;        // of units that wait for their turn, if they have one
  std::atomic<bool> keeps_order{false};  // there is one
  std::exception_ptr error;
  PipelineProgress progress;
  std::vector<uint32_t> missing;  // ranks, as the dispatcher last said
  int64_t joining_ns = 0;
  bool has_said_finished = false;      // on this connection; the control thread alone
  std::optional<Rebatcher> rebatcher;  // once the job has started; the consumer's thread alone
  uint64_t since_save = 0;
};

ReceiveJob::State::State(ReceiveJobOptions given, std::unique_ptr<Consumer> taker)
    : options(std::move(given)), consumer(std::move(taker)) {
  std::vector<Checkpoint> saved;
  const std::string& path = options.checkpoint.path;
  std::error_code ignored;
  if (!path.empty() && std::filesystem::exists(path, ignored)) {
    if (!options.checkpoint.resume)
      throw Error(ExitCode::kUsage, "exists", path,
                  "add --resume to go on from it, or remove it to start from the first row");
    saved.push_back(ReadCheckpoint(path));
    consumer->LoadState(saved.back().consumer_state);
    progress.resumed = true;
  }
  client.emplace(ClientOptions{.rank = options.rank,
                               .ranks = options.ranks,
                               .instance = RandomInstance(),
                               .writes_checkpoints = !path.empty(),
                               .host = fmt::format("{}, process {}", HostName(), getpid())},
                 std::move(saved));
  progress.fraction = -1;
  hr_account_open("consume");
  stage = hr_stage("receive", 1, 0);
  receive = hr_operator("receive", "receive", stage);
  deserialize = hr_operator("deserialize", "deserialize", stage);
  consumer_stage = hr_stage("consumer", 1, 1);
  consumer->RegisterAccounts(consumer_stage);
  rebatch_account = hr_operator("rebatch", "rebatch", consumer_stage);
  consumer_account = hr_operator("consumer", "consumer", consumer_stage);
}

void ReceiveJob::State::Fail(std::exception_ptr first) {
  {
    std::lock_guard lock(mutex);
    if (!error) error = std::move(first);
  }
  stop.Stop();
  WakeAll();
  wakeup.Wake();
}

// What is delivered stays so; but while a rank does not know that all is admitted, it may need this
// one in a new term.
bool ReceiveJob::State::MayLeave() {
  if (!is_done) return false;
  if (MonotonicNs() - done_ns > kLongestWaitNs) return true;
  std::lock_guard lock(mutex);
  return client->may_leave() || !client->has_ended();
}

// A dispatcher or a rank that does not come is named.
void ReceiveJob::State::CheckJoining() {
  const int64_t now = MonotonicNs();
  std::lock_guard lock(mutex);
  if (client->state() != Client::State::kJoining || client->has_ended()) joining_ns = now;
  if (now - joining_ns < options.join_timeout_ns) return;
  const std::string who =
      missing.empty() ? "the dispatcher of " + options.place->text() : TextOfRanks(missing);
  throw Error(ExitCode::kFailure,
              fmt::format("waited {} s for {}", options.join_timeout_ns / 1'000'000'000, who),
              RankText(),
              missing.empty() ? "start it, or raise --join-timeout"
                              : "start what is missing, or all ranks again, each from its "
                                "checkpoint");
}

// Talks to the dispatcher, or to the next one, until the rank's part is done.
void ReceiveJob::State::Control() {
  std::unique_ptr<ControlConnection> connection;
  bool has_noted = false;
  std::string lost;  // what was last said of one that is gone
  try {
    joining_ns = MonotonicNs();
    while (!Stopped() && !MayLeave()) {
      CheckJoining();
      if (!connection) {
        std::string why;
        connection = ConnectControl(&why);
        if (!connection) {
          if (!std::exchange(has_noted, true))
            Note(fmt::format("waits for the dispatcher of {}{}{}", options.place->text(),
                             why.empty() ? "" : ": ", why));
          std::this_thread::sleep_for(kLookAgain);
          continue;
        }
        has_said_finished = false;
        std::lock_guard lock(mutex);
        const Join join = client->Connected();
        connection->Send(join);
        if (options.measured) options.measured->Connected(join.instance);
      }
      if (!TalkTo(connection.get())) {
        // One that says nothing comes and goes as fast as it is called.
        if (!connection->has_spoken()) std::this_thread::sleep_for(kAfterSilence);
        const std::string text = TextOfLost(*connection);
        if (connection->has_spoken() || text != lost) Note(text);
        lost = text;
        connection.reset();
        has_noted = true;
      }
    }
    if (connection && is_finished) SayFinished(connection.get());
    if (connection) SayLastMeasured(options.measured.get(), connection.get());
  } catch (...) {
    Fail(std::current_exception());
  }
  WakeAll();
}

// Null when there is no dispatcher now. The first connection tells where batches can come from.
std::unique_ptr<ControlConnection> ReceiveJob::State::ConnectControl(std::string* why) {
  JobPlace::Connected connected = options.place->Connect([this] { return Stopped(); }, why);
  if (connected.control && !listener) Listen(*connected.control, connected.to);
  return std::move(connected.control);
}

void ReceiveJob::State::Listen(const ControlConnection& through, const DeliveryAddress& to) {
  DeliveryAddress address;
  if (!options.place->folder().empty()) {
    address.kind = options.through_shared_memory ? DeliveryKind::kShm : DeliveryKind::kUnix;
    address.path = fmt::format("{}/rank-{}-{}", options.place->folder(), options.rank, getpid());
  } else if (options.through_shared_memory) {
    throw Error(ExitCode::kUsage, "shared memory is for a job of this machine",
                options.place->text(), "give the job's name or folder, or leave it out");
  } else if (options.listen.empty()) {
    address = {to.kind, {}, {LocalAddress(through.fd()).host, 0}};
  } else {
    address = {to.kind, {}, ParseHostPort(options.listen)};
    options.place->CheckExposed(address);
  }
  std::lock_guard lock(mutex);
  listener.emplace(address, options.place->credentials());
  constexpr size_t kOfARing = 3;  // its socket and its memory
  listener->Bound(
      RoomForConnections(options.most_workers, options.through_shared_memory ? kOfARing : 1),
      [this] {
        std::erase_if(workers, [](WorkerThread& one) {
          if (!one.has_ended) return false;
          one.thread.join();
          return true;
        });
        return workers.size();
      });
  if (IsNetwork(address.kind))
    CheckCertificateNames(*options.place->credentials(), listener->address());
  client->TakesAt(FormatDeliveryAddress(listener->address()));
  changed.notify_all();
}

// The dispatcher takes a rank that goes without a word for one that died.
void ReceiveJob::State::SayFinished(ControlConnection* connection) {
  const int64_t until = MonotonicNs() + kLastWordNs;
  try {
    while ((!has_said_finished || connection->unsent_bytes() > 0) && MonotonicNs() < until)
      if (!TalkTo(connection)) return;
  } catch (const Error&) {
    // What it has to say comes too late: this rank's part is done.
  }
}

// One turn; false when the connection has ended.
bool ReceiveJob::State::TalkTo(ControlConnection* connection) {
  for (const Message& message : connection->Receive(kPollMs, wakeup.fd())) {
    if (HearKept(options.measured.get(), message)) continue;
    Hear(message);
    std::lock_guard lock(mutex);
    if (const auto answer = client->Handle(message)) connection->Send(*answer);
    if (client->state() != Client::State::kOver) continue;
    const Refused& end = client->end();
    // A dispatcher names the rank itself where it does not like its Join.
    const bool is_named = end.reason.starts_with(RankText() + ":");
    throw Error(static_cast<ExitCode>(end.code), end.reason, is_named ? "" : RankText(), end.fix);
  }
  wakeup.Clear();
  WakeAll();
  if (connection->is_closed()) return false;
  SayMeasured(options.measured.get(), connection);
  std::lock_guard lock(mutex);
  if (auto report = client->TakeReport()) {
    report->wait_ns = progress.wait_ns;
    report->compute_ns = progress.compute_ns;
    has_said_finished |= report->progress >= Report::kFinished;
    connection->Send(*report);
  }
  return true;
}

// What is worth a line.
void ReceiveJob::State::Hear(const Message& message) {
  if (const auto* waiting = std::get_if<Waiting>(&message)) {
    {
      std::lock_guard lock(mutex);
      missing = waiting->missing;
    }
    Note("waits for " + TextOfRanks(waiting->missing));
  } else if (const auto* started = std::get_if<Started>(&message)) {
    Note(fmt::format("rank {}/{} begins: generation {}, term {}", options.rank, options.ranks,
                     started->generation, started->term));
  }
}

// The same worker may be refused again and again.
void ReceiveJob::State::NoteOnce(const std::string& text) {
  {
    std::lock_guard lock(mutex);
    if (said.size() >= kMostSaid) said.clear();
    if (!said.insert(text).second) return;
  }
  Note(text);
}

void ReceiveJob::State::Take(const std::shared_ptr<Receiver>& worker) {
  WorkerThread& one = workers.emplace_back();
  try {
    one.thread = std::thread([this, from = worker, &one]() mutable {
      Receive(from);
      from.reset();
      one.has_ended = true;
    });
  } catch (const std::system_error& error) {  // its units come again, from another one
    workers.pop_back();
    NoteOnce(
        fmt::format("disconnected the worker (process {}): no thread for it ({}); raise the limit "
                    "of processes ('ulimit -u')",
                    worker->producer_pid(), error.code().message()));
  }
}

void ReceiveJob::State::Accept() {
  const auto note = [this](const std::string& text) { NoteOnce(text); };
  const auto ends = [this] { return is_done || Stopped(); };
  {
    std::unique_lock lock(mutex);
    while (!listener && !ends()) changed.wait_for(lock, kLookAgain);
  }
  try {
    while (!ends()) {
      std::shared_ptr<Receiver> worker = listener->Accept(ends, false, note);
      if (!worker) break;
      Take(worker);
    }
  } catch (...) {
    Fail(std::current_exception());
  }
  for (WorkerThread& one : workers) one.thread.join();
}

// A worker that ends, or breaks the rules, is the dispatcher's business: its rows come again.
void ReceiveJob::State::Receive(const std::shared_ptr<Receiver>& from) {
  account::ThreadScope thread(stage);
  FrameDecoder decoder;
  UnitCheck check;
  try {
    while (!decoder.ended() && !is_done && !Stopped()) {
      std::optional<TensorBatch> unit =
          ReceiveBatch(from.get(), &decoder, {receive, deserialize}, &bytes);
      if (!unit) continue;
      const std::optional<uint64_t> features = check.FeaturesOf(*unit);
      if (keeps_order) OwnMemory(&*unit);  // the one whose turn it is may be behind it in the ring
      if (!Admit(*from, features, std::move(*unit))) return;
      from->Acknowledge(decoder.batches());
    }
  } catch (const Error& error) {
    if (error.code() == ExitCode::kBadData)
      NoteOnce(fmt::format("the worker (process {}) is disconnected: {}", from->producer_pid(),
                           error.what()));
  } catch (const std::bad_alloc&) {
    Fail(std::make_exception_ptr(Error(ExitCode::kResources, "out of memory")));
  }
}

// Waits for room, and for the term that runs; then the unit is in the queue, or dropped. False when
// it ends, or there is none and the worker has hung up: its rows come again, and whoever takes its
// place needs its thread. `features`: of the unit.
bool ReceiveJob::State::Admit(const Receiver& from, std::optional<uint64_t> features,
                              TensorBatch&& unit) {
  std::unique_lock lock(mutex);
  for (bool has_waited = false; !is_done && !Stopped(); has_waited = true) {
    if (has_waited) {
      if (from.has_hung_up()) {
        room.notify_one();  // the place that this thread was woken for is another's
        return false;
      }
      room.wait_for(lock, kLookAgain);
    }
    if (!order && client->has_started() && client->job().in_file_order != 0) {
      order.emplace(client->admitted(), client->job().epochs, client->job().unit_rows, options.rank,
                    options.ranks);
      keeps_order = true;
    }
    // Units out of turn do not count: the dispatcher leases few of those, and the one that all wait
    // for may be behind them.
    if (units.size() >= options.queue) continue;
    // One of another term may be of another pipeline, and is dropped.
    const bool is_of_this =
        unit.term == client->term() && client->state() != Client::State::kJoining;
    if (is_of_this && features.value_or(client->job().features) != client->job().features)
      throw Error(ExitCode::kBadData, "a unit has other features than the job", {},
                  "use the same headrace for all processes of a job");
    switch (client->Admit(unit.term, unit.spans)) {
      case Client::Admission::kWait:
        continue;
      case Client::Admission::kHave:
      case Client::Admission::kStale:
        room.notify_one();  // as above
        return true;
      case Client::Admission::kNew:
        if (!order) {
          units.push_back(std::move(unit));
        } else if (!unit.spans.empty()) {
          OwnMemory(&unit);  // those of before the job began; its turn may be long after
          order->Add(std::move(unit));
          while (auto next = order->Next()) units.push_back(std::move(*next));
        }
        changed.notify_all();
        if (units.size() < options.queue) room.notify_one();
        return true;
    }
  }
  return false;
}

// Nothing when all rows of the job were taken, or it ends.
std::optional<TensorBatch> ReceiveJob::State::NextUnit(int64_t* wait_begin) {
  std::unique_lock lock(mutex);
  account::WaitScope wait(consumer_account, HR_WAIT_IN);
  while (units.empty() && !client->has_ended() && !Stopped()) changed.wait_for(lock, kLookAgain);
  if (Stopped() || units.empty()) return std::nullopt;
  if (!rebatcher) {
    rebatcher.emplace(client->job().batch_rows, client->job().in_file_order != 0);
    *wait_begin = MonotonicNs();  // the time before the job began is nobody's wait
  }
  TensorBatch unit = std::move(units.front());
  units.pop_front();
  room.notify_one();
  return unit;
}

void ReceiveJob::State::Consume() {
  account::ThreadScope thread(consumer_stage);
  int64_t wait_begin = MonotonicNs();
  const auto deliver = [&](TensorBatch&& batch) {
    Deliver(std::move(batch), wait_begin);
    wait_begin = MonotonicNs();
  };
  while (auto unit = NextUnit(&wait_begin)) {
    if (unit->spans.empty()) continue;
    rebatcher->Add(std::move(*unit), deliver);
    if (Stopped()) return SaveInterrupted();
  }
  if (!Stopped() && rebatcher) rebatcher->Finish(deliver);
  if (Stopped()) return SaveInterrupted();
  if (!options.checkpoint.path.empty()) Save();
  std::lock_guard lock(mutex);
  client->Finish();
  is_finished = true;
}

// Nothing was cut short: what was delivered and the consumer's state belong together.
void ReceiveJob::State::SaveInterrupted() {
  if (!stop.stopped() && !options.checkpoint.path.empty()) Save();
}

void ReceiveJob::State::Deliver(TensorBatch&& batch, int64_t wait_begin) {
  if (Stopped()) return;  // it comes again, to whoever goes on
  const std::vector<RowSpan> spans = batch.spans;
  const uint64_t rows = batch.rows;
  const int64_t begin = MonotonicNs();
  if (rows > 0) {
    account::OperatorScope scope(consumer_account);
    Element element;
    element.rows = rows;
    element.bytes = batch.MemoryBytes();
    element.payload = std::move(batch);
    const uint64_t in = element.bytes;
    consumer->Step(std::move(element), &stop);
    scope.Done(rows, in, 0);
    if (stop.stopped()) return;  // its step was cut short
  }
  const int64_t done = MonotonicNs();
  if (rows > 0)
    hr_step(static_cast<uint64_t>(begin - wait_begin), static_cast<uint64_t>(done - begin), rows);
  {
    std::lock_guard lock(mutex);
    client->Delivered(spans, rows);
    if (rows > 0) {
      progress.Took(rows, begin - wait_begin, done - begin, done);
    } else {
      progress.wait_ns += static_cast<uint64_t>(begin - wait_begin);
    }
  }
  if (options.checkpoint.path.empty() || ++since_save < options.checkpoint.every) return;
  Save();
}

void ReceiveJob::State::Save() {
  since_save = 0;
  Checkpoint save;
  {
    std::lock_guard lock(mutex);
    // Its place may be another process's, and the file with it.
    if (!client->has_started() || client->state() == Client::State::kOver) return;
    save = client->Save(consumer->SaveState());
  }
  WriteCheckpoint(options.checkpoint.path, save);
  std::lock_guard lock(mutex);
  client->SaveIsDurable();
}

ReceiveJob::ReceiveJob(ReceiveJobOptions options, std::unique_ptr<Consumer> consumer)
    : state_(std::make_unique<State>(std::move(options), std::move(consumer))) {}

ReceiveJob::~ReceiveJob() = default;

void ReceiveJob::Run() {
  State& state = *state_;
  std::thread accepting([&] { state.Accept(); });
  std::thread control([&] { state.Control(); });
  try {
    state.Consume();
  } catch (const Error& error) {
    state.Fail(std::make_exception_ptr(error.Within("consumer")));
  } catch (...) {
    state.Fail(std::current_exception());
  }
  state.done_ns = MonotonicNs();
  state.is_done = true;
  state.wakeup.Wake();
  state.WakeAll();
  control.join();
  accepting.join();
  std::lock_guard lock(state.mutex);
  if (state.error) std::rethrow_exception(state.error);
}

PipelineProgress ReceiveJob::progress() const {
  std::lock_guard lock(state_->mutex);
  return state_->progress;
}

uint64_t ReceiveJob::bytes() const { return state_->bytes; }

}  // namespace headrace::reader::service
