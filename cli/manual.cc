// headrace man: the manual pages, made from the same definitions as --help.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/configured_command.h"
#include "cli/environment.h"
#include "cli/help_text.h"
#include "cli/overview.h"

namespace headrace::cli {
namespace {

// Text of a page of roff: nothing in it is an instruction, and a hyphen is the one of the keyboard.
std::string Roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() || out.back() == '\n') {
      if (c == '.' || c == '\'') out += "\\&";
    }
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string Heading(const std::string& page, const std::string& name, const std::string& purpose) {
  return fmt::format(
      ".\\\" Made by 'headrace man' from the definitions of the commands.\n"
      ".TH {} 1 \"\" \"headrace {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
      page, HEADRACE_VERSION, Roff(name), Roff(purpose));
}

std::string OptionParagraph(const OptionDescription& option) {
  std::string title = OptionTitle(option);
  title.erase(0, title.find_first_not_of(' '));
  std::string text = fmt::format(".TP\n.B {}\n{}\n", Roff(title), Roff(OptionText(option)));
  if (!option.excludes.empty())
    text += ".br\n" + Roff(fmt::format("Not with {}.", fmt::join(option.excludes, ", "))) + "\n";
  return text;
}

std::string Examples(const std::string& examples) {
  return examples.empty() ? "" : ".SH EXAMPLES\n.nf\n" + Roff(examples) + ".fi\n";
}

std::string CommandPage(const std::string& name, const Command& command) {
  const CommandDescription description = ConfiguredCommand(name, command).line().Describe();
  std::string text =
      Heading("HEADRACE\\-" + Roff(Upper(name)), "headrace-" + name, command.summary);
  text += ".SH SYNOPSIS\n.B " + Roff(Usage(description)) + "\n";
  std::string arguments;
  for (const OptionDescription& option : description.options) {
    if (option.positional) arguments += OptionParagraph(option);
  }
  if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
  text += ".SH OPTIONS\n";
  for (const OptionGroup& group : GroupsOf(description)) {
    text += ".SS \"" + Roff(group.heading) + "\"\n";
    for (const OptionDescription* option : group.options) text += OptionParagraph(*option);
  }
  if (!description.subcommands.empty()) text += ".SH SUBCOMMANDS\n";
  for (const CommandDescription& subcommand : description.subcommands) {
    text += fmt::format(".SS \"{}\"\n{}.\n", Roff(Usage(subcommand)), Roff(subcommand.purpose));
    for (const OptionDescription& option : subcommand.options) {
      if (option.long_name() != "--help") text += OptionParagraph(option);
    }
  }
  if (!command.exit_codes.empty())
    text += ".SH \"EXIT STATUS\"\n" + Roff(command.exit_codes) + "\n";
  text += Examples(command.examples);
  return text + ".SH \"SEE ALSO\"\n.BR headrace (1)\n" +
         (command.next.empty() ? "" : ".br\nnext: " + Roff(command.next) + "\n");
}

std::string MainPage() {
  std::string text = Heading("HEADRACE", "headrace",
                             "shows why a training pipeline waits for data, and what to change");
  text += ".SH SYNOPSIS\n.B headrace COMMAND [OPTIONS]\n.SH COMMANDS\n";
  for (const auto& [name, command] : Registry<Command>::Global().entries()) {
    if (!command.hidden)
      text += fmt::format(".TP\n.BR headrace\\-{} (1)\n{}\n", Roff(name), Roff(command.summary));
  }
  text += fmt::format(".SH \"EXIT STATUS\"\n{}\n.SH ENVIRONMENT\n", Roff(kExitCodes));
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    text += fmt::format(".TP\n.B {}\n{}\n", variable.name, Roff(variable.meaning));
  }
  return text +
         ".SH FILES\n.TP\n.I ~/.config/headrace/config.toml\nDefaults of options: a key is the "
         "long name of an option without its dashes, a table [COMMAND] is for one command. The "
         "environment is stronger, and an option on the command line strongest.\n" +
         Examples(kOverviewExamples);
}

struct ManualOptions {
  std::string command, folder;
};

int WriteManual(const ManualOptions& options) {
  const auto& commands = Registry<Command>::Global().entries();
  if (options.folder.empty()) {
    const Command* command = Registry<Command>::Global().Find(options.command);
    if (!options.command.empty() && command == nullptr)
      throw Error(ExitCode::kUsage, "there is no such command", options.command,
                  "'headrace --help' lists them");
    std::fputs((command == nullptr ? MainPage() : CommandPage(options.command, *command)).c_str(),
               stdout);
    return 0;
  }
  const std::filesystem::path folder = options.folder;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw ErrnoError(failed.value(), "create", options.folder);
  const auto write = [&](const std::string& name, const std::string& text) {
    AtomicFile file((folder / (name + ".1")).string(), true);
    file.Write(text);
    file.Commit(false);
  };
  write("headrace", MainPage());
  for (const auto& [name, command] : commands) {
    if (!command.hidden) write("headrace-" + name, CommandPage(name, command));
  }
  return 0;
}

HR_COMMAND("man",
           {.summary = "prints a page of the manual, as man reads it",
            .examples = "  headrace man run | man -l -          # the page of one command\n"
                        "  headrace man -o man1                 # all pages, into a folder\n",
            .exit_codes = "0 ok, 2 no such command",
            .next = "headrace COMMAND --help",
            .configure = [](CommandLine& command_line) -> std::function<int()> {
              auto options = std::make_shared<ManualOptions>();
              CommandOption* const one =
                  command_line.AddOption("COMMAND", options->command,
                                         "Print the page of this command, not of headrace itself");
              command_line
                  .AddOption("-o,--output", options->folder,
                             "Write all pages into this folder, instead")
                  ->TypeName("FOLDER")
                  ->Excludes(one);
              return [options] { return WriteManual(*options); };
            }});

}  // namespace
}  // namespace headrace::cli
