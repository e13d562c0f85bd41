#include "reader/dwrf/slices.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "probes/account/scope.h"
#include "reader/batch/first_use.h"
#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/decode/varint_skip.h"
#include "reader/dwrf/decode_groups.h"
#include "reader/dwrf/group_decoder.h"
#include "reader/dwrf/kept_runs.h"
#include "reader/dwrf/value_decoder.h"

namespace headrace::reader::dwrf {
namespace {

// Elements of one feature: `skip` of them to be passed over, then `take` for a slice.
struct Step {
  uint64_t skip, take, slice;
};

// One list feature on its way: where its ids and weights are, and what of them is wanted.
struct ListSource {
  // Whether ids are decoded as they are needed: plain ones, and those of a dictionary that they do
  // not stay in.
  bool is_plain = false, is_indexed = false;
  ValueDecoder::PlainIntegers ids;
  ValueDecoder::IndexedIntegers indexed;
  std::span<const uint8_t> weights;  // as stored
  uint64_t elements = 0, used = 0;   // used: of weights, and of what was decoded by feature
  Array<Step> steps;
};

class SliceDecoder {
 public:
  SliceDecoder(UnpackedStripe&& unpacked, const SliceOptions& options)
      : unpacked_(std::move(unpacked)),
        options_(options),
        plan_(unpacked_.plan),
        decoder_(plan_, unpacked_.streams, options.dictionaries) {
    HR_CHECK(plan_.maps.empty(), "slices are of flattened maps");
    stripe_.sliced = true;
    stripe_.slice_rows =
        options.slice_rows == 0 ? std::max<uint64_t>(1, plan_.rows) : options.slice_rows;
  }

  DecodedStripe Decode() {
    FindGrouped();
    DecodeRows();
    // What there is of the projection has been seen to hold so many rows.
    stripe_.slices.resize(NumSlices(plan_.rows, options_.slice_rows));
    ChooseRows();
    runs_ = RunsOf(stripe_.keep, plan_.rows, stripe_.slice_rows);
    for (const Run& run : runs_) stripe_.kept_rows += run.rows;
    if (!stripe_.keep.empty()) KeepChosen();
    FindSteps();
    MakeSlabs();
    MakeColumns();
    for (size_t i = 0; i < plan_.features.size(); ++i)
      if (plan_.features[i].kind != FeatureKind::kDense && !is_grouped_[i]) DecodeLists(i);
    if (options_.groups != nullptr) DecodeGroups();
    stripe_.bytes = std::move(unpacked_.bytes);
    stripe_.decrypted = std::move(unpacked_.decrypted);
    stripe_.unpacked = std::move(unpacked_.unpacked);
    stripe_.plan = std::move(unpacked_.plan);
    return std::move(stripe_);
  }

 private:
  // Which features are in a group.
  void FindGrouped() {
    is_grouped_.assign(plan_.features.size(), false);
    if (options_.groups == nullptr) return;
    std::multimap<std::string_view, uint32_t> places;
    for (uint32_t i = 0; i < plan_.features.size(); ++i)
      if (plan_.features[i].kind != FeatureKind::kDense) places.emplace(plan_.features[i].name, i);
    for (const GroupRequest& request : options_.groups->groups) {
      std::vector<uint32_t>& group = groups_.emplace_back();
      for (const std::string& name : request.features) {
        const auto place = places.find(name);
        HR_CHECK(place != places.end(),
                 "groups are of sparse features of the plan, each in one group");
        is_grouped_[place->second] = true;
        group.push_back(place->second);
        places.erase(place);
      }
    }
  }

