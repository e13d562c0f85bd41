#include "experiments/study_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "reader/source/open.h"

namespace headrace::experiments {
namespace {

namespace fs = std::filesystem;

// Holes read over: by rm1 and rm3 few, as in a table laid out by popularity; by rm2 the coalescing
// window of the study in a table that is not.
constexpr const char* kNarrowGap = "16KiB";
constexpr const char* kWideGap = "1280KiB";
// What one split of rm3 needs, and not two, beside the process at rest.
constexpr const char* kRm3Memory = "176MiB";

// A pipeline or a spec may have any name; in the folder it is a part of file names, and it is
// printed as progress: letters, digits, '-' and '_', and none of the folder's own names.
std::string PlainName(const std::string& name) {
  std::string plain = name.substr(0, 64);
  for (char& c : plain) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && (c < '0' || c > '9') && c != '-' && c != '_') c = '_';
  }
  if (plain.empty() || plain == "steps" || plain == "ladder") plain += "_";
  return plain;
}

bool IsWorkload(const std::string& target) {
  return workloads::BuiltInModels().count(target) > 0 || target.ends_with(".toml");
}

// A table that `generate` made says of which model, and how much of it.
void ReadGenerated(const std::string& table, StudyWork* work) {
  const std::string path = (fs::path(table) / "table.json").string();
  std::error_code ignored;
  if (reader::IsRemote(table) || !fs::exists(path, ignored)) return;
  const GeneratedTable generated = ParseGenerated(ReadWholeFile(path));
  if (workloads::BuiltInModels().count(generated.model) == 0) return;
  work->model = generated.model;
  if (generated.feature_ratio) work->inputs.feature_fraction = *generated.feature_ratio;
}

// What each workload is measured under. Published workers are nodes of 18 cores, 64 GB and
// 12.5 Gbit/s; what is scaled to this host, and how, is said on the sheet.
void SetConditions(StudyWork* work, double cores) {
  analysis::WorkerConditions& conditions = work->inputs.conditions;
  conditions.cores = cores;
  const auto say = [&](std::string words) { conditions.words.push_back(std::move(words)); };
  if (!work->spec) {
    say("the pipeline as it is, but with a trainer that takes batches as fast as they come");
    return;
  }
  const auto threads = static_cast<int>(cores);
  if (work->model == "rm3") {
    work->one_stage_threads = 2 * threads;
    say(fmt::format("{:g} cores; {} threads, each of which takes a split from storage to tensors",
                    cores, work->one_stage_threads));
  } else {
    work->settings = {fmt::format("fetch.parallelism={}", std::max(2, threads / 4)),
                      fmt::format("decode.parallelism={}", threads),
                      fmt::format("transform.parallelism={}", threads),
                      fmt::format("batch.parallelism={}", threads)};
    say(fmt::format("{:g} cores; {} threads each to decode, to transform and to batch, {} to fetch",
                    cores, threads, std::max(2, threads / 4)));
  }
  const bool wide = work->model == "rm2";
  work->settings.push_back(fmt::format("source.coalesce_gap={}", wide ? kWideGap : kNarrowGap));
  work->settings.push_back("source.throttle.seek=0");
  say(fmt::format(
      "reads joined over holes of up to {}{}", wide ? kWideGap : kNarrowGap,
      wide ? ", the study's window, in a table that is not laid out by popularity" : ""));
  if (work->model == "rm3") {
    work->settings.push_back(std::string("pipeline.memory=") + kRm3Memory);
    conditions.memory_bytes = static_cast<double>(ParseBytes(kRm3Memory, "memory"));
    say(
        fmt::format("a memory budget of {} for the whole process, and stripes of {} rows: why the "
                    "published rm3 needs much memory is not known, so both are planted",
                    kRm3Memory, work->spec->stripe_rows));
  }
}

