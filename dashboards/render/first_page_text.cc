#include "dashboards/render/first_page_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "dashboards/render/table_layout.h"

namespace headrace::dashboards {
namespace {

constexpr size_t kBlockLabelWidth = 8;
constexpr size_t kMostWidth = 100, kLeastWidth = 40;  // columns; longer lines are hard to read
constexpr size_t kPictureLines = 2;

constexpr const char* kReset = "\x1b[0m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kRed = "\x1b[1;31m";
constexpr const char* kYellow = "\x1b[33m";

// Columns of UTF-8 text, a code point each.
size_t Columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

class Painter {
 public:
  explicit Painter(bool color) : color_(color) {}
  std::string operator()(const char* code, const std::string& text) const {
    return color_ && !text.empty() ? code + text + kReset : text;
  }

 private:
  bool color_;
};

const char* BadgeColor(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "\x1b[30;42m";
    case Severity::kModerate:
      return "\x1b[30;43m";
    case Severity::kHigh:
      return "\x1b[1;97;41m";
    case Severity::kNone:
      break;
  }
  return "\x1b[7m";
}

// ---------------------------------------------------------------- picture

// How much the picture says, the most first.
enum class Detail : uint8_t { kAll, kNoQueues, kNoThreads, kFewStages };

std::string WholePercent(double ratio) { return fmt::format("{:.0f}%", 100 * ratio); }

// Whole, or its beginning and its end.
std::string ShortName(const std::string& name) {
  constexpr size_t kMost = 24, kEnd = 8;
  if (name.size() <= kMost) return name;
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(name[at]) & 0xC0) == 0x80;
  };
  size_t head = kMost - kEnd - 2, tail = name.size() - kEnd;
  while (head > 0 && continues(head)) --head;
  while (tail < name.size() && continues(tail)) ++tail;
  return name.substr(0, head) + ".." + name.substr(tail);
}

std::string StageText(const PicturePart& part, Detail detail, bool ascii) {
  std::string text = ShortName(part.name);
  if (part.threads > 0 && detail < Detail::kNoThreads) {
    text += (ascii ? " x" : " ×") + std::to_string(part.threads);
  }
  if (part.ratio) text += " " + WholePercent(*part.ratio);
  return part.limit ? "[" + text + "]" : text;
}

std::string QueueText(const PicturePart& part, Detail detail, bool ascii) {
  const char* line = ascii ? "-" : "─";
  const char* head = ascii ? ">" : "▶";
  const bool fill = part.ratio && detail < Detail::kNoQueues;
  return fill ? fmt::format("{0}{1}{0}{2}", line, WholePercent(*part.ratio), head)
              : fmt::format("{0}{0}{1}", line, head);
}

// Which stages are drawn where there is no room for all: the ends and the limit.
std::vector<bool> Kept(const std::vector<PicturePart>& parts) {
  std::vector<size_t> stages;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == PicturePart::Kind::kStage) stages.push_back(i);
  }
  std::vector<bool> kept(parts.size(), false);
  for (size_t s = 0; s < stages.size(); ++s) {
    const bool end = s == 0 || s + 1 == stages.size();
    kept[stages[s]] = end || parts[stages[s]].limit;
  }
  return kept;
}

struct Word {
  std::string text;
  bool limit = false;
};

std::vector<Word> Words(const std::vector<PicturePart>& parts, Detail detail, bool ascii) {
  std::vector<Word> words;
  const std::vector<bool> kept = Kept(parts);
  size_t hidden = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PicturePart& part = parts[i];
    const bool stage = part.kind == PicturePart::Kind::kStage;
    if (detail == Detail::kFewStages && stage && !kept[i]) {
      ++hidden;
      continue;
    }
    if (detail == Detail::kFewStages && hidden > 0 && !stage) continue;
    if (hidden > 0) {
      words.push_back({hidden == 1 ? "(1 stage)" : fmt::format("({} stages)", hidden)});
      words.push_back({ascii ? "-->" : "──▶"});
      hidden = 0;
    }
    if (stage) {
      words.push_back({StageText(part, detail, ascii), part.limit});
    } else {
      words.push_back(
          {part.kind == PicturePart::Kind::kMerge ? part.name : QueueText(part, detail, ascii)});
    }
  }
  return words;
}

std::vector<std::string> Lines(const std::vector<Word>& words, size_t width, const Painter& paint) {
  std::vector<std::string> lines(1);
  size_t used = 0;
  for (const Word& word : words) {
    const size_t columns = Columns(word.text);
    if (used > 0 && used + 1 + columns > width) {
      lines.emplace_back();
      used = 0;
    }
    lines.back() += (used > 0 ? " " : "") + (word.limit ? paint(kRed, word.text) : word.text);
    used += columns + (used > 0 ? 1 : 0);
  }
  return lines;
}

std::vector<std::string> DrawPicture(const FirstPage& page, size_t width, bool ascii,
                                     const Painter& paint) {
  const std::vector<PicturePart>& parts = page.picture;
  if (parts.empty()) return {};
  std::vector<std::string> lines;
  Detail used = Detail::kAll;
  for (const Detail detail :
       {Detail::kAll, Detail::kNoQueues, Detail::kNoThreads, Detail::kFewStages}) {
    lines = Lines(Words(parts, detail, ascii), width, paint);
    used = detail;
    if (lines.size() <= kPictureLines) break;
  }
  const bool queues =
      used == Detail::kAll && std::any_of(parts.begin(), parts.end(), [](const PicturePart& part) {
        return part.kind == PicturePart::Kind::kQueue && part.ratio.has_value();
      });
  const bool limit =
      std::any_of(parts.begin(), parts.end(), [](const PicturePart& part) { return part.limit; });
  std::string legend = "(stage: " + page.picture_shares;
  if (queues) legend += "; arrow: how full the queue is";
  if (limit) legend += "; [ ]: the limit";
  for (const std::string& line : Wrap(legend + ")", width)) lines.push_back(paint(kDim, line));
  return lines;
}