  // All that is cheap, for all rows: presence, lengths, dense features, plain columns. Rows are
  // only claimed until a stream was read that has something for each of them: where all else is
  // grouped, that of a grouped feature.
  void DecodeRows() {
    bool knows_rows = std::any_of(plan_.columns.begin(), plan_.columns.end(),
                                  [](const ColumnPlan& column) { return !column.is_locked; });
    for (const FeaturePlan& feature : plan_.features) {
      if (feature.map_present == NodePlan::kNone ||
          MapPresent(stripe_, feature.map_present) != nullptr)
        continue;
      stripe_.map_present_streams.push_back(feature.map_present);
      decoder_.Bits(feature.map_present, plan_.rows, &stripe_.map_present.emplace_back());
      knows_rows = true;
    }
    stripe_.features.resize(plan_.features.size());
    lists_.resize(plan_.features.size());
    for (size_t i = 0; i < plan_.features.size(); ++i) {
      if (is_grouped_[i]) continue;
      const FeaturePlan& plan = plan_.features[i];
      DecodedFeature& feature = stripe_.features[i];
      const PresenceBits* map_present = MapPresent(stripe_, plan.map_present);
      if (const auto values = decoder_.Rows(plan, map_present, &feature)) {
        knows_rows = true;
        DecodeFeature(plan, *values, &feature, &lists_[i]);
      }
      feature.in_map = RowsPresent(map_present, plan_.rows, &feature);
      feature.value_present = {};
      stripe_.decoded_bytes += 4 * feature.lengths.size() + feature.packed_floats.size() +
                               8 * feature.in_map.words.size();
    }
    for (size_t i = 0; i < plan_.features.size() && !knows_rows; ++i) {
      DecodedFeature scratch;
      knows_rows = is_grouped_[i] && decoder_.Rows(plan_.features[i], nullptr, &scratch);
    }
    stripe_.columns.resize(plan_.columns.size());
    for (size_t i = 0; i < plan_.columns.size(); ++i) {
      DecodedColumn& column = stripe_.columns[i];
      decoder_.Column(plan_.columns[i], &column);
      const TypeKind kind = plan_.columns[i].value.kind;
      if (kind == TypeKind::kFloat || kind == TypeKind::kDouble) {
        column.floats = Spread(std::move(column.floats), column.present, plan_.rows);
      } else {
        column.integers = Spread(std::move(column.integers), column.present, plan_.rows);
      }
      stripe_.decoded_bytes += 8 * column.integers.size() + 4 * column.floats.size();
    }
  }

  void DecodeFeature(const FeaturePlan& plan, uint64_t values, DecodedFeature* feature,
                     ListSource* list) {
    const bool weighted = plan.kind == FeatureKind::kWeightedSparse;
    const bool in_portions =
        plan.kind != FeatureKind::kDense && (!weighted || (plan.weight.present == NodePlan::kNone &&
                                                           plan.weight.kind == TypeKind::kFloat));
    const bool stays =
        options_.dictionaries != nullptr && options_.dictionaries->Find(plan.name) != nullptr;
    list->is_plain = in_portions && ValueDecoder::IsPlain(plan.item);
    list->is_indexed = in_portions && !stays && ValueDecoder::IsIndexed(plan.item);
    if (!list->is_plain && !list->is_indexed) return decoder_.Values(plan, values, feature, true);
    list->elements = decoder_.Lengths(plan.value, values, &feature->lengths);
    if (list->elements == 0) return;
    if (list->is_plain) {
      list->ids = decoder_.Plain(plan.item, list->elements);
    } else {
      list->indexed = decoder_.Indexed(plan.item, list->elements);
    }
    if (weighted) list->weights = decoder_.PackedFloats(plan.weight, list->elements);
  }

  void ChooseRows() {
    if (!options_.wanted.empty()) {
      HR_CHECK(options_.wanted.size() == plan_.rows, "one decision per row");
      stripe_.keep.assign(options_.wanted.begin(), options_.wanted.end());
    }
    if (options_.filters.empty()) return;
    if (stripe_.keep.empty()) stripe_.keep.assign(plan_.rows, 1);
    ApplyFilters(options_.filters, FilterColumns(), stripe_.keep);
    if (std::all_of(stripe_.keep.begin(), stripe_.keep.end(), [](uint8_t k) { return k != 0; }))
      stripe_.keep.clear();
  }