// Names, sizes and times of the files: another table of the same name is another input.
std::string TableState(const StudyWork& work) {
  const std::string place = reader::ParseSetting(work.settings[0]).second;
  if (reader::IsRemote(place)) return place;
  std::vector<std::string> files;
  std::error_code ignored;
  const auto add = [&](const fs::path& path) {
    const auto size = fs::file_size(path, ignored);
    const auto time = fs::last_write_time(path, ignored).time_since_epoch().count();
    files.push_back(fmt::format("{} {} {}", path.string(), size, time));
  };
  if (!fs::is_directory(place, ignored)) {
    add(place);
  } else {
    for (const auto& entry : fs::directory_iterator(place, ignored))
      if (entry.path().extension() == ".dwrf" || entry.path().extension() == ".orc")
        add(entry.path());
  }
  std::sort(files.begin(), files.end());
  return fmt::format("{}", fmt::join(files, ", "));
}

class Chooser {
 public:
  Chooser(const StudyOptions& options, const StudySizes& sizes, double cores)
      : options_(options), sizes_(sizes), cores_(cores) {}

  std::list<StudyWork> Choose() {
    std::vector<std::string> targets = options_.targets;
    if (targets.empty()) targets = {"rm1", "rm2", "rm3"};
    for (const std::string& target : targets) {
      if (IsWorkload(target)) {
        AddGenerated(target);
      } else {
        if (targets.size() > 1)
          throw Error(ExitCode::kUsage, "a table is characterized alone", Printable(target),
                      "give it a study of its own");
        AddTable(target);
      }
    }
    return std::move(works_);
  }

 private:
  void AddGenerated(const std::string& target) {
    if (!options_.pipeline.empty() || !options_.coread.empty())
      throw Error(ExitCode::kUsage, "are of a table of your own",
                  options_.pipeline.empty() ? "--coread" : "--pipeline",
                  "give the folder of the table instead of a workload");
    StudyWork work;
    work.spec = workloads::LoadSpec(target);
    work.name = PlainName(work.spec->name);
    const bool is_model = workloads::BuiltInModels().count(target) > 0;
    if (!is_model && workloads::BuiltInModels().count(work.name) > 0)
      throw Error(ExitCode::kUsage, fmt::format("'{}' is the name of a published model", work.name),
                  Printable(target), "give the spec another name");
    for (const StudyWork& other : works_)
      if (other.name == work.name)
        throw Error(ExitCode::kUsage, fmt::format("'{}' is named twice", work.name),
                    Printable(target), "name it once, or give the spec another name");
    work.asked = target;
    if (is_model) work.model = target;
    const bool rm3 = target == "rm3";
    work.spec->seed = options_.seed;
    work.spec->feature_fraction = options_.features.value_or(sizes_.features);
    work.spec->rows = options_.rows.value_or(rm3 ? sizes_.rm3_rows : sizes_.rows);
    work.spec->stripe_rows = rm3 ? sizes_.rm3_stripe_rows : sizes_.stripe_rows;
    workloads::CheckSpec(*work.spec);
    work.inputs.feature_fraction = work.spec->feature_fraction;
    SetConditions(&work, cores_);
    works_.push_back(std::move(work));
  }

  void AddTable(const std::string& table) {
    std::error_code ignored;
    if (!reader::IsRemote(table) && !fs::exists(table, ignored))
      throw Error(ExitCode::kUsage,
                  "is neither a workload (rm1, rm2, rm3, a spec file) nor a table",
                  Printable(table), "name one, or the folder of a table with --pipeline FILE");
    StudyWork work;
    work.pipeline = options_.pipeline;
    if (work.pipeline.empty()) {
      const fs::path beside = fs::path(table) / "pipeline.toml";
      if (reader::IsRemote(table) || !fs::exists(beside, ignored))
        throw Error(ExitCode::kUsage, "what a model reads of it is not known", Printable(table),
                    "add --pipeline FILE");
      work.pipeline = beside.string();
    }
    const std::string place =
        reader::IsRemote(table) ? table : fs::absolute(table).lexically_normal().string();
    work.settings = {"source.table=" + place};
    const reader::PipelineSpec spec = LoadSpecOf(work, options_);
    work.name = PlainName(spec.name);
    ReadGenerated(place, &work);
    SetConditions(&work, cores_);
    works_.push_back(std::move(work));
  }

