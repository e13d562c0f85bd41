// A worker's pipeline: it makes of leased splits exactly the rows that are wanted, in batches that
// are parts of one unit, and those parts join to whole units.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/error.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/engine/table_checks.h"
#include "reader/pipeline/pipeline.h"
#include "reader/service/job_folder.h"
#include "reader/service/leased_splits.h"
#include "reader/service/unit_check.h"
#include "reader/service/unit_joiner.h"
#include "workloads/generator.h"

namespace headrace::reader::service {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kUnit = 64;

struct Seen {
  std::map<std::pair<uint64_t, uint64_t>, std::vector<RowSpan>> pieces;  // by lease and unit
  std::multiset<std::pair<uint64_t, uint64_t>> rows;                     // lease, row
  std::set<uint64_t> features;
};

// Keeps what it gets, joined to units.
class KeepUnits final : public Consumer {
 public:
  KeepUnits(Seen* seen, const std::map<uint64_t, Lease>& leases, std::vector<RowRange> splits)
      : seen_(seen), leases_(leases), splits_(std::move(splits)) {}
  void Step(Element&& element, StopSignal* /*stop*/) override { Take(std::move(element)); }
  void TakeDropped(const std::vector<RowSpan>& spans, StopSignal* /*stop*/) override {
    for (const RowSpan& span : spans) {
      Element element;
      TensorBatch batch;
      batch.spans = {span};
      element.payload = std::move(batch);
      Take(std::move(element));
    }
  }

 private:
  void Take(Element&& element) {
    const auto& spans = element.payload.As<TensorBatch>().spans;
    ASSERT_EQ(spans.size(), 1u);
    const RowSpan span = spans[0];
    const RowRange split = splits_.at(span.split);
    const uint64_t unit = UnitOf(split, span.first, kUnit);
    EXPECT_EQ(UnitOf(split, span.first + span.count - 1, kUnit), unit) << "of two units";
    const uint64_t wanted =
        WantedRowsOf(leases_.at(span.epoch).wanted, RowsOfUnit(split, unit, kUnit));
    auto whole = joiner_.Add(span.epoch, unit, wanted, std::move(element));
    if (!whole) return;
    const auto& batch = whole->payload.As<TensorBatch>();
    EXPECT_TRUE(seen_->pieces.emplace(std::pair(span.epoch, unit), batch.spans).second)
        << "a unit came in parts";
    uint64_t settled = 0, rows = 0;
    for (const RowSpan& part : batch.spans) {
      settled += part.count;
      rows += part.rows;
    }
    EXPECT_EQ(settled, wanted);
    EXPECT_EQ(rows, batch.rows);
    EXPECT_EQ(batch.dense.size(), batch.rows * batch.dense_names.size());
    if (const auto features = check_.FeaturesOf(batch)) seen_->features.insert(*features);
    for (uint64_t row = 0; row < batch.rows; ++row)
      seen_->rows.insert({span.epoch, batch.RowId(row)});
  }