  // The columns that the filters name, with all rows.
  FlatMapBatch FilterColumns() const {
    FlatMapBatch batch;
    batch.rows = plan_.rows;
    const auto is_named = [&](const std::string& name, bool is_column) {
      return std::any_of(options_.filters.begin(), options_.filters.end(), [&](const RowFilter& f) {
        return f.is_column == is_column && f.name == name;
      });
    };
    for (size_t i = 0; i < plan_.features.size(); ++i) {
      const FeaturePlan& plan = plan_.features[i];
      if (plan.kind != FeatureKind::kDense || !is_named(plan.name, false)) continue;
      const DecodedFeature& feature = stripe_.features[i];
      DenseColumn& column = batch.dense.emplace_back();
      column.name = plan.name;
      column.present = feature.in_map;
      column.values.resize(plan_.rows, 0);
      if (feature.in_map.count > 0) {
        ExpandFloats(feature.packed_floats.data(), feature.in_map.words.data(), plan_.rows,
                     column.values.data(), options_.set);
      }
    }
    for (size_t i = 0; i < plan_.columns.size(); ++i) {
      if (!is_named(plan_.columns[i].name, true)) continue;
      const DecodedColumn& from = stripe_.columns[i];
      ScalarColumn& column = batch.scalars.emplace_back();
      column.name = plan_.columns[i].name;
      const TypeKind kind = plan_.columns[i].value.kind;
      column.is_float = kind == TypeKind::kFloat || kind == TypeKind::kDouble;
      column.floats = from.floats.Clone();
      column.integers = from.integers.Clone();
    }
    return batch;
  }

  // Drops the rows of plain columns that are not kept. (The features' rows are dropped in their own
  // steps.)
  void KeepChosen() {
    for (DecodedColumn& column : stripe_.columns) {
      KeepRuns(&column.integers, runs_);
      KeepRuns(&column.floats, runs_);
    }
  }

  void FindSteps() {
    totals_.assign(stripe_.slices.size(), {});
    for (size_t i = 0; i < plan_.features.size(); ++i) {
      const bool is_dense = plan_.features[i].kind == FeatureKind::kDense;
      if ((is_dense && stripe_.keep.empty()) || is_grouped_[i]) continue;
      DecodedFeature& feature = stripe_.features[i];
      if (is_dense) {
        KeepFloats(&feature);
        continue;
      }
      FindSteps(&feature, &lists_[i]);
      for (const Step& step : lists_[i].steps) {
        Totals& totals = totals_[step.slice];
        (plan_.features[i].kind == FeatureKind::kSparse ? totals.ids : totals.weighted) +=
            step.take;
      }
    }
  }

  void FindSteps(DecodedFeature* feature, ListSource* list) {
    std::vector<uint64_t> words = std::move(feature->in_map.words);
    const uint32_t* lengths = feature->lengths.data();
    PresenceBits kept;
    Array<uint32_t> kept_lengths;
    const bool all = stripe_.keep.empty();
    uint64_t row = 0, place = 0, next = 0, skip = 0, kept_rows = 0;  // next: of the lengths
    if (!all) kept_lengths.resize(feature->in_map.count + kDecodeSlack);
    for (const Run& run : runs_) {
      const uint64_t gap = CountRange(words, row, run.first);
      skip += std::accumulate(lengths + next, lengths + next + gap, uint64_t{0});
      next += gap;
      row = run.first + run.rows;
      const uint64_t count = CountRange(words, run.first, row);
      const uint64_t take = std::accumulate(lengths + next, lengths + next + count, uint64_t{0});
      if (!all) {
        AppendBits(words, run.first, run.rows, kept_rows, &kept.words);
        if (count > 0) std::memcpy(kept_lengths.data() + place, lengths + next, count * 4);
      }
      place += count;
      next += count;
      kept_rows += run.rows;
      if (take == 0) continue;
      list->steps.push_back({skip, take, run.slice});
      skip = 0;
    }
    if (all) {
      feature->in_map.words = std::move(words);
      return;
    }
    kept.words.resize(NumWords(stripe_.kept_rows));
    kept.count = place;
    feature->in_map = std::move(kept);
    feature->lengths = std::move(kept_lengths);
  }

