// The sections of a pipeline file. Each function parses its section from the root of the file into
// its part of the spec. parse.cc calls them; their order there decides which of two mistakes is
// reported. All throw Error kUsage with the place of what is wrong.
#pragma once
namespace headrace::reader {

class SpecValue;
struct PipelineSpec;

void ParsePipelineKeys(const SpecValue& root, PipelineSpec* spec);
void ParseSource(const SpecValue& root, PipelineSpec* spec);
void ParseProjection(const SpecValue& root, PipelineSpec* spec);
void ParseTransforms(const SpecValue& root, PipelineSpec* spec);
void ParseFilters(const SpecValue& root, PipelineSpec* spec);
void ParseStages(const SpecValue& root, PipelineSpec* spec);
void ParseDelivery(const SpecValue& root, PipelineSpec* spec);  // delivery/section.cc
void ParseCache(const SpecValue& root, PipelineSpec* spec);     // cache/section.cc
void ParseDedup(const SpecValue& root, PipelineSpec* spec);
void ParseConsumer(const SpecValue& root, PipelineSpec* spec);

// Tables of [source], which is `source`; in storage.cc.
void ParseDevice(const SpecValue& source, PipelineSpec* spec);
void ParseThrottle(const SpecValue& source, PipelineSpec* spec);
void ParseFault(const SpecValue& source, PipelineSpec* spec);
void ParseRemote(const SpecValue& source, PipelineSpec* spec);
void ParseTier(const SpecValue& source, PipelineSpec* spec);

// Checks that a table's operators are in their order, and that sections which need an operator have
// it.
void CheckOrder(const SpecValue& root, PipelineSpec* spec);
// Checks that keys of [pipeline] have the operator that they need, and operators the key that they
// need.
void CheckBatching(const SpecValue& root, const PipelineSpec& spec);

}  // namespace headrace::reader
