#include "reader/dwrf/decode_groups.h"

#include <algorithm>
#include <map>

#include "probes/account/scope.h"
#include "reader/dwrf/group_decoder.h"

namespace headrace::reader::dwrf {

GroupedFeatures DecodeGroups(const StripePlan& plan,
                             const std::vector<std::span<const uint8_t>>& streams,
                             const std::vector<const PresenceBits*>& map_present,
                             const GroupRequests& requests) {
  GroupedFeatures grouped;
  std::map<std::string_view, uint32_t> places;
  for (uint32_t i = 0; i < plan.features.size(); ++i) places.emplace(plan.features[i].name, i);
  ValueDecoder values(plan, streams);
  GroupDecoder decoder(plan, &values, map_present, requests.scope, requests.hash);
  for (const GroupRequest& request : requests.groups) {
    std::vector<uint32_t> features;
    for (const std::string& name : request.features) {
      const auto place = places.find(name);
      if (place != places.end() && GroupDecoder::CanCompare(plan.features[place->second]))
        features.push_back(place->second);
    }
    if (features.size() != request.features.size()) continue;
    {
      account::OperatorScope scope(request.account);
      decoder.Open(features);
      decoder.Find(plan.rows);
    }
    const RowClasses& rows = decoder.rows();
    uint64_t expanded = 0, unique = rows.inverse.size() * sizeof(uint32_t);
    for (const GroupFeature& feature : decoder.features()) {
      SparseColumn& column = grouped.columns.emplace_back();
      column.name = plan.features[feature.feature()].name;
      column.weighted = feature.weighted();
      column.group = static_cast<int32_t>(grouped.groups.size());
      column.offsets.resize(rows.first_row.size() + 1);
      const uint64_t ids = feature.Skeleton(rows.first_row, &column.present, column.offsets.data());
      column.values.resize(ids + kDecodeSlack);
      if (column.weighted) column.weights.resize(ids);
      decoder.Decode(feature, rows.first_row, column.values.data(),
                     column.weighted ? column.weights.data() : nullptr);
      column.values.resize(ids);
      grouped.features.push_back(feature.feature());
      unique += ListBytes(column);
      expanded += feature.elements() * (sizeof(int64_t) + (column.weighted ? sizeof(float) : 0)) +
                  (plan.rows + 1) * sizeof(uint32_t);
    }
    hr_done(request.account, 1, plan.rows, expanded, unique);
    grouped.decoded_bytes += unique;
    grouped.groups.push_back(
        {request.name, static_cast<uint32_t>(rows.first_row.size()), rows.inverse});
  }
  return grouped;
}

}  // namespace headrace::reader::dwrf