  void KeepFloats(DecodedFeature* feature) {
    PresenceBits kept;
    Array<float> floats(feature->in_map.count + kDecodeSlack);
    uint64_t row = 0, next = 0, kept_rows = 0;
    for (const Run& run : runs_) {
      next += CountRange(feature->in_map.words, row, run.first);
      row = run.first + run.rows;
      const uint64_t count = CountRange(feature->in_map.words, run.first, row);
      AppendBits(feature->in_map.words, run.first, run.rows, kept_rows, &kept.words);
      if (count > 0) {
        std::memcpy(floats.data() + kept.count,
                    feature->packed_floats.data() + next * sizeof(float), count * sizeof(float));
      }
      kept.count += count;
      next += count;
      kept_rows += run.rows;
    }
    kept.words.resize(NumWords(stripe_.kept_rows));
    feature->in_map = std::move(kept);
    feature->floats = std::move(floats);
    feature->packed_floats = {reinterpret_cast<const uint8_t*>(feature->floats.data()),
                              feature->in_map.count * sizeof(float)};
  }

  struct Totals {
    uint64_t ids = 0, weighted = 0;
  };

  static Slabs MakeSlab(const Totals& totals, double spare) {
    const auto room = [&](uint64_t values) {
      return values + kDecodeSlack + static_cast<uint64_t>(spare * static_cast<double>(values));
    };
    Slabs slabs;
    slabs.spare = spare;
    if (totals.ids > 0) slabs.ids = std::make_shared<Array<int64_t>>(room(totals.ids));
    if (totals.weighted > 0) {
      slabs.weighted_ids = std::make_shared<Array<int64_t>>(room(totals.weighted));
      slabs.weights = std::make_shared<Array<float>>(room(totals.weighted));
    }
    return slabs;
  }

  void MakeSlabs() {
    for (size_t slice = 0; slice < stripe_.slices.size(); ++slice) {
      const Totals& totals = totals_[slice];
      stripe_.slices[slice].slabs = MakeSlab(totals, options_.spare);
      stripe_.decoded_bytes += 8 * totals.ids + 12 * totals.weighted;
    }
    places_.assign(stripe_.slices.size(), {});
  }

  // Slices that have rows.
  uint64_t FilledSlices() const {
    return (stripe_.kept_rows + stripe_.slice_rows - 1) / stripe_.slice_rows;
  }

  // Gives every slice with rows all sparse columns, in the order of the plan and without values.
  void MakeColumns() {
    column_of_.resize(plan_.features.size());
    size_t columns = 0;
    for (size_t i = 0; i < plan_.features.size(); ++i)
      if (plan_.features[i].kind != FeatureKind::kDense) column_of_[i] = columns++;
    for (uint64_t s = 0; s < FilledSlices(); ++s) {
      stripe_.slices[s].sparse.reserve(columns);
      for (const FeaturePlan& feature : plan_.features) {
        if (feature.kind == FeatureKind::kDense) continue;
        SparseColumn& column = stripe_.slices[s].sparse.emplace_back();
        column.name = feature.name;
        column.weighted = feature.kind == FeatureKind::kWeightedSparse;
      }
    }
  }

