// TableFolder: a table being written: its files come into being in a temporary folder beside the
// target and are moved there when all are whole, so that a table appears complete or not at all.
#pragma once
#include <filesystem>
#include <string>

namespace headrace::workloads {

class TableFolder {
 public:
  // Throws Error kUsage where `folder` exists and is not empty, unless `replace`, which exchanges
  // the files of an earlier table and leaves others alone.
  TableFolder(const std::string& folder, bool replace);
  ~TableFolder();  // what was not published is removed
  TableFolder(const TableFolder&) = delete;
  TableFolder& operator=(const TableFolder&) = delete;

  // Where to write the files until they are published.
  const std::filesystem::path& temporary() const { return temporary_; }
  void WriteText(const std::string& name, const std::string& text) const;
  // Syncs the finished files, which need not have been, and moves them into place. table.json goes
  // first and comes last: a folder without it holds no complete table. Throws Error.
  void Publish();

 private:
  std::filesystem::path target_, temporary_;
};

}  // namespace headrace::workloads
