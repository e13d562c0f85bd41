#include "dashboards/pages/report_file.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/error.h"
#include "dashboards/pages/assets.h"
#include "dashboards/stack_kinds.h"

namespace headrace::dashboards {
namespace {

// Windows of the courses: few enough for a file that is mailed.
constexpr const char* kFilePixels = "240";
// Of an operator a course is a line as wide as a word.
constexpr const char* kFileOperatorPixels = "60";

// What a policy calls a script: the hash of its text.
std::string HashSource(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_sha256(), nullptr) != 1) {
    throw Error(ExitCode::kFailure, "SHA-256 failed");
  }
  unsigned char base64[2 * EVP_MAX_MD_SIZE];
  const int length = EVP_EncodeBlock(base64, digest, static_cast<int>(bytes));
  return fmt::format("'sha256-{}'",
                     std::string(reinterpret_cast<char*>(base64), static_cast<size_t>(length)));
}

void ReplaceAll(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = text->find(from); at != std::string::npos;
       at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

// JSON within an element: no "<" of it can end the element.
std::string ForElement(std::string json) {
  ReplaceAll(&json, "<", "\\u003c");
  return json;
}

}  // namespace

std::string ReportFile(const std::string& database, std::shared_ptr<const LoadedRun> loaded) {
  collectors::ReadStore store(database);
  const int64_t id = loaded->run.run.run_id;
  const PageRun page(store, id, [&] { return loaded; });
  std::string data;
  const auto add = [&](const std::string& path, const PageAnswer& answer, const PageQuery& query) {
    data += fmt::format("{}\"{}\":{}", data.empty() ? "{" : ",\n", path, answer.make(page, query));
  };
  for (const auto& [name, answer] : Registry<PageAnswer>::Global().entries()) {
    if (!answer.in_file) continue;
    const std::string path = fmt::format("/api/runs/{}/{}", id, name);
    if (name != "stacks") {
      const bool operators = name == "operators/course";
      add(path, answer,
          {{{"file", "1"}, {"brief", "1"}, {"px", operators ? kFileOperatorPixels : kFilePixels}},
           ""});
      continue;
    }
    for (const StackKind& kind : kStackKinds) {
      add(fmt::format("{}?kind={}", path, kind.key), answer, {{{"kind", kind.key}}, ""});
    }
  }
  data += "}";
  std::string script(FileScript()), style(AppStyle());
  ReplaceAll(&script, "</script", "<\\/script");
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  html += fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
      "style-src {}; img-src data:; base-uri 'none'; form-action 'none'\">\n",
      HashSource(script), HashSource(style));
  html += "<title>headrace</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>" + style +
          "</style>\n</head>\n<body>\n"
          "<a class=\"skip\" href=\"#main\">Skip to content</a>\n<header id=\"top\"></header>\n"
          "<main id=\"main\" tabindex=\"-1\"><noscript>This page needs JavaScript. In a terminal, "
          "'headrace report' says the same.</noscript></main>\n";
  html += "<script type=\"application/json\" id=\"data\">" + ForElement(std::move(data)) +
          "</script>\n<script>" + script + "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace headrace::dashboards