  // The ids and weights of feature `i`, into the slabs of all slices. Kernels write a few values
  // past the last one: the place of the next feature, which comes after, or of the slack.
  void DecodeLists(size_t i) {
    const FeaturePlan& plan = plan_.features[i];
    DecodedFeature& feature = stripe_.features[i];
    ListSource& list = lists_[i];
    const bool weighted = plan.kind == FeatureKind::kWeightedSparse;
    std::vector<Totals> before = places_;
    const std::shared_ptr<const IdDictionary> kept = Kept(plan, feature, list);
    for (const Step& step : list.steps) {
      Slabs& slabs = stripe_.slices[step.slice].slabs;
      Totals& places = places_[step.slice];
      uint64_t& place = weighted ? places.weighted : places.ids;
      int64_t* const ids = (weighted ? *slabs.weighted_ids : *slabs.ids).data() + place;
      if (list.is_plain) {
        DecodePlainIds(step, &list, ids);
      } else if (list.is_indexed) {
        decoder_.DecodeIndexed(step.skip, step.take, &list.indexed, ids, options_.set);
      } else {
        std::memcpy(ids, feature.values.data() + list.used + step.skip,
                    step.take * sizeof(int64_t));
        if (feature.dictionary && !kept) feature.dictionary->LookUp({ids, step.take});
        stripe_.slices[step.slice].copied_bytes += step.take * sizeof(int64_t);
      }
      list.used += step.skip;
      if (weighted) {
        float* const weights = slabs.weights->data() + place;
        if (list.is_plain || list.is_indexed) {
          std::memcpy(weights, list.weights.data() + list.used * sizeof(float),
                      step.take * sizeof(float));
        } else {
          std::memcpy(weights, feature.weights.data() + list.used, step.take * sizeof(float));
          stripe_.slices[step.slice].copied_bytes += step.take * sizeof(float);
        }
      }
      list.used += step.take;
      place += step.take;
    }
    feature.values = {};
    feature.dictionary.reset();
    feature.weights = {};
    for (uint64_t s = 0; s < FilledSlices(); ++s) {
      SparseColumn& column = stripe_.slices[s].sparse[column_of_[i]];
      Borrow(stripe_.slices[s].slabs, weighted ? before[s].weighted : before[s].ids,
             weighted ? places_[s].weighted : places_[s].ids, &column);
      if (column.values.empty() || !kept) continue;
      column.dictionary = kept;
      column.decoded_values = column.values.size();
    }
    list = {};
  }

  // The dictionary that the feature's ids stay in: for the rows kept it may not pay any more.
  std::shared_ptr<const IdDictionary> Kept(const FeaturePlan& plan, const DecodedFeature& feature,
                                           const ListSource& list) const {
    if (!feature.dictionary || options_.dictionaries->always) return feature.dictionary;
    uint64_t values = 0;
    for (const Step& step : list.steps) values += step.take;
    const double least = *options_.dictionaries->Find(plan.name);
    if (!DictionaryRequest::Pays(feature.dictionary->entries().size(), values, least))
      return nullptr;
    return std::make_shared<const IdDictionary>(feature.dictionary->shared_entries(), values);
  }

  void DecodePlainIds(const Step& step, ListSource* list, int64_t* out) {
    ValueDecoder::PlainIntegers& ids = list->ids;
    if (step.skip > 0) {
      if (ids.format.fixed_width > 0) {
        const auto left = static_cast<uint64_t>(ids.end - ids.at);
        if (left / ids.format.fixed_width < step.skip)
          decoder_.TooShort(ids.stream, list->elements);
        ids.at += step.skip * ids.format.fixed_width;
      } else {
        ids.at = SkipVarints(ids.at, ids.end, step.skip, options_.set);
      }
      if (ids.at == nullptr) decoder_.TooShort(ids.stream, list->elements);
    }
    ids.at = DecodePlain(ids.at, ids.end, step.take, ids.format, out, options_.set);
    if (ids.at == nullptr) decoder_.TooShort(ids.stream, list->elements);
  }

  // Values [begin, end) of the slabs become the column's.
  static void Borrow(const Slabs& slabs, uint64_t begin, uint64_t end, SparseColumn* column) {
    if (begin == end) return;
    const auto& ids = column->weighted ? slabs.weighted_ids : slabs.ids;
    column->values = Array<int64_t>::Borrow({ids->data() + begin, end - begin}, ids);
    if (!column->weighted) return;
    column->weights =
        Array<float>::Borrow({slabs.weights->data() + begin, end - begin}, slabs.weights);
  }

