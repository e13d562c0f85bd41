#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/check.h"
#include "base/error.h"
#include "base/registry.h"
#include "cli/common_options.h"
#include "cli/help_text.h"
#include "dashboards/terminal/terminal.h"

namespace headrace::cli {
namespace {

constexpr const char* kNoGroup = "Options";  // the library's name for it

std::string DidYouMean(const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : fmt::format(". Did you mean '{}'?", nearest);
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of an option that is another subcommand's: whose; and that the one that was named takes it as a
// word, if it does.
std::string WhoseOption(const CommandLine& line, const std::string& name) {
  std::vector<std::string> owners;
  for (const CommandDescription& one : line.Describe().subcommands)
    for (const OptionDescription& option : one.options)
      if (Contains(option.names, name)) owners.push_back(one.name);
  std::string word = name.substr(2), text = fmt::format("of {}", fmt::join(owners, ", "));
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const CommandLine* used : line.UsedSubcommands()) {
    const CommandDescription one = used->Describe();
    for (const OptionDescription& option : one.options)
      if (Contains(option.names, word))
        return fmt::format("{}; here it is a word: '{} {}'", text, one.name, word);
  }
  return text;
}

// The first option that is none here; empty: all are some.
std::string ExplainOption(const CommandLine& line, const std::vector<std::string>& words) {
  std::vector<std::string> names = line.LongNames(), all = names;
  for (const CommandLine* one : line.UsedSubcommands())
    for (const std::string& name : one->LongNames()) names.push_back(name);
  for (const CommandDescription& one : line.Describe().subcommands)
    for (const OptionDescription& option : one.options)
      all.insert(all.end(), option.names.begin(), option.names.end());
  for (const std::string& one : words) {
    if (one == "--") break;  // what follows is a program's
    if (one.rfind("--", 0) != 0) continue;
    const std::string name = one.substr(0, one.find('='));
    if (Contains(names, name)) continue;
    if (Contains(all, name))
      return fmt::format("'{}' is an option {}", name, WhoseOption(line, name));
    const std::string nearest = NearestName(name, all);
    if (nearest.empty() || Contains(names, nearest))
      return fmt::format("unknown option '{}'{}", Printable(name), DidYouMean(name, names));
    return fmt::format("unknown option '{}'. Did you mean '{}'? It is an option {}",
                       Printable(name), nearest, WhoseOption(line, nearest));
  }
  return "";
}

// Words that nothing takes: a subcommand that is none, an option that is none, a word too many.
std::string ExplainExtras(const CommandLine& line, const std::vector<std::string>& words) {
  const std::vector<std::string> extras = line.Remaining();
  const auto word = std::find_if(extras.begin(), extras.end(),
                                 [](const std::string& one) { return !one.starts_with('-'); });
  // An option that is none first: the word behind it may have been meant as its value.
  if (const std::string text = ExplainOption(line, words); !text.empty()) return text;
  const std::vector<std::string> subcommands = line.SubcommandNames();
  if (word == extras.end())
    return subcommands.empty() || line.HasUsedSubcommand()
               ? ""
               : fmt::format("say which: {}", fmt::join(subcommands, ", "));
  if (!subcommands.empty() && !line.HasUsedSubcommand())
    return fmt::format("unknown subcommand '{}', it has {}{}", Printable(*word, 80),
                       fmt::join(subcommands, ", "), DidYouMean(*word, subcommands));
  return fmt::format("'{}' is one word too many", Printable(*word, 80));
}

// What went wrong in parsing, in one line, with the nearest name where one was mistyped.
std::string Explain(const CommandLine& line, const CLI::Error& error,
                    const std::vector<std::string>& words) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string text = ExplainExtras(line, words);
    if (!text.empty()) return text;
  }
  // The word that is missing may be an unknown option's value.
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::string text = ExplainOption(line, words);
    if (!text.empty()) return text;
  }
  std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    for (const OptionDescription& option : line.Describe().options) {
      const std::string& name = option.long_name();
      if (text.starts_with(name + ": ") && text.ends_with(" missing"))
        return fmt::format("{} needs a value: {} {}", name, name, option.value);
    }
  }
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
template <typename T>
struct Held {
  using Type = T;
};
template <typename T>
struct Held<std::optional<T>> {
  using Type = T;
};
template <typename T>
void CheckNumber(CLI::Option* option) {
  using Type = typename Held<T>::Type;
  if constexpr (std::is_arithmetic_v<Type>) {
    option->check([](const std::string& text) {
      return NumberFault(text, std::is_unsigned_v<Type>, std::is_integral_v<Type>);
    });
  }
}

