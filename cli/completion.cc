// headrace completion: the script with which a shell completes command lines.
#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/configured_command.h"
#include "collectors/store/store.h"
#include "workloads/spec.h"

namespace headrace::cli {
namespace {

struct CompletionOptions {
  std::string shell, into;
  bool runs = false;
};

std::vector<std::string> Shells() {
  std::vector<std::string> names;
  for (const auto& [name, shell] : Registry<CompletionShell>::Global().entries()) {
    names.push_back(name);
  }
  return names;
}

void AddOnce(const OptionDescription& option, std::vector<OptionDescription>* out) {
  const auto same = [&](const auto& other) { return other.names == option.names; };
  if (std::none_of(out->begin(), out->end(), same)) out->push_back(option);
}

constexpr const char* kWorkload = "WORKLOAD";  // a model's name, or a file

// Gives arguments whose words their command line does not check those words.
void AddWords(std::vector<CommandDescription>* commands) {
  std::vector<std::string> models, names;
  for (const auto& [model, text] : workloads::BuiltInModels()) models.push_back(model);
  for (const CommandDescription& command : *commands) names.push_back(CommandWord(command));
  for (CommandDescription& command : *commands) {
    for (OptionDescription& option : command.options) {
      if (!option.positional) continue;
      if (option.names[0] == "COMMAND") option.choices = names;
      if (option.names[0] != kWorkload) continue;
      option.choices = models;
      option.value = kWorkload;
    }
  }
}

// Nothing is said where there is no database: a shell that asks is in the middle of a line.
int ListRuns() {
  constexpr int64_t kNewest = 100;
  try {
    collectors::ReadStore store(DefaultDatabase());
    fmt::print("latest\n");
    const collectors::SqlResult runs = store.Query(
        "SELECT name, run_id FROM run_summary ORDER BY run_id DESC LIMIT ?1", {kNewest});
    for (const auto& row : runs.rows) {
      const auto* name = std::get_if<std::string>(&row[0]);
      const auto* id = std::get_if<int64_t>(&row[1]);
      if (name != nullptr && !name->empty()) fmt::print("{}\n", Printable(*name));
      if (id != nullptr) fmt::print("{}\n", *id);
    }
  } catch (const Error&) {
  }
  return 0;
}

// Each script where its shell looks for it, below `prefix`.
void InstallAll(const std::string& prefix, const std::vector<CommandDescription>& commands) {
  for (const auto& [name, shell] : Registry<CompletionShell>::Global().entries()) {
    const std::filesystem::path path = std::filesystem::path(prefix) / shell.install;
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    if (failed) throw ErrnoError(failed.value(), "create", path.parent_path().string());
    AtomicFile file(path.string(), true);
    file.Write(shell.script(commands));
    file.Commit(false);
  }
}

int Complete(const CompletionOptions& options) {
  if (options.runs) return ListRuns();
  if (options.shell.empty() && options.into.empty())
    throw Error(ExitCode::kUsage, "no shell is named", "SHELL",
                fmt::format("say one of {}", fmt::join(Shells(), ", ")));
  std::vector<CommandDescription> commands;
  for (const auto& [name, command] : Registry<Command>::Global().entries()) {
    if (!command.hidden) commands.push_back(ConfiguredCommand(name, command).line().Describe());
  }
  AddWords(&commands);
  if (!options.into.empty()) {
    InstallAll(options.into, commands);
    return 0;
  }
  std::fputs(Registry<CompletionShell>::Global().Find(options.shell)->script(commands).c_str(),
             stdout);
  return 0;
}

HR_COMMAND(
    "completion",
    {.summary = "prints the script with which bash, zsh or fish completes command lines",
     .examples =
         "  headrace completion bash > /tmp/headrace.bash   # then: source /tmp/headrace.bash\n"
         "  headrace completion zsh > /tmp/_headrace        # into a folder of $fpath\n"
         "  headrace completion fish > /tmp/headrace.fish   # into ~/.config/fish/completions\n",
     .exit_codes = "0 ok, 2 no such shell",
     .next = "source the script; packages install all three",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<CompletionOptions>();
       CommandOption* const shell =
           command_line.AddOption("SHELL", options->shell, "Print the script of this shell")
               ->Check(OneOf(Shells()));
       CommandOption* const into =
           command_line
               .AddOption("--into", options->into,
                          "Write the scripts of all shells below this prefix, where they look for "
                          "them")
               ->TypeName("FOLDER")
               ->Excludes(shell);
       command_line
           .AddFlag("--runs", options->runs,
                    "Print the runs of the database instead; the scripts ask for them")
           ->Excludes(shell)
           ->Excludes(into);
       return [options] { return Complete(*options); };
     }});

}  // namespace

CompletionKind CompletedBy(const OptionDescription& option) {
  if (!option.choices.empty())
    return option.value == kWorkload ? CompletionKind::kWordsAndFiles : CompletionKind::kWords;
  const std::string& what =
      option.positional && option.value == "TEXT" ? option.names[0] : option.value;
  for (const char* name : {"FILE", "PIPELINE", "TABLE", "PLACE"}) {
    if (what == name) return CompletionKind::kFiles;
  }
  if (what == "FOLDER") return CompletionKind::kFolders;
  if (what == "RUN") return CompletionKind::kRuns;
  return what == "SIDE" ? CompletionKind::kRunsAndFiles : CompletionKind::kNothing;
}

std::string CommandWord(const CommandDescription& command) {
  return command.name.substr(command.name.rfind(' ') + 1);
}

std::vector<OptionDescription> AllOptions(const CommandDescription& command) {
  std::vector<OptionDescription> out;
  for (const OptionDescription& option : command.options) {
    if (!option.positional) AddOnce(option, &out);
  }
  for (const CommandDescription& subcommand : command.subcommands) {
    for (const OptionDescription& option : AllOptions(subcommand)) AddOnce(option, &out);
  }
  return out;
}

std::vector<OptionDescription> AllArguments(const CommandDescription& command) {
  std::vector<OptionDescription> out;
  for (const OptionDescription& option : command.options) {
    if (option.positional) AddOnce(option, &out);
  }
  for (const CommandDescription& subcommand : command.subcommands) {
    for (const OptionDescription& option : AllArguments(subcommand)) AddOnce(option, &out);
  }
  return out;
}

std::string SingleQuoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string Short(const std::string& help) {
  constexpr size_t kMost = 70;  // columns
  const std::string first = help.substr(0, help.find("; "));
  return first.size() <= kMost ? first : first.substr(0, first.find(": "));
}

}  // namespace headrace::cli
