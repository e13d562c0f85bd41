#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/registry.h"

namespace headrace::cli {
namespace {

// What went wrong in parsing, in one line, with the nearest option where one was mistyped.
std::string Explain(const CommandLine& line, const CLI::ParseError& error,
                    const std::vector<std::string>& words) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    for (const std::string& word : words) {
      if (word.rfind("--", 0) != 0) continue;
      const std::string name = word.substr(0, word.find('='));
      const std::vector<std::string> names = line.LongNames();
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::string nearest = NearestName(name, names);
      return fmt::format("unknown option '{}'{}", Printable(name),
                         nearest.empty() ? "" : fmt::format(". Did you mean '{}'?", nearest));
    }
  }
  std::string text = error.what();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return Printable(text, 300);
}

// What is wrong with a number; empty: nothing.
std::string NumberFault(const std::string& text, bool natural, bool whole) {
  const std::string shown = "'" + Printable(text, 60) + "' ";
  errno = 0;
  char* end = nullptr;
  if (!whole) {
    const double value = std::strtod(text.c_str(), &end);
    return text.empty() || *end != '\0' || !std::isfinite(value) ? shown + "is not a number" : "";
  }
  std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text[0] == ' ') return shown + "is not a whole number";
  if (natural && text[0] == '-') return shown + "is negative";
  if (errno != ERANGE) return "";
  errno = 0;
  std::strtoull(text.c_str(), &end, 10);
  return natural && errno != ERANGE ? "" : shown + "is too large";
}

// The library turns "-5" into 2^64 - 5 and words its refusals for programmers: every option that
// takes a number is checked here first.
void CheckNumbers(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    const std::string type = option->get_type_name();
    const bool natural = type.rfind("UINT", 0) == 0;
    const bool whole = natural || type.rfind("INT", 0) == 0;
    if (!whole && type.rfind("FLOAT", 0) != 0) continue;
    option->check(
        [natural, whole](const std::string& text) { return NumberFault(text, natural, whole); });
  }
}

}  // namespace

// ---------------------------------------------------------------- checks

OptionCheck::OptionCheck(std::shared_ptr<CLI::Validator> validator)
    : validator_(std::move(validator)) {}

OptionCheck::OptionCheck(std::function<std::string(const std::string&)> test)
    : validator_(std::make_shared<CLI::Validator>(
          [test = std::move(test)](std::string& text) { return test(text); }, "")) {}

OptionCheck::OptionCheck(std::string (*test)(const std::string&))
    : OptionCheck(std::function<std::string(const std::string&)>(test)) {}

OptionCheck InRange(int least, int most) {
  return OptionCheck(std::make_shared<CLI::Range>(least, most));
}
OptionCheck InRange(int64_t least, int64_t most) {
  return OptionCheck(std::make_shared<CLI::Range>(least, most));
}
OptionCheck InRange(uint64_t least, uint64_t most) {
  return OptionCheck(std::make_shared<CLI::Range>(least, most));
}
OptionCheck OneOf(std::vector<std::string> words) {
  return OptionCheck(std::make_shared<CLI::IsMember>(std::move(words)));
}
OptionCheck NotNegative() {
  return OptionCheck(std::make_shared<CLI::Validator>(CLI::NonNegativeNumber));
}

// ---------------------------------------------------------------- an option

CommandOption* CommandOption::Required() {
  option_->required();
  return this;
}
CommandOption* CommandOption::TypeName(const std::string& name) {
  option_->type_name(name);
  return this;
}
CommandOption* CommandOption::Check(const OptionCheck& check) {
  option_->check(check.validator());
  return this;
}
CommandOption* CommandOption::ShowDefault() {
  option_->capture_default_str();
  return this;
}
CommandOption* CommandOption::Needs(CommandOption* other) {
  option_->needs(other->option_);
  return this;
}
CommandOption* CommandOption::Excludes(CommandOption* other) {
  option_->excludes(other->option_);
  return this;
}
CommandOption* CommandOption::Excludes(std::initializer_list<const char*> names) {
  for (const char* name : names) option_->excludes(name);
  return this;
}
CommandOption* CommandOption::OneValueEach() {
  option_->allow_extra_args(false);
  return this;
}
CommandOption* CommandOption::Delimiter(char delimiter) {
  option_->delimiter(delimiter);
  return this;
}
CommandOption* CommandOption::Values(int least, int most) {
  option_->expected(least, most);
  return this;
}

// ---------------------------------------------------------------- all of them

CommandLine::CommandLine(const std::string& purpose, const std::string& name,
                         const std::string& footer)
    : owned_(std::make_unique<CLI::App>(purpose, name)), app_(owned_.get()) {
  app_->footer(footer);
  app_->get_formatter()->column_width(30);
}

CommandLine::CommandLine(CLI::App* app) : app_(app) {}

CommandLine::~CommandLine() = default;

template <typename T>
CommandOption* CommandLine::AddOption(const std::string& names, T& value, const std::string& help) {
  return &options_.emplace_back(app_->add_option(names, value, help));
}

#define HR_OPTION_OF(...)                                                          \
  template CommandOption* CommandLine::AddOption(const std::string&, __VA_ARGS__&, \
                                                 const std::string&)
HR_OPTION_OF(int);
HR_OPTION_OF(unsigned);
HR_OPTION_OF(int64_t);
HR_OPTION_OF(uint64_t);
HR_OPTION_OF(double);
HR_OPTION_OF(std::string);
HR_OPTION_OF(std::vector<std::string>);
HR_OPTION_OF(std::optional<int>);
HR_OPTION_OF(std::optional<int64_t>);
HR_OPTION_OF(std::optional<uint64_t>);
HR_OPTION_OF(std::optional<double>);
HR_OPTION_OF(std::optional<std::string>);
#undef HR_OPTION_OF

CommandOption* CommandLine::AddFlag(const std::string& names, bool& value,
                                    const std::string& help) {
  return &options_.emplace_back(app_->add_flag(names, value, help));
}

CommandLine* CommandLine::AddSubcommand(const std::string& name, const std::string& purpose) {
  subcommands_.emplace_back(new CommandLine(app_->add_subcommand(name, purpose)));
  return subcommands_.back().get();
}

CommandOption* CommandLine::Find(const std::string& name) {
  return &options_.emplace_back(app_->get_option(name));
}

void CommandLine::Fallthrough() { app_->fallthrough(); }
void CommandLine::LeaveTheRest() { app_->prefix_command(); }

size_t CommandLine::Count(const std::string& name) const { return app_->count(name); }
bool CommandLine::Parsed() const { return app_->parsed(); }
std::vector<std::string> CommandLine::Remaining() const { return app_->remaining(); }

std::vector<std::string> CommandLine::LongNames() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool CommandLine::Parse(const std::vector<std::string>& words) {
  CheckNumbers(app_);
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app_->help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageFault{Explain(*this, error, words)};
  }
  return true;
}

}  // namespace headrace::cli