template <typename T>
OptionCheck RangeOf(T least, T most) {
  constexpr T kFewDigits = 1'000'000;  // a larger limit is the program's, not the user's
  return OptionCheck(std::make_shared<CLI::Range>(least, most),
                     most < kFewDigits ? fmt::format("from {} to {}", least, most) : std::string());
}

}  // namespace

// ---------------------------------------------------------------- checks

OptionCheck::OptionCheck(std::shared_ptr<CLI::Validator> validator, std::string condition,
                         std::vector<std::string> choices)
    : validator_(std::move(validator)),
      condition_(std::move(condition)),
      choices_(std::move(choices)) {}

OptionCheck::OptionCheck(std::function<std::string(const std::string&)> test)
    : validator_(std::make_shared<CLI::Validator>(
          [test = std::move(test)](std::string& text) { return test(text); }, "")) {}

OptionCheck::OptionCheck(std::string (*test)(const std::string&))
    : OptionCheck(std::function<std::string(const std::string&)>(test)) {}

OptionCheck InRange(int least, int most) { return RangeOf(least, most); }
OptionCheck InRange(int64_t least, int64_t most) { return RangeOf(least, most); }
OptionCheck InRange(uint64_t least, uint64_t most) { return RangeOf(least, most); }
OptionCheck OneOf(std::vector<std::string> words) {
  return OptionCheck(std::make_shared<CLI::IsMember>(words), "", words);
}
OptionCheck NotNegative() {
  return OptionCheck(std::make_shared<CLI::Validator>(CLI::NonNegativeNumber));
}
OptionCheck NotEmpty() {
  return OptionCheck(std::function<std::string(const std::string&)>([](const std::string& text) {
    return text.empty() ? std::string("it is empty: leave it out") : std::string();
  }));
}

// ---------------------------------------------------------------- an option

CommandOption::CommandOption(CLI::Option* option, bool flag) : option_(option), flag_(flag) {}

