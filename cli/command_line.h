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
  explicit OptionCheck(std::shared_ptr<CLI::Validator> validator);
  // A check by any function, which returns what is wrong with the text, or "".
  OptionCheck(std::function<std::string(const std::string&)> test);  // NOLINT: as a lambda is given
  OptionCheck(std::string (*test)(const std::string&));              // NOLINT

  const CLI::Validator& validator() const { return *validator_; }

 private:
  std::shared_ptr<CLI::Validator> validator_;
};
OptionCheck InRange(int least, int most);
OptionCheck InRange(int64_t least, int64_t most);
OptionCheck InRange(uint64_t least, uint64_t most);
OptionCheck OneOf(std::vector<std::string> words);
OptionCheck NotNegative();

// One option or flag; the command line owns it. Every call returns the option itself.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}

  CommandOption* Required();
  CommandOption* TypeName(const std::string& name);  // "FILE", "SIZE"
  CommandOption* Check(const OptionCheck& check);
  CommandOption* ShowDefault();  // the present value of the variable
  CommandOption* Needs(CommandOption* other);
  CommandOption* Excludes(CommandOption* other);
  CommandOption* Excludes(std::initializer_list<const char*> names);
  // It takes one value each time it is given; without this a list takes all words that follow.
  CommandOption* OneValueEach();
  CommandOption* Delimiter(char delimiter);  // separates a list in one word
  CommandOption* Values(int least, int most);

 private:
  CLI::Option* option_;
};

class CommandLine {
 public:
  // `footer`: what --help ends with.
  CommandLine(const std::string& purpose, const std::string& name, const std::string& footer);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `names`: "-o,--output", or a word without dashes for a positional argument. T: numbers,
  // std::string, optional of those, std::vector<std::string> (command_line.cc lists them).
  template <typename T>
  CommandOption* AddOption(const std::string& names, T& value, const std::string& help);
  CommandOption* AddFlag(const std::string& names, bool& value, const std::string& help);
  CommandLine* AddSubcommand(const std::string& name, const std::string& purpose);

  // The option with that name, which must exist.
  CommandOption* Find(const std::string& name);
  // Allows this command line's options after a subcommand as well.
  void Fallthrough();
  // Leaves the words after the options unparsed; Remaining returns them.
  void LeaveTheRest();

  // After parsing.
  size_t Count(const std::string& name) const;  // how often it was given
  bool Parsed() const;                          // a subcommand: whether it was named
  std::vector<std::string> Remaining() const;
  std::vector<std::string> LongNames() const;  // "--limit"

  // Reads the words into the variables. False where help was asked for and printed. Throws
  // UsageFault with one line that says what is wrong.
  bool Parse(const std::vector<std::string>& words);

 private:
  explicit CommandLine(CLI::App* app);

  std::unique_ptr<CLI::App> owned_;
  CLI::App* app_;
  std::deque<CommandOption> options_;
  std::deque<std::unique_ptr<CommandLine>> subcommands_;
};

struct UsageFault {
  std::string what;
};

}  // namespace headrace::cli
