// How a name gets into each format unchanged in meaning. Names of operators, runs, devices and
// functions come from other programs and from databases of other people: quotes, line ends, control
// characters and bytes that are not UTF-8 must neither end a field nor make a file unreadable.
#pragma once
#include <string>
#include <string_view>

namespace headrace::dashboards {

// `text` with each byte that does not belong to a well-formed character replaced by U+FFFD.
std::string Utf8(std::string_view text);

// A JSON string with its quotes; what is not UTF-8 as in Utf8.
std::string JsonString(std::string_view text);

// A field of CSV (RFC 4180): quoted where it holds a comma, a quote, a line end, or nothing, so
// that an empty text differs from NULL, which is an empty field. Its bytes stay as they are.
std::string CsvField(std::string_view text);

// A frame of a folded stack: one line, no ';'. What a terminal would obey is spelled out, ';' is
// ':'.
std::string FoldedFrame(std::string_view text);

// A label's value or a help text of OpenMetrics, without its quotes: what a terminal would obey is
// spelled out, then backslash, quote and line end are escaped.
std::string MetricText(std::string_view text);

// `text` as the name of a metric: letters, digits and '_', a letter first.
std::string MetricName(std::string_view text);

}  // namespace headrace::dashboards