  // The unique rows of a group that the rows of one slice are.
  struct GroupCut {
    std::vector<uint32_t> rows;  // of each, a row of the stripe that has it
    std::vector<uint32_t> uses;
    std::vector<uint32_t> inverse;
    std::vector<std::pair<PresenceBits, uint64_t>> features;  // presence and ids of each feature
    std::shared_ptr<Array<uint32_t>> offsets;                 // rows.size() + 1 for each feature
    Totals totals, place;
  };

  // Slice by slice, so that what was compared is still in the caches when it is decoded.
  void DecodeGroups() {
    std::vector<const PresenceBits*> map_present;
    for (const FeaturePlan& feature : plan_.features)
      map_present.push_back(MapPresent(stripe_, feature.map_present));
    GroupDecoder decoder(plan_, &decoder_, map_present, options_.groups->scope,
                         options_.groups->hash);
    for (size_t g = 0; g < groups_.size(); ++g) {
      const uint32_t account = options_.groups->groups[g].account;
      DedupBytes bytes;
      {
        account::OperatorScope scope(account);
        decoder.Open(groups_[g]);
      }
      group_kept_.clear();
      for (const GroupFeature& feature : decoder.features()) group_kept_.push_back(Kept(feature));
      for (auto run = runs_.begin(); run != runs_.end();) {
        const uint64_t slice = run->slice;
        auto next = run;
        while (next != runs_.end() && next->slice == slice) ++next;
        {
          account::OperatorScope scope(account);
          decoder.Find(next == runs_.end() ? plan_.rows : next->first);
          CutGroup(decoder, std::span<const Run>(run, next));
        }
        DecodeGroup(g, &decoder, &stripe_.slices[slice], &bytes);
        run = next;
      }
      hr_done(account, 1, stripe_.kept_rows, bytes.expanded, bytes.unique);
      stripe_.decoded_bytes += bytes.unique;
    }
  }

  // The dictionary that the feature's ids stay in; of the rows kept it is taken that they have
  // their share of them.
  std::shared_ptr<const IdDictionary> Kept(const GroupFeature& feature) const {
    const auto& dictionary = feature.dictionary();
    if (!dictionary || options_.dictionaries->always || stripe_.keep.empty()) return dictionary;
    const auto values = static_cast<uint64_t>(static_cast<double>(feature.elements()) *
                                              static_cast<double>(stripe_.kept_rows) /
                                              static_cast<double>(plan_.rows));
    const double least = *options_.dictionaries->Find(plan_.features[feature.feature()].name);
    if (!DictionaryRequest::Pays(dictionary->entries().size(), values, least)) return nullptr;
    return std::make_shared<const IdDictionary>(dictionary->shared_entries(), values);
  }

  // The unique rows that the rows of these runs are, numbered in the order in which they appear.
  void CutGroup(const GroupDecoder& decoder, std::span<const Run> runs) {
    const RowClasses& classes = decoder.rows();
    number_.Reset(classes.first_row.size());
    cut_.rows.clear();
    cut_.uses.clear();
    cut_.inverse = {};
    cut_.inverse.reserve(std::min(stripe_.slice_rows, stripe_.kept_rows));
    for (const Run& run : runs) {
      for (uint64_t row = run.first; row < run.first + run.rows; ++row) {
        const uint32_t number = number_(classes.inverse[row - decoder.first_row()]);
        if (number == cut_.rows.size()) {
          cut_.rows.push_back(static_cast<uint32_t>(row));
          cut_.uses.push_back(0);
        }
        ++cut_.uses[number];
        cut_.inverse.push_back(number);
      }
    }
  }

