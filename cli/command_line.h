// CommandLine: the options of one command, parsed by CLI11, whose headers only command_line.cc
// includes: they take a compiler seconds for each file.
//
// A command adds its options to a command line, and keeps the variables that they are read into
// until it has run.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "cli/command_description.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace headrace::cli {

class CommandLine;

// A condition on an option's value. Its words are shown in --help.
class OptionCheck {
 public:
  explicit OptionCheck(std::shared_ptr<CLI::Validator> validator, std::string condition = "",
                       std::vector<std::string> choices = {});
  // A check by any function, which returns what is wrong with the text, or "".
  OptionCheck(std::function<std::string(const std::string&)> test);  // NOLINT: as a lambda is given
  OptionCheck(std::string (*test)(const std::string&));              // NOLINT

  const CLI::Validator& validator() const { return *validator_; }
  const std::string& condition() const { return condition_; }
  const std::vector<std::string>& choices() const { return choices_; }

 private:
  std::shared_ptr<CLI::Validator> validator_;
  std::string condition_;
  std::vector<std::string> choices_;
};
OptionCheck InRange(int least, int most);
OptionCheck InRange(int64_t least, int64_t most);
OptionCheck InRange(uint64_t least, uint64_t most);
OptionCheck OneOf(std::vector<std::string> words);
OptionCheck NotNegative();
OptionCheck NotEmpty();  // '' is what a variable that is not set becomes in a script

// One option or flag; the command line owns it. Every call returns the option itself.
class CommandOption {
 public:
  CommandOption(CLI::Option* option, bool flag);

  CommandOption* Required();
  CommandOption* TypeName(const std::string& name);  // "FILE", "SIZE"
  CommandOption* Group(const std::string& heading);  // in --help
  CommandOption* Default(const std::string& text);   // shown as what holds without it
  CommandOption* Check(const OptionCheck& check);
  CommandOption* ShowDefault();  // the present value of the variable
  CommandOption* Needs(CommandOption* other);
  CommandOption* Excludes(CommandOption* other);
  CommandOption* Excludes(std::initializer_list<const char*> names);
  // It takes one value each time it is given; without this a list takes all words that follow.
  CommandOption* OneValueEach();
  CommandOption* Delimiter(char delimiter);  // separates a list in one word
  CommandOption* Values(int least, int most);

  OptionDescription Describe() const;

 private:
  friend class CommandLine;
  CLI::Option* option_;
  bool flag_;
  std::string value_, condition_, default_;
  std::vector<std::string> choices_;
};

class CommandLine {
 public:
  // `name`: "headrace run". `footer`: what --help ends with.
  CommandLine(const std::string& name, const std::string& purpose, const std::string& footer);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `names`: "-o,--output", or a word without dashes for a positional argument. T: numbers,
  // std::string, optional of those, std::vector<std::string> (command_line.cc lists them).
  template <typename T>
  CommandOption* AddOption(const std::string& names, T& value, const std::string& help);
  CommandOption* AddFlag(const std::string& names, bool& value, const std::string& help);
  CommandLine* AddSubcommand(const std::string& name, const std::string& purpose);

  // The heading in --help of what is added from here on; "": none. Options that mean the same in
  // all commands have their own (cli/common_options.h). Returns the heading so far.
  std::string Group(const std::string& heading);

  // The option with that name, which must exist.
  CommandOption* Find(const std::string& name);
  bool Has(const std::string& name) const;
  // Allows this command line's options after a subcommand as well.
  void Fallthrough();
  // Leaves the words after the options unparsed; Remaining returns them.
  void LeaveTheRest();

  // After parsing.
  size_t Count(const std::string& name) const;  // how often it was given
  bool Parsed() const;                          // a subcommand: whether it was named
  std::vector<std::string> Remaining() const;
  std::vector<std::string> LongNames() const;  // "--limit"
  std::vector<std::string> SubcommandNames() const;
  bool HasUsedSubcommand() const;  // after parsing
  // Those that were named; all where none was.
  std::vector<const CommandLine*> UsedSubcommands() const;

  // Before parsing: sets an option as if its default were these values, so that one that is given
  // replaces it. Throws UsageFault for values that the option refuses.
  void SetDefault(const std::string& name, const std::vector<std::string>& values);

  // Before the words are parsed by another command line of the same command: whether they ask for
  // help. Options that they name count here from then on. Words that are wrong are no fault.
  bool AsksForHelp(const std::vector<std::string>& words);
  // After AsksForHelp: whether the words name an option that cannot stand beside this one.
  bool IsExcluded(const std::string& name) const;
  // The long names of the options that cannot stand beside this one.
  std::vector<std::string> ExcludedBy(const std::string& name) const;

  // Reads the words into the variables. False where help was asked for and printed. Throws
  // UsageFault with one line that says what is wrong.
  bool Parse(const std::vector<std::string>& words);

  CommandDescription Describe() const;

 private:
  CommandLine(CLI::App* app, const std::string& purpose);
  CommandOption* Added(CLI::Option* option, bool flag);

  std::unique_ptr<CLI::App> owned_;
  CLI::App* app_;
  std::string purpose_, footer_, group_;
  bool takes_command_ = false;
  std::deque<CommandOption> options_;
  std::deque<std::unique_ptr<CommandLine>> subcommands_;
};

struct UsageFault {
  std::string what;
};

}  // namespace headrace::cli
