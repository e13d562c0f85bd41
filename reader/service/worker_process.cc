#include "reader/service/worker_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/pipeline.h"
#include "reader/service/control.h"
#include "reader/service/job_folder.h"
#include "reader/service/leased_splits.h"
#include "reader/service/process_name.h"
#include "reader/service/send_lanes.h"
#include "reader/service/unit_check.h"
#include "reader/service/unit_joiner.h"
#include "reader/service/wakeup.h"

namespace headrace::reader::service {
namespace {

constexpr int64_t kAliveNs = 1'000'000'000;
constexpr int kLookMs = 100;
// A refused worker tries again for so long. A machine that vanished is known to be after 10 s.
constexpr int64_t kFullPatienceNs = 12'000'000'000;
constexpr size_t kAhead = 2;  // splits that wait in the pipeline, besides those of the machine

// What the control thread and the pipeline share.
struct Shared {
  explicit Shared(WorkerOptions options) : worker(std::move(options)) {}
  Wakeup wakeup;
  std::mutex mutex;  // guards the following
  Worker worker;
  std::vector<Cut> cuts;  // to be said
};

// The end of the pipeline: each unit to the lane of the client that it was dealt to.
class DealUnits final : public Consumer {
 public:
  DealUnits(Shared* shared, SendLanes* lanes, uint64_t unit_rows)
      : shared_(shared), lanes_(lanes), unit_rows_(unit_rows) {}

  void SetSplits(std::vector<RowRange> splits) { splits_ = std::move(splits); }
  uint64_t made_rows() const { return made_rows_; }  // any thread
  void RegisterAccounts(uint32_t stage) override { lanes_->RegisterAccounts(stage); }

  void Step(Element&& element, StopSignal* stop) override {
    if (element.payload.Get<TensorBatch>() == nullptr)
      throw Error(ExitCode::kUsage, "only tensor batches can be delivered to another process", {},
                  "end the last stage with the operator tensorize");
    Deal(std::move(element), stop);
  }
  void TakeDropped(const std::vector<RowSpan>& spans, StopSignal* stop) override {
    for (const RowSpan& span : spans) {
      TensorBatch nothing;
      nothing.first_row = span.first;
      nothing.spans = {span};
      Element element;
      element.payload = std::move(nothing);
      Deal(std::move(element), stop);
    }
  }

 private:
  void Deal(Element&& piece, const StopSignal* stop) {
    const std::vector<RowSpan>& spans = piece.payload.As<TensorBatch>().spans;
    HR_CHECK(spans.size() == 1, "the operator batch makes batches of one unit");
    const RowSpan span = spans[0];
    const RowRange& split = splits_.at(span.split);
    const uint64_t unit = UnitOf(split, span.first, unit_rows_);
    std::optional<Worker::Route> route;
    std::optional<Element> whole;
    {
      std::lock_guard lock(shared_->mutex);
      const Lease* const lease = shared_->worker.MarkMade(span.epoch);
      if (lease == nullptr) return joiner_.Drop(span.epoch);  // it is void
      const uint64_t wanted = WantedRowsOf(lease->wanted, RowsOfUnit(split, unit, unit_rows_));
      whole = joiner_.Add(span.epoch, unit, wanted, std::move(piece));
      if (!whole) return;
      route = shared_->worker.Place(span.epoch, unit, wanted);
    }
    auto& batch = whole->payload.As<TensorBatch>();
    for (RowSpan& part : batch.spans) part.epoch = route->epoch;
    batch.term = route->term;
    const uint64_t rows = batch.rows;
    if (lanes_->Put(route->rank, std::move(*whole), stop)) made_rows_ += rows;
  }

  Shared* const shared_;
  SendLanes* const lanes_;
  const uint64_t unit_rows_;
  std::vector<RowRange> splits_;
  UnitJoiner joiner_;
  std::atomic<uint64_t> made_rows_{0};
};

class WorkerLoop {
 public:
  explicit WorkerLoop(const WorkerProcessOptions& options)
      : options_(options),
        shared_({.instance = RandomInstance(), .pid = getpid(), .host = HostName()}),
        lanes_({.cut =
                    [this](Term term, uint32_t rank) {
                      std::lock_guard lock(shared_.mutex);
                      shared_.cuts.push_back({term, rank});
                      shared_.wakeup.Wake();
                    },
                .check_address =
                    [place = options.place](const DeliveryAddress& to) { place->CheckExposed(to); },
                .warn = options.warn,
                .note = options.note}) {}
  ~WorkerLoop() { StopPipeline(); }