CommandOption* CommandOption::Required() {
  option_->required();
  return this;
}
CommandOption* CommandOption::TypeName(const std::string& name) {
  value_ = name;
  return this;
}
CommandOption* CommandOption::Group(const std::string& heading) {
  option_->group(heading.empty() ? kNoGroup : heading);
  return this;
}
CommandOption* CommandOption::Default(const std::string& text) {
  default_ = text;
  return this;
}
CommandOption* CommandOption::Check(const OptionCheck& check) {
  option_->check(check.validator());
  if (!check.condition().empty()) condition_ = check.condition();
  if (!check.choices().empty()) choices_ = check.choices();
  return this;
}
CommandOption* CommandOption::ShowDefault() {
  option_->capture_default_str();
  default_ = option_->get_default_str();
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

OptionDescription CommandOption::Describe() const {
  OptionDescription out;
  out.positional = option_->get_positional();
  if (out.positional) {
    out.names = {option_->get_name(true)};
  } else {
    for (const std::string& name : option_->get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option_->get_lnames()) out.names.push_back("--" + name);
  }
  if (!flag_) {
    out.value = value_;
    out.default_text = default_;
  }
  out.help = option_->get_description();
  out.condition = condition_;
  out.choices = choices_;
  out.group = option_->get_group() == kNoGroup ? "" : option_->get_group();
  const auto list = [](const std::set<CLI::Option*>& options, std::vector<std::string>* names) {
    for (const CLI::Option* option : options) names->push_back(option->get_name());
    std::sort(names->begin(), names->end());
  };
  list(option_->get_needs(), &out.needs);
  list(option_->get_excludes(), &out.excludes);
  out.required = option_->get_required();
  out.several = option_->get_expected_max() > 1;
  return out;
}

// ---------------------------------------------------------------- all of them

CommandLine::CommandLine(const std::string& name, const std::string& purpose,
                         const std::string& footer)
    : owned_(std::make_unique<CLI::App>(purpose, name)),
      app_(owned_.get()),
      purpose_(purpose),
      footer_(footer) {
  app_->set_help_flag("-h,--help", "Explain this command");
  app_->get_help_ptr()->group(CommonOption("--help")->group);
}

CommandLine::CommandLine(CLI::App* app, const std::string& purpose) : app_(app), purpose_(purpose) {
  app_->set_help_flag("-h,--help", "Explain this command");
}

CommandLine::~CommandLine() = default;

CommandOption* CommandLine::Added(CLI::Option* option, bool flag) {
  CommandOption* added = &options_.emplace_back(option, flag);
  added->Group(group_);
  if (!flag) added->TypeName(option->get_type_name() == "TEXT" ? "TEXT" : "N");
  if (option->get_positional()) {
    added->Group("");
  } else if (const CommonOptionEntry* common = CommonOption(option->get_name())) {
    if (common->group != nullptr) added->Group(common->group);
    if (!flag && common->value != nullptr) added->TypeName(common->value);
    if (common->default_text != nullptr) added->Default(common->default_text);
  }
  return added;
}

template <typename T>
CommandOption* CommandLine::AddOption(const std::string& names, T& value, const std::string& help) {
  CLI::Option* option = app_->add_option(names, value, help);
  CheckNumber<T>(option);
  return Added(option, false);
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
  return Added(app_->add_flag(names, value, help), true);
}

CommandLine* CommandLine::AddSubcommand(const std::string& name, const std::string& purpose) {
  subcommands_.emplace_back(new CommandLine(app_->add_subcommand(name, purpose), purpose));
  return subcommands_.back().get();
}

CommandOption* CommandLine::Find(const std::string& name) {
  const CLI::Option* option = app_->get_option(name);
  for (CommandOption& added : options_) {
    if (added.option_ == option) return &added;
  }
  HR_CHECK(false, "an option that is not the command's");
  return nullptr;
}

bool CommandLine::Has(const std::string& name) const {
  return app_->get_option_no_throw(name) != nullptr;
}

std::string CommandLine::Group(const std::string& heading) {
  return std::exchange(group_, heading);
}

void CommandLine::SetDefault(const std::string& name, const std::vector<std::string>& values) {
  CommandOption* option = Find(name);
  CLI::Option* const own = option->option_;
  try {
    own->add_result(values);
    own->run_callback();
  } catch (const CLI::Error& error) {
    own->clear();
    throw UsageFault{Explain(*this, error, {})};
  }
  own->clear();
  option->default_ = fmt::format("{}", fmt::join(values, " "));
}

void CommandLine::Fallthrough() { app_->fallthrough(); }
void CommandLine::LeaveTheRest() {
  app_->prefix_command();
  takes_command_ = true;
}

size_t CommandLine::Count(const std::string& name) const { return app_->count(name); }
bool CommandLine::Parsed() const { return app_->parsed(); }
std::vector<std::string> CommandLine::Remaining() const { return app_->remaining(true); }

std::vector<std::string> CommandLine::SubcommandNames() const {
  std::vector<std::string> names;
  for (const auto& line : subcommands_) names.push_back(line->app_->get_name());
  return names;
}

bool CommandLine::HasUsedSubcommand() const {
  return std::any_of(subcommands_.begin(), subcommands_.end(),
                     [](const auto& line) { return line->Parsed(); });
}

std::vector<const CommandLine*> CommandLine::UsedSubcommands() const {
  const bool is_any = HasUsedSubcommand();
  std::vector<const CommandLine*> used;
  for (const auto& line : subcommands_)
    if (!is_any || line->Parsed()) used.push_back(line.get());
  return used;
}

std::vector<std::string> CommandLine::LongNames() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool CommandLine::AsksForHelp(const std::vector<std::string>& words) {
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    return true;
  } catch (const CLI::Error&) {
  }
  return false;
}

std::vector<std::string> CommandLine::ExcludedBy(const std::string& name) const {
  std::vector<std::string> names;
  for (const CLI::Option* other : app_->get_option(name)->get_excludes()) {
    names.push_back(other->get_name());
  }
  return names;
}

bool CommandLine::IsExcluded(const std::string& name) const {
  const std::vector<std::string> others = ExcludedBy(name);
  return std::any_of(others.begin(), others.end(),
                     [&](const std::string& other) { return app_->count(other) > 0; });
}

bool CommandLine::Parse(const std::vector<std::string>& words) {
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs((HelpText(Describe(), dashboards::TerminalWidth(STDOUT_FILENO)) + footer_).c_str(),
               stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageFault{Explain(*this, error, words)};
  }
  // A variable of a script that is not set: no file, run or folder has such a name.
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (!option->get_positional() && !option->check_lname("output")) continue;
    for (const std::string& word : option->results()) {
      if (word.empty()) throw UsageFault{option->get_name() + ": the word is empty"};
    }
  }
  return true;
}

CommandDescription CommandLine::Describe() const {
  CommandDescription out{app_->get_name(), purpose_, {}, {}, takes_command_};
  for (const CommandOption& option : options_) out.options.push_back(option.Describe());
  OptionDescription help;
  help.names = {"-h", "--help"};
  help.help = app_->get_help_ptr()->get_description();
  help.group = CommonOption("--help")->group;
  out.options.push_back(std::move(help));
  for (const auto& line : subcommands_) out.subcommands.push_back(line->Describe());
  return out;
}

}  // namespace headrace::cli