  Seen* const seen_;
  const std::map<uint64_t, Lease>& leases_;
  const std::vector<RowRange> splits_;
  UnitJoiner joiner_;
  UnitCheck check_;
};

class LeasedPipeline : public testing::Test {
 protected:
  LeasedPipeline() {
    std::string pattern = (fs::temp_directory_path() / "leased_test.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    Generate("rm1");
  }
  ~LeasedPipeline() override { fs::remove_all(folder_); }

  void Generate(const char* model) {
    workloads::WorkloadSpec spec = workloads::ForModel(model, 0.02, 1000, 11);
    spec.stripe_rows = 300;
    fs::remove_all(folder_ / "t");
    workloads::GenerateTable(spec, folder_ / "t");
    table_.emplace(OpenTable((folder_ / "t").string()));
    splits_ = table_->splits;
  }

  PipelineSpec Load(Settings settings) const {
    settings.emplace_back("pipeline.batch_rows", std::to_string(kUnit));
    return LoadPipeline((folder_ / "t/pipeline.toml").string(), settings);
  }

  // Runs the leases, numbered from 1.
  Seen Run(PipelineSpec spec, const std::map<uint64_t, Lease>& leases) const {
    Seen seen;
    auto source = std::make_shared<LeasedSplits>([] {});
    spec = WorkerSpec(std::move(spec));
    const uint64_t slice_rows = SliceRows(spec);
    Pipeline pipeline(std::move(spec),
                      std::make_unique<KeepUnits>(&seen, leases, RangesOf(splits_)), {}, {},
                      source);
    source->SetTable(splits_, slice_rows);
    std::thread adding([&] {
      for (const auto& [local, lease] : leases) source->Add({local, lease});
      source->Close();
    });
    pipeline.Run();
    adding.join();
    return seen;
  }

  Lease Whole(uint64_t split) const {
    Lease lease;
    lease.split = split;
    lease.wanted = {{splits_[split].first_row, splits_[split].rows}};
    return lease;
  }

  fs::path folder_;
  std::optional<Table> table_;
  std::vector<Split> splits_;
};

TEST_F(LeasedPipeline, MakesEveryRowOfItsLeasesOnce) {
  ASSERT_EQ(splits_.size(), 4u);
  const Seen seen = Run(Load({{"batch.parallelism", "2"}}), {{1, Whole(2)}, {2, Whole(0)}});
  EXPECT_EQ(seen.rows.size(), 600u);
  EXPECT_EQ(std::set(seen.rows.begin(), seen.rows.end()).size(), 600u);
  EXPECT_EQ(seen.pieces.size(), 2 * NumUnits(300, kUnit));
  EXPECT_EQ(seen.rows.begin()->second, splits_[2].first_row);
}

// The same split for a second time, as after a lost worker: with what is left of it.
TEST_F(LeasedPipeline, MakesOnlyTheRowsWanted) {
  Lease rest = Whole(1);
  rest.wanted = {{310, 5}, {400, 64}, {599, 1}};
  for (const char* layout : {"direct", "flatmap"}) {
    const Seen seen = Run(Load({{"pipeline.layout", layout}}), {{1, Whole(1)}, {2, rest}});
    EXPECT_EQ(seen.rows.size(), 370u) << layout;
    std::set<uint64_t> of_rest;
    for (const auto& [lease, row] : seen.rows)
      if (lease == 2) of_rest.insert(row);
    EXPECT_EQ(of_rest.size(), 70u);
    for (const uint64_t row : {310u, 314u, 400u, 463u, 599u}) EXPECT_TRUE(of_rest.contains(row));
  }
}

// Rows that are dropped belong to their unit: what one client settles is never another's.
TEST_F(LeasedPipeline, SettlesDroppedRowsWithTheirUnit) {
  PipelineSpec spec = Load({});
  TransformSpec sampling;
  sampling.op = "sampling";
  sampling.params["rate"] = 0.3;
  spec.transforms.push_back(sampling);
  RowFilter filter;
  filter.name = "label";
  filter.is_column = true;
  filter.min = 0.5;
  for (const bool filtered : {false, true}) {
    PipelineSpec one = spec;
    if (filtered) {
      one.transforms.clear();
      one.filters = {filter};
    }
    const Seen seen = Run(one, {{1, Whole(0)}, {2, Whole(3)}});
    EXPECT_LT(seen.rows.size(), 400u);
    EXPECT_GT(seen.rows.size(), 0u);
    EXPECT_EQ(seen.pieces.size(), NumUnits(300, kUnit) + NumUnits(100, kUnit))
        << (filtered ? "filtered" : "sampled");
  }
}

// What ranks compare units with is said before there is any: however the units are made, they have
// these features, in this order.
TEST_F(LeasedPipeline, MakesTheFeaturesThatWereDeclared) {
  const auto declared = [&](const PipelineSpec& spec) {
    return FeaturesOf(FinalColumns(table_->files[0]->schema(), spec), spec.label);
  };
  const auto expect_declared = [&](const PipelineSpec& spec, const std::string& what) {
    const Seen seen = Run(spec, {{1, Whole(0)}, {2, Whole(2)}});
    EXPECT_EQ(seen.features, std::set{declared(spec)}) << what;
  };
  std::set<uint64_t> all;
  for (const char* model : {"rm1", "rm2", "rm3"}) {
    Generate(model);
    const PipelineSpec plain = Load({});
    ASSERT_FALSE(plain.transforms.empty());
    all.insert(declared(plain));
    expect_declared(plain, model);
    expect_declared(Load({{"pipeline.layout", "flatmap"}}), fmt::format("{} flatmap", model));
    expect_declared(Load({{"dedup.mode", "on"}}), fmt::format("{} dedup", model));
    PipelineSpec spec = Load({{"pipeline.layout", "flatmap"}});
    for (StageSpec& stage : spec.stages) {
      const auto extract =
          std::find_if(stage.operators.begin(), stage.operators.end(),
                       [](const OperatorSpec& op) { return op.kind == "extract"; });
      if (extract != stage.operators.end())
        stage.operators.insert(std::next(extract), OperatorSpec{"rowmap", "rowmap", {}});
    }
    ASSERT_TRUE(HasOperator(spec, "rowmap"));
    expect_declared(spec, fmt::format("{} rowmap", model));
    spec = plain;
    spec.label.clear();
    expect_declared(spec, fmt::format("{} without labels", model));
    all.insert(declared(spec));
    spec = plain;
    spec.transforms.clear();
    spec.outputs.reset();
    expect_declared(spec, fmt::format("{} as stored", model));
    all.insert(declared(spec));
    // Each third of what it makes, so that steps are skipped and columns moved.
    spec = plain;
    spec.outputs.emplace();
    const auto columns = FinalColumns(table_->files[0]->schema(), plain);
    for (size_t i = 0; i < columns.size(); i += 3)
      if (columns[i].kind <= ColumnKind::kWeightedSparse) spec.outputs->push_back(columns[i].name);
    expect_declared(spec, fmt::format("{} outputs", model));
    all.insert(declared(spec));
  }
  EXPECT_EQ(all.size(), 12u) << "jobs of different features";
}

TEST_F(LeasedPipeline, RefusesLeasesOfRowsThatItsTableDoesNotHave) {
  LeasedSplits source([] {});
  source.SetTable(splits_, kUnit);
  Lease lease;
  for (const auto& [split, wanted] : std::vector<std::pair<uint64_t, RowRange>>{
           {9, {0, 1}}, {0, {299, 2}}, {1, {0, 1}}, {0, {0, UINT64_MAX}}, {0, {0, 0}}}) {
    lease.split = split;
    lease.wanted = {wanted};
    EXPECT_THROW(source.Add({1, lease}), Error) << split << " " << wanted.first;
  }
  lease.split = 0;
  lease.wanted = {{10, 5}, {12, 5}};
  EXPECT_THROW(source.Add({1, lease}), Error) << "ranges that overlap";
}

TEST_F(LeasedPipeline, IsRefusedWhatAServiceDoesNotOffer) {
  for (const auto& [key, value] : Settings{{"delivery.to", "unix:/tmp/x"}}) {
    try {
      WorkerSpec(Load({{key, value}}));
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_NE(error.fix(), "");
    }
  }
}

}  // namespace
}  // namespace headrace::reader::service