  bool Run() {
    try {
      do {
        while (!IsOver()) Turn();
      } while (ComesAgain());
    } catch (const Error& error) {
      // Nothing is wrong with the job where this worker is of another one, or one too many.
      if (connection_ && error.code() != ExitCode::kInterrupted && !is_of_another_job_ &&
          !lanes_.is_one_too_many())
        connection_->Send(Failed{static_cast<uint32_t>(error.code()), error.what()});
      throw;
    }
    if (shared_.worker.refusal()) {
      const Refused& refused = *shared_.worker.refusal();
      throw Error(static_cast<ExitCode>(refused.code), refused.reason, options_.place->text(),
                  refused.fix);
    }
    // Bye is said once all that it made is admitted: what the lanes still hold nobody waits for.
    if (connection_) SayLastMeasured(options_.measured.get(), connection_.get());
    return !gives_up_;
  }

 private:
  bool Interrupted() const { return options_.interrupted && options_.interrupted(); }
  bool IsOver() {
    std::lock_guard lock(shared_.mutex);
    return shared_.worker.is_over() || gives_up_;
  }

  // A dispatcher that has as many workers as it takes may not know yet that one of them is gone.
  bool ComesAgain() {
    const std::optional<Refused> refusal = RefusalNow();
    if (!refusal || refusal->code != static_cast<uint32_t>(ExitCode::kResources) || gives_up_ ||
        Interrupted())
      return false;
    const int64_t now = MonotonicNs();
    if (now - refused_ns_ > kFullPatienceNs) {  // the first time, or it was let in meanwhile
      first_refused_ns_ = now;
      if (options_.note)
        options_.note(fmt::format("tries again for {} s: {}", kFullPatienceNs / 1'000'000'000,
                                  refusal->reason));
    }
    refused_ns_ = now;
    if (now - first_refused_ns_ > kFullPatienceNs) return false;
    connection_.reset();
    connected_ns_ = now;
    usleep(kLookMs * 1000);
    std::lock_guard lock(shared_.mutex);
    shared_.worker.ForgetRefusal();
    return true;
  }

  std::optional<Refused> RefusalNow() {
    std::lock_guard lock(shared_.mutex);
    return shared_.worker.refusal();
  }

  // Once interrupted: asks to be drained, and gives up where that cannot be.
  void Leave() {
    if (!Interrupted()) return;
    const int64_t now = MonotonicNs();
    if (!connection_ || (leaves_ns_ > 0 && now - leaves_ns_ > options_.drain_ns)) {
      gives_up_ = true;
      return;
    }
    if (leaves_ns_ > 0) return;
    leaves_ns_ = now;
    connection_->Send(Drain{});
    if (options_.note) options_.note("finishes the splits that it has begun, then ends");
  }

  void Turn() {
    Leave();
    if (gives_up_ || (!connection_ && !Connect())) return;
    const std::vector<Message> messages = connection_->Receive(kLookMs, shared_.wakeup.fd());
    shared_.wakeup.Clear();
    {
      std::lock_guard lock(shared_.mutex);
      for (const Message& message : messages) {
        if (!HearKept(options_.measured.get(), message)) shared_.worker.Handle(message);
      }
    }
    if (RefusalNow()) return;  // its connection ends, which is no loss
    if (connection_->is_closed()) return Lose();
    if (pipeline_ended_) std::rethrow_exception(pipeline_error_);
    lanes_.Check();
    Follow();
    GiveBackUnmade();
    Feed();
    Say();
  }

  // One that says nothing comes and goes as fast as it is called.
  void Lose() {
    const bool has_spoken = connection_->has_spoken();
    const int64_t now = MonotonicNs();
    const std::string text = TextOfLost(*connection_);
    connection_.reset();
    if (has_spoken || now - met_ns_ > kAliveNs) connected_ns_ = now;
    if (!Interrupted() && options_.note && (has_spoken || text != lost_)) options_.note(text);
    lost_ = text;
    if (has_spoken) return;
    CheckWait();
    usleep(kLookMs * 1000);
  }

