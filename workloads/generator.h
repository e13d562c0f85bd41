// GenerateTable: writes a recommendation training table and the pipeline that reads it.
//
//   folder/part-00000.dwrf ...   one file per partition (a day), columns
//       label float, session_id bigint, timestamp bigint, dense map<int,float>,
//       sparse map<int,list<bigint>>, weighted map<int,map<bigint,float>>; the maps are flattened
//   folder/pipeline.toml         the model's projection and transforms, ready for `headrace run`
//   folder/table.json            what was asked for and what came out; written last
//
// The same spec gives the same rows everywhere, and the same bytes wherever the compression
// libraries are of the same version.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/dwrf/crypto/file_keys.h"
#include "workloads/feature_set.h"
#include "workloads/generated_table.h"
#include "workloads/spec.h"

namespace headrace::workloads {

// Columns to encrypt, and where the keys are: `keys_place` goes into pipeline.toml, the keys
// nowhere.
struct TableEncryption {
  std::vector<reader::dwrf::EncryptionGroupSpec> groups;
  std::shared_ptr<const reader::dwrf::KeyRing> keys;
  std::string keys_place;
};

// Called with the share done (0..1) and a short note, some times a second. It may throw to stop;
// then nothing is left behind.
using GenerateProgress = std::function<void(double fraction, const std::string& note)>;

// Writes into a temporary folder beside `folder` and renames, so that the table appears complete or
// not at all. Where `folder` exists and is not empty: throws Error kUsage unless `replace`, which
// exchanges the files of an earlier table and leaves others alone. Throws Error as FileWriter does.
GeneratedTable GenerateTable(const WorkloadSpec& spec, const std::string& folder,
                             const GenerateProgress& progress = {}, bool replace = false,
                             const TableEncryption& encryption = {});

}  // namespace headrace::workloads