// ---------------------------------------------------------------- lines

// Lines of one statement, not painted yet.
struct Block {
  std::string label;
  std::vector<std::string> lines;
  size_t width = 0;    // of each line
  bool whole = false;  // a command, or the picture: all of it or nothing
};

constexpr const char* kTitle = "(title)";
constexpr const char* kVerdict = "(verdict)";
constexpr const char* kCondition = "(condition)";
constexpr const char* kPicture = "(picture)";

size_t Count(const std::vector<Block>& blocks) {
  size_t count = 0;
  for (const Block& block : blocks) count += block.lines.size();
  return count;
}

void Drop(const std::string& label, std::vector<Block>* blocks) {
  blocks->erase(std::remove_if(blocks->begin(), blocks->end(),
                               [&](const Block& block) { return block.label == label; }),
                blocks->end());
}

// Leaves the first `lines` lines, of which the last then ends with " ...".
void Cut(size_t lines, Block* block) {
  constexpr const char* kMore = " ...";
  if (block->lines.size() <= lines) return;
  block->lines.resize(lines);
  std::string& last = block->lines.back();
  while (Columns(last) + 4 > block->width) {
    const size_t space = last.rfind(' ');
    last.resize(space != std::string::npos ? space : block->width - 4);
  }
  last += kMore;
}

// What a reader misses least goes first, until `most` lines are left.
void Shorten(std::vector<Block>* blocks, size_t most) {
  for (const char* label : {"unseen", "basis", "also", "plan"}) {
    if (Count(*blocks) <= most) return;
    Drop(label, blocks);
  }
  for (const size_t kept : {size_t{3}, size_t{2}, size_t{1}}) {
    for (const char* label : {"why", "gpu", "but", "check", "cost", "lag", "lost", "fix", "next",
                              "gain", "then", "job", "limit", kTitle, kCondition, kVerdict}) {
      for (Block& block : *blocks) {
        if (block.label == label && !block.whole && Count(*blocks) > most) {
          const size_t over = Count(*blocks) - most;
          const size_t lines = block.lines.size();
          Cut(std::max(kept, lines > over ? lines - over : 1), &block);
        }
      }
    }
  }
  for (const char* label : {kPicture, "but", kCondition}) {
    if (Count(*blocks) > most) Drop(label, blocks);
  }
}

std::vector<Block> Blocks(const std::string& title, const FirstPage& page, size_t width,
                          std::vector<std::string> picture, bool whole) {
  std::vector<Block> blocks;
  blocks.push_back({kTitle, Wrap(title, width), width});
  // The badge is a part of the sentence, so that the two wrap together.
  const size_t verdict = width - Columns(page.badge) - 3;
  blocks.push_back({kVerdict, Wrap(page.verdict, verdict), verdict});
  for (const std::string& condition : page.conditions) {
    blocks.push_back({kCondition, Wrap(condition, width - 1), width - 1});
  }
  if (!picture.empty()) blocks.push_back({kPicture, std::move(picture), width, true});
  for (const PageLine& line : page.lines) {
    if (whole && line.label == "more") continue;
    const size_t room = width - kBlockLabelWidth;
    blocks.push_back({line.label, line.command ? std::vector{line.text} : Wrap(line.text, room),
                      room, line.command});
  }
  return blocks;
}

// The line as it is shown: its margin or label, and its colour.
std::string Paint(const Block& block, size_t i, const FirstPage& page, const Painter& paint) {
  const std::string& line = block.lines[i];
  if (block.label == kTitle) return paint(kDim, line);
  if (block.label == kCondition) return " " + paint(kYellow, line);
  if (block.label == kPicture) return line;
  if (block.label == kVerdict) {
    const std::string badge = " " + page.badge + " ";
    return (i == 0 ? paint(BadgeColor(page.severity), badge) : std::string(Columns(badge), ' ')) +
           " " + line;
  }
  const std::string label = fmt::format(" {:<{}}", i == 0 ? block.label : "", kBlockLabelWidth - 1);
  return paint(kDim, label) + (block.whole ? paint(kBold, line) : line);
}

}  // namespace

std::string RenderFirstPage(const std::string& title, const FirstPage& page,
                            const TextOptions& options, bool whole) {
  const Painter paint(options.color);
  const size_t width =
      std::clamp(static_cast<size_t>(std::max(0, options.width)), kLeastWidth, kMostWidth);
  std::vector<std::string> picture = DrawPicture(page, width - 1, options.ascii, paint);
  if (!picture.empty()) {
    for (std::string& line : picture) line.insert(0, " ");
    picture.insert(picture.begin(), "");
    picture.emplace_back();
  }
  std::vector<Block> blocks = Blocks(title, page, width, std::move(picture), whole);
  if (!whole) Shorten(&blocks, page.most_lines);
  std::string out;
  for (const Block& block : blocks) {
    for (size_t i = 0; i < block.lines.size(); ++i) out += Paint(block, i, page, paint) + "\n";
  }
  return out;
}

}  // namespace headrace::dashboards
