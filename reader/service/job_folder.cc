#include "reader/service/job_folder.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/delivery/unix_socket.h"
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

// False when it is not there.
bool CheckPrivateFolder(const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return false;
    throw ErrnoError(errno, "look at", path);
  }
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)
    throw Error(ExitCode::kPrivilege, "is not a folder that only this user can write", path,
                "remove it, or give the job another folder");
  return true;
}

void MakePrivateFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw ErrnoError(errno, "make", path);
  CheckPrivateFolder(path);
}

// A name that is too long would be cut.
void CheckRoomForSockets(const std::string& folder) {
  constexpr size_t kMostPath = 107, kLongestName = sizeof("/rank-65535-4194304") - 1;
  if (folder.size() + kLongestName <= kMostPath) return;
  throw Error(ExitCode::kUsage,
              fmt::format("the path of a job's folder has at most {} bytes, not {}",
                          kMostPath - kLongestName, folder.size()),
              folder, "choose a shorter one, such as /tmp/NAME");
}

void Refuse(const PipelineSpec& spec, bool is_so, const char* what, const char* fix) {
  if (is_so) throw Error(ExitCode::kUsage, what, spec.path, fix);
}

}  // namespace

std::string JobFolder(const std::string& job) {
  if (job.find('/') != std::string::npos) return fs::absolute(job).lexically_normal().string();
  if (!IsJobName(job))
    throw Error(ExitCode::kUsage, "is not the name of a job", "'" + job + "'",
                "use letters, digits, '-', '_' and '.', or the path of a folder");
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string base = runtime != nullptr && runtime[0] == '/' ? runtime : "/tmp";
  return fmt::format("{}/headrace-{}/{}", base, geteuid(), job);
}

std::string MakeJobFolder(const std::string& job) {
  const std::string folder = JobFolder(job);
  CheckRoomForSockets(folder);
  if (job.find('/') == std::string::npos) MakePrivateFolder(fs::path(folder).parent_path());
  MakePrivateFolder(folder);
  return folder;
}

std::string FindJobFolder(const std::string& job) {
  const std::string folder = JobFolder(job);
  CheckRoomForSockets(folder);
  if (job.find('/') == std::string::npos) CheckPrivateFolder(fs::path(folder).parent_path());
  CheckPrivateFolder(folder);
  return folder;
}

void RemoveDeadSockets(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    unsigned rank = 0;
    int pid = 0, length = 0;
    if (std::sscanf(name.c_str(), "rank-%5u-%9d%n", &rank, &pid, &length) != 2 ||
        static_cast<size_t>(length) != name.size() || pid <= 0 || !entry.is_socket(ignored))
      continue;
    // Of a process that lives nobody needs to ask; one in another container seems to be dead.
    if (kill(pid, 0) == 0 || errno != ESRCH || Listens(path)) continue;
    unlink(path.c_str());
  }
}

std::string DispatcherSocket(const std::string& folder) { return folder + "/dispatcher"; }

PipelineSpec WorkerSpec(PipelineSpec spec) {
  Refuse(spec, spec.synthetic.has_value(), "has no table whose splits could be leased",
         "set source.table");
  Refuse(spec, HasOperator(spec, "shuffle"),
         "shuffles rows across splits, which a job does not yet", "leave out the operator shuffle");
  Refuse(spec, spec.cache.enabled(), "has a [[cache]], which workers do not share yet",
         "leave it out");
  Refuse(spec, spec.delivery.to.kind != DeliveryKind::kInline, "sends its batches elsewhere",
         "leave out delivery.to");
  Refuse(spec, !HasOperator(spec, "tensorize"), "makes no tensor batches",
         "let the last operator of the workers be tensorize");
  spec.unit_rows = WorkerRows(spec);
  // Ranks put units into the table's order, whoever made them.
  spec.file_order = false;
  spec.reorder_window = 0;
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