  void CheckWait() const {
    if (MonotonicNs() - connected_ns_ > options_.wait_ns)
      throw Error(ExitCode::kFailure,
                  fmt::format("waited {} s for the dispatcher", options_.wait_ns / 1'000'000'000),
                  options_.place->text(), "start it, or raise --wait");
  }

  bool Connect() {
    std::string why;
    connection_ = options_.place->Connect([this] { return Interrupted(); }, &why).control;
    if (!connection_) {
      if (options_.note && !std::exchange(has_noted_, true))
        options_.note(fmt::format("waits for the dispatcher of {}{}{}", options_.place->text(),
                                  why.empty() ? "" : ": ", why));
      CheckWait();
      usleep(kLookMs * 1000);
      return false;
    }
    met_ns_ = MonotonicNs();
    lanes_.SetCredentials(options_.place->credentials());
    std::lock_guard lock(shared_.mutex);
    const Register who = shared_.worker.Connected();
    connection_->Send(who);
    if (options_.measured) options_.measured->Connected(who.instance);
    return true;
  }

  // A new term: its clients, and at first the pipeline.
  void Follow() {
    std::optional<Session> session;
    {
      std::lock_guard lock(shared_.mutex);
      const std::optional<Session>& now = shared_.worker.session();
      // Most turns bring no other one, and it is as long as all ranks' addresses.
      if (!now || (pipeline_ && *now == session_)) return;
      session = now;
    }
    if (!pipeline_) {
      Open(*session);
    } else if (session->text != session_.text || session->settings != session_.settings ||
               session->fingerprint != session_.fingerprint) {
      is_of_another_job_ = true;
      throw Error(ExitCode::kFailure, "the job has another pipeline now", session->path,
                  "start this worker again");
    }
    if (session->term != session_.term) splits_->Clear();
    session_ = *session;
    lanes_.SetTerm(session_.term, session_.clients);
  }

  void Open(const Session& session) {
    PipelineSpec spec =
        WorkerSpec(ParsePipeline(session.text, session.path, session.folder, session.settings));
    if (spec.unit_rows != session.unit_rows)
      throw Error(ExitCode::kFailure, "the dispatcher has units of another size", session.path,
                  "use the same headrace for all processes of a job");
    const uint64_t slice_rows = SliceRows(spec);
    lanes_.SetWire(spec.delivery.wire);
    auto consumer = std::make_unique<DealUnits>(&shared_, &lanes_, spec.unit_rows);
    deal_ = consumer.get();
    splits_ = std::make_shared<LeasedSplits>([this] { shared_.wakeup.Wake(); });
    pipeline_ = std::make_unique<Pipeline>(
        std::move(spec), std::move(consumer), [this] { return gives_up_.load(); },
        CheckpointOptions{}, splits_);
    if (!(pipeline_->fingerprint() == session.fingerprint))
      throw Error(ExitCode::kBadData, "the table here is another one than the dispatcher's",
                  session.path, "let all processes of a job read the same files");
    if (FeaturesOf(pipeline_->columns(), pipeline_->spec().label) != session.features)
      throw Error(ExitCode::kFailure, "the dispatcher has other features for this pipeline",
                  session.path, "use the same headrace for all processes of a job");
    splits_->SetTable(pipeline_->splits(), slice_rows);
    deal_->SetSplits(RangesOf(pipeline_->splits()));
    session_ = session;
    session_.term = 0;  // its clients are not known to the lanes yet
    runner_ = std::thread([this] {
      try {
        pipeline_->Run();
        pipeline_error_ =
            std::make_exception_ptr(Error(ExitCode::kInterrupted, "the pipeline was stopped"));
      } catch (...) {
        pipeline_error_ = std::current_exception();
      }
      pipeline_ended_ = true;
      shared_.wakeup.Wake();
    });
  }

  // Whoever waits for it to go waits only for splits of which it has made rows. What it has read of
  // others is read again elsewhere: often it drains because more is made than is taken.
  void GiveBackUnmade() {
    std::optional<GiveBack> back;
    {
      std::lock_guard lock(shared_.mutex);
      back = shared_.worker.TakeUnmade();
      if (!back) return;
      if (pipeline_) splits_->Clear();
    }
    connection_->Send(*back);
  }

  void Feed() {
    if (!pipeline_) return;
    std::lock_guard lock(shared_.mutex);
    while (splits_->waiting() < kAhead) {
      const auto taken = shared_.worker.Take();
      if (!taken) break;
      splits_->Add(*taken);
    }
  }

  void Say() {
    std::vector<Cut> cuts;
    std::optional<Ask> ask;
    {
      std::lock_guard lock(shared_.mutex);
      cuts.swap(shared_.cuts);
      if (pipeline_) ask = shared_.worker.TakeAsk();
    }
    for (const Cut& cut : cuts) connection_->Send(cut);
    if (ask) connection_->Send(*ask);
    SayMeasured(options_.measured.get(), connection_.get());
    const int64_t now = MonotonicNs();
    CountIdle(now);
    if (now - alive_ns_ < kAliveNs) return;
    alive_ns_ = now;
    CountBusy(now);
    connection_->Send(Alive{lanes_.sent(), idle_ns_, lanes_.no_room_ns(),
                            deal_ == nullptr ? 0 : deal_->made_rows(), busy_ns_});
  }

  // Since it was last counted, by the stage that waited least: for work, and for room.
  void CountBusy(int64_t now) {
    if (!pipeline_) return;
    std::vector<StageWaits> waits = pipeline_->stage_waits(now);
    waits.front().in_ns += splits_->waited_ns(now);
    waits.back().out_ns += static_cast<int64_t>(lanes_.no_room_ns());
    double busiest = 0;
    for (size_t i = 0; i < waits.size() && i < waits_.size(); ++i) {
      const auto waited = static_cast<double>(waits[i].in_ns - waits_[i].in_ns + waits[i].out_ns -
                                              waits_[i].out_ns);
      const auto lived =
          static_cast<double>(waits[i].threads) * static_cast<double>(now - busy_at_ns_);
      if (lived > 0) busiest = std::max(busiest, 1 - waited / lived);
    }
    busy_ns_ +=
        static_cast<uint64_t>(std::min(busiest, 1.0) * static_cast<double>(now - busy_at_ns_));
    waits_ = std::move(waits);
    busy_at_ns_ = now;
  }

  // Between two turns: it could work, and had nothing to work on at both ends.
  void CountIdle(int64_t now) {
    std::lock_guard lock(shared_.mutex);
    const bool is_idle = pipeline_ && !shared_.worker.has_leases();
    if (is_idle && was_idle_) idle_ns_ += static_cast<uint64_t>(now - counted_ns_);
    was_idle_ = is_idle;
    counted_ns_ = now;
  }

  // The lanes first: a pipeline that waits for room in one of them would not end.
  void StopPipeline() {
    if (!pipeline_) return lanes_.Stop();
    splits_->Close();
    lanes_.Stop();
    pipeline_->RequestStop();
    if (runner_.joinable()) runner_.join();
  }

  const WorkerProcessOptions options_;
  Shared shared_;
  SendLanes lanes_;
  std::unique_ptr<ControlConnection> connection_;
  std::shared_ptr<LeasedSplits> splits_;
  std::unique_ptr<Pipeline> pipeline_;
  DealUnits* deal_ = nullptr;  // its consumer
  Session session_;            // as far as it is followed
  std::thread runner_;
  std::exception_ptr pipeline_error_;  // once ended
  std::atomic<bool> pipeline_ended_{false};
  int64_t alive_ns_ = 0, counted_ns_ = 0, leaves_ns_ = 0;
  int64_t refused_ns_ = INT64_MIN / 2, first_refused_ns_ = 0;
  int64_t met_ns_ = 0;                    // the dispatcher that it has, or had
  int64_t connected_ns_ = MonotonicNs();  // when it last had a dispatcher, or began
  std::atomic<bool> gives_up_{false};
  uint64_t idle_ns_ = 0, busy_ns_ = 0;
  int64_t busy_at_ns_ = 0;         // up to when busy_ns_ is counted
  std::vector<StageWaits> waits_;  // up to then
  bool was_idle_ = false;
  std::string lost_;  // what was last said of a dispatcher that is gone
  bool has_noted_ = false, is_of_another_job_ = false;
};

}  // namespace

bool RunWorker(const WorkerProcessOptions& options) { return WorkerLoop(options).Run(); }

}  // namespace headrace::reader::service