  void DecodeGroup(size_t g, GroupDecoder* decoder, FlatMapBatch* slice, DedupBytes* bytes) {
    const size_t features = decoder->features().size(), stride = cut_.rows.size() + 1;
    cut_.features.resize(features);
    cut_.offsets = std::make_shared<Array<uint32_t>>(features * stride);
    cut_.totals = cut_.place = {};
    bytes->unique += cut_.inverse.size() * sizeof(uint32_t);
    for (size_t f = 0; f < features; ++f) {
      const GroupFeature& feature = decoder->features()[f];
      uint32_t* const offsets = cut_.offsets->data() + f * stride;
      const uint64_t ids = feature.Skeleton(cut_.rows, &cut_.features[f].first, offsets);
      cut_.features[f].second = ids;
      (feature.weighted() ? cut_.totals.weighted : cut_.totals.ids) += ids;
      const uint64_t width = sizeof(int64_t) + (feature.weighted() ? sizeof(float) : 0);
      bytes->unique += ids * width + stride * sizeof(uint32_t);
      uint64_t expanded = 0;
      for (size_t i = 0; i + 1 < stride; ++i)
        expanded += uint64_t{cut_.uses[i]} * (offsets[i + 1] - offsets[i]);
      slice->sparse[column_of_[feature.feature()]].decoded_values = expanded;
      bytes->expanded += expanded * width + (cut_.inverse.size() + 1) * sizeof(uint32_t);
    }
    slice->groups.push_back({options_.groups->groups[g].name,
                             static_cast<uint32_t>(cut_.rows.size()), std::move(cut_.inverse)});
    slice->group_slabs.push_back(
        MakeSlab(cut_.totals, g < options_.group_spare.size() ? options_.group_spare[g] : 0));
    for (size_t f = 0; f < features; ++f) DecodeGroupFeature(g, f, decoder, slice);
  }

  // As in DecodeLists, kernels write into the place of what comes next.
  void DecodeGroupFeature(size_t g, size_t f, GroupDecoder* decoder, FlatMapBatch* slice) {
    const GroupFeature& feature = decoder->features()[f];
    const Slabs& slabs = slice->group_slabs[g];
    SparseColumn& column = slice->sparse[column_of_[feature.feature()]];
    column.group = static_cast<int32_t>(g);
    column.present = std::move(cut_.features[f].first);
    const size_t stride = cut_.rows.size() + 1;
    column.offsets =
        Array<uint32_t>::Borrow({cut_.offsets->data() + f * stride, stride}, cut_.offsets);
    const uint64_t ids = cut_.features[f].second;
    if (ids == 0) return;
    uint64_t& place = column.weighted ? cut_.place.weighted : cut_.place.ids;
    Borrow(slabs, place, place + ids, &column);
    place += ids;
    decoder->Decode(feature, cut_.rows, column.values.data(),
                    column.weighted ? column.weights.data() : nullptr);
    if (group_kept_[f]) {
      column.dictionary = group_kept_[f];
    } else if (feature.dictionary()) {
      feature.dictionary()->LookUp({column.values.data(), ids});
    }
    if (feature.is_copied())
      slice->copied_bytes += ids * (sizeof(int64_t) + (column.weighted ? sizeof(float) : 0));
  }

  UnpackedStripe unpacked_;
  const SliceOptions& options_;
  const StripePlan& plan_;
  ValueDecoder decoder_;
  DecodedStripe stripe_;
  Array<Run> runs_;
  std::vector<ListSource> lists_;        // per plan feature
  std::vector<Totals> totals_, places_;  // per slice: ids in all, and decoded so far
  std::vector<bool> is_grouped_;         // per plan feature
  std::vector<size_t> column_of_;        // per plan feature: its place among the sparse columns
  std::vector<std::vector<uint32_t>> groups_;                    // of plan features
  GroupCut cut_;                                                 // of the group and slice at hand
  std::vector<std::shared_ptr<const IdDictionary>> group_kept_;  // of each feature of the group
  FirstUse number_;  // of each class of rows, within the slice
};

}  // namespace

DecodedStripe DecodeSlices(UnpackedStripe&& unpacked, const SliceOptions& options) {
  return SliceDecoder(std::move(unpacked), options).Decode();
}

}  // namespace headrace::reader::dwrf