  const StudyOptions& options_;
  const StudySizes& sizes_;
  const double cores_;
  std::list<StudyWork> works_;
};

}  // namespace

StudySizes SizesFor(bool quick) {
  if (quick) return {2.5, 2.0, 1.0, 0.0625, 8192, 131'072, 2048, 65'536};
  return {8.0, 5.0, 2.0, 0.125, 16'384, 131'072, 2048, 32'768};
}

std::list<StudyWork> ChooseWork(const StudyOptions& options, const StudySizes& sizes,
                                double cores) {
  return Chooser(options, sizes, cores).Choose();
}

StudyWork ReferenceWork(const StudyOptions& options, const StudySizes& sizes, double cores) {
  StudyWork work;
  work.spec = workloads::ForModel("rm1", sizes.features, sizes.rows, options.seed);
  work.spec->stripe_rows = sizes.stripe_rows;
  work.name = work.model = "rm1";
  SetConditions(&work, cores);
  return work;
}

reader::PipelineSpec LoadSpecOf(const StudyWork& work, const StudyOptions& options) {
  reader::Settings settings;
  for (const std::string& text : work.settings) settings.push_back(reader::ParseSetting(text));
  for (const std::string& text : options.set) settings.push_back(reader::ParseSetting(text));
  return reader::LoadPipeline(work.pipeline, settings);
}

StudyInputs InputsOf(const std::list<StudyWork>& works, const StudyOptions& options, double cores) {
  StudyInputs inputs = {{"version", HEADRACE_VERSION},
                        {"quick", options.quick ? "yes" : "no"},
                        {"cores", fmt::format("{:g}", cores)},
                        {"duration", options.duration.empty() ? "default" : options.duration},
                        {"nic rate", options.nic_rate.empty() ? "default" : options.nic_rate},
                        {"memory", options.memory.empty() ? "default" : options.memory},
                        {"pairs", options.pairs ? std::to_string(*options.pairs) : "default"}};
  std::string names;
  for (const StudyWork& work : works) {
    names += (names.empty() ? "" : " ") + work.name;
    if (work.spec) {
      if (work.model.empty()) inputs["spec of " + work.name] = ReadWholeFile(work.asked);
      inputs["rows of " + work.name] = std::to_string(work.spec->rows);
      inputs["features of " + work.name] = fmt::format("{:g}", work.spec->feature_fraction);
      inputs["seed of " + work.name] = std::to_string(work.spec->seed);
    } else {
      inputs["table of " + work.name] = TableState(work);
      inputs["pipeline of " + work.name] = ReadWholeFile(work.pipeline);
    }
  }
  inputs["workloads"] = names;
  for (const std::string& setting : options.set) inputs["set " + setting] = "yes";
  if (!options.coread.empty()) inputs["coread"] = ReadWholeFile(options.coread);
  return inputs;
}

// A row of the full table is about so many bytes.
double BytesOf(const std::list<StudyWork>& works, const StudyOptions& options) {
  double bytes = 64 << 20;
  for (const StudyWork& work : works) {
    if (!work.spec) continue;
    const double copies = !options.no_ladder && &work == &works.front() ? 6 : 1;
    const double row =
        2.6 * (work.spec->dense_features * work.spec->coverage_mean +
               work.spec->sparse_features * work.spec->coverage_mean * work.spec->list_length_mean);
    bytes += copies * row * work.spec->feature_fraction * static_cast<double>(work.spec->rows);
  }
  return bytes;
}

}  // namespace headrace::experiments
