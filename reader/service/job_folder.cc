#include "reader/service/job_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader::service {
namespace {

namespace fs = std::filesystem;

bool IsJobName(const std::string& job) {
  return !job.empty() && job[0] != '.' && job.size() <= 64 &&
         std::all_of(job.begin(), job.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.';
         });
}

void MakePrivateFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw ErrnoError(errno, "make", path);
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) throw ErrnoError(errno, "look at", path);
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)
    throw Error(ExitCode::kPrivilege, "is not a folder that only this user can write", path,
                "remove it, or give --job a path");
}

void Refuse(const PipelineSpec& spec, bool is_so, const char* what, const char* fix) {
  if (is_so) throw Error(ExitCode::kUsage, what, spec.path, fix);
}

}  // namespace

std::string JobFolder(const std::string& job) {
  if (job.find('/') != std::string::npos) return fs::absolute(job).lexically_normal().string();
  if (!IsJobName(job))
    throw Error(ExitCode::kUsage, "is not the name of a job", job,
                "use letters, digits, '-', '_' and '.', or the path of a folder");
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string base = runtime != nullptr && runtime[0] == '/' ? runtime : "/tmp";
  return fmt::format("{}/headrace-{}/{}", base, geteuid(), job);
}

std::string MakeJobFolder(const std::string& job) {
  const std::string folder = JobFolder(job);
  if (job.find('/') == std::string::npos) MakePrivateFolder(fs::path(folder).parent_path());
  MakePrivateFolder(folder);
  return folder;
}

std::string DispatcherSocket(const std::string& folder) { return folder + "/dispatcher"; }

PipelineSpec WorkerSpec(PipelineSpec spec) {
  Refuse(spec, spec.synthetic.has_value(), "has no table whose splits could be leased",
         "set source.table");
  Refuse(spec, spec.epochs == 0, "reads its table for ever, which a job does not",
         "set source.epochs");
  Refuse(spec, spec.file_order, "wants rows in the table's order, which a job does not keep yet",
         "set pipeline.order = \"any\"");
  Refuse(spec, HasOperator(spec, "shuffle"),
         "shuffles rows across splits, which a job does not yet", "leave out the operator shuffle");
  Refuse(spec, spec.cache.enabled(), "has a [[cache]], which workers do not share yet",
         "leave it out");
  Refuse(spec, spec.delivery.to.kind != DeliveryKind::kInline, "sends its batches elsewhere",
         "leave out delivery.to");
  Refuse(spec, !HasOperator(spec, "tensorize"), "makes no tensor batches",
         "let the last operator of the workers be tensorize");
  spec.unit_rows = WorkerRows(spec);
  // The client joins units to batches.
  for (StageSpec& stage : spec.stages)
    std::erase_if(stage.operators, [](const OperatorSpec& op) { return op.kind == "rebatch"; });
  std::erase_if(spec.stages, [](const StageSpec& stage) { return stage.operators.empty(); });
  if (!HasOperator(spec, "batch")) {
    for (StageSpec& stage : spec.stages) {
      const auto tensorize =
          std::find_if(stage.operators.begin(), stage.operators.end(),
                       [](const OperatorSpec& op) { return op.kind == "tensorize"; });
      if (tensorize == stage.operators.end()) continue;
      stage.operators.insert(tensorize, OperatorSpec{"batch", "batch", {}});
      break;
    }
  }
  return spec;
}

}  // namespace headrace::reader::service
