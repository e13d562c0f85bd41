#include "dashboards/terminal/keys.h"

#include <algorithm>

#include "base/terminal_text.h"

namespace headrace::dashboards {
namespace {

constexpr size_t kLongestFilter = 60;  // bytes

void RemoveLastCharacter(std::string* text) {
  while (!text->empty() && (static_cast<unsigned char>(text->back()) & 0xC0) == 0x80) {
    text->pop_back();
  }
  if (!text->empty()) text->pop_back();
}

void Type(const Key& key, TopState* state) {
  switch (key.kind) {
    case Key::Kind::kEnter:
      state->typing = false;
      break;
    case Key::Kind::kEscape:
      state->typing = false;
      state->filter.clear();
      break;
    case Key::Kind::kBackspace:
      RemoveLastCharacter(&state->filter);
      break;
    case Key::Kind::kCharacter:
      // A pasted control character is no part of a name.
      if (Printable(key.text) == key.text && state->filter.size() < kLongestFilter) {
        state->filter += key.text;
      }
      break;
    default:
      break;
  }
  state->selected = 0;
}

void Answer(const Key& key, TopState* state) {
  state->asking = false;
  if (key.text == "e") state->end_command = true;
  state->quit = key.text == "e" || key.text == "l";
}

void Select(const Key& key, size_t stages, TopState* state) {
  if (stages == 0) return;
  const size_t last = stages - 1;
  const bool first_time = !state->selecting;
  state->selecting = true;
  state->selected = std::min(state->selected, last);
  if (key.kind == Key::Kind::kHome) state->selected = 0;
  if (key.kind == Key::Kind::kEnd) state->selected = last;
  if (first_time) return;  // the first press shows where it is
  if (key.kind == Key::Kind::kDown || key.text == "j") {
    state->selected = std::min(state->selected + 1, last);
  }
  if ((key.kind == Key::Kind::kUp || key.text == "k") && state->selected > 0) --state->selected;
}

// Closes what was opened last.
void Back(TopState* state) {
  if (state->help) {
    state->help = false;
  } else if (state->operators) {
    state->operators = false;
  } else if (!state->filter.empty()) {
    state->filter.clear();
  } else {
    state->selecting = false;
  }
}

void PressCharacter(const Key& key, size_t stages, TopState* state) {
  if (key.text == "q" || key.text == "Q") {
    state->asking = state->asks;
    state->quit = !state->asks;
  } else if (key.text == "p") {
    state->frozen = !state->frozen;
  } else if (key.text == "m") {
    state->mark = true;
  } else if (key.text == "w") {
    state->address = !state->address;
  } else if (key.text == "s") {
    state->sort = static_cast<TopSort>((static_cast<int>(state->sort) + 1) % 4);
  } else if (key.text == "/") {
    state->typing = true;
  } else if (key.text == "?" || key.text == "h") {
    state->help = !state->help;
  } else if (key.text == "+") {
    state->interval_ns = std::min(2 * state->interval_ns, kMostIntervalNs);
  } else if (key.text == "-") {
    state->interval_ns = std::max(state->interval_ns / 2, kLeastIntervalNs);
  } else if (key.text == "j" || key.text == "k") {
    Select(key, stages, state);
  }
}

}  // namespace

const char* TopSortName(TopSort sort) {
  constexpr const char* kNames[] = {"pipeline", "busy", "allows", "name"};
  return kNames[static_cast<int>(sort)];
}

void Press(const Key& key, size_t stages, TopState* state) {
  if (key.kind == Key::Kind::kClosed) {
    state->quit = true;
    return;
  }
  if (key.kind == Key::Kind::kResize) return;
  if (state->asking) return Answer(key, state);
  if (state->typing) return Type(key, state);
  switch (key.kind) {
    case Key::Kind::kUp:
    case Key::Kind::kDown:
    case Key::Kind::kHome:
    case Key::Kind::kEnd:
      return Select(key, stages, state);
    case Key::Kind::kEnter:
      if (stages == 0) return;
      state->selecting = true;
      state->operators = !state->operators;
      return;
    case Key::Kind::kEscape:
      return Back(state);
    case Key::Kind::kCharacter:
      return PressCharacter(key, stages, state);
    default:
      return;
  }
}

const std::vector<KeyHelp>& KeyHelps() {
  static const std::vector<KeyHelp> helps = {
      {"q", "quit; the recording of another command goes on"},
      {"p", "freeze the view, and go on; the collection is not stopped"},
      {"up down", "select a stage (also j and k)"},
      {"enter", "show the operators of the selected stage"},
      {"s", "sort the stages: by pipeline, busy time, allowed rate, name"},
      {"/", "show only stages with this text in their name, or in an operator's"},
      {"m", "mark this moment of the recording; pages show it over the lanes"},
      {"w", "show the address of the run's page, and hide it"},
      {"+ -", "read less often, or more often"},
      {"esc", "back"},
      {"?", "this page"},
  };
  return helps;
}

}  // namespace headrace::dashboards
