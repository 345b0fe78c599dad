#include "cohort/keras/model/data_source.h"

#include <algorithm>

#include "cohort/core/structure/composite.h"
#include "cohort/core/text.h"

namespace cohort {
namespace internal {

namespace {

bool has_ragged(const Structure& structure) {
  if (composite_kind(structure) == Composite::kRagged) return true;
  if (structure.is_tuple()) {
    const auto& members = structure.members();
    return std::any_of(members.begin(), members.end(), has_ragged);
  }
  if (!structure.is_dict()) return false;
  const auto& items = structure.items();
  return std::any_of(items.begin(), items.end(),
                     [](const auto& item) { return has_ragged(item.second); });
}

}  // namespace

int64_t count_rows(const DataSource::Rows& rows) {
  std::string first_name;
  std::optional<int64_t> count;
  const auto visit = [&](const char* what, const Structure& structure) {
    if (has_ragged(structure)) {
      throw InvalidArgumentError(
          str(what,
              " has a RaggedTensor, but tensors are cut into batches along their dimension 0; "
              "give its to_tensor(), or batches of a Dataset"));
    }
    structure.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
      const std::string name = what + path;
      if (leaf.is_tensor() && !leaf.tensor().defined()) {
        throw InvalidArgumentError(str(name, " is an undefined tensor"));
      }
      if (leaf.dim() == 0) {
        throw InvalidArgumentError(
            str(name, " is a scalar; its first dimension must be that of the examples"));
      }
      const int64_t own = leaf.sizes()[0];
      if (!count) {
        count = own;
        first_name = name;
      } else if (*count != own) {
        throw InvalidArgumentError(str("the data differ in their number of examples: ", first_name,
                                       " has ", *count, ", ", name, " has ", own,
                                       "; all need the same size of dimension 0"));
      }
    });
  };
  visit("x", rows.x);
  visit("y", rows.y);
  visit("sample_weight", rows.sample_weight);
  if (!count) throw InvalidArgumentError("x is an empty tuple: there is nothing to read");
  return *count;
}

DataSource::Rows slice_rows(const DataSource::Rows& rows, int64_t begin, int64_t end) {
  const auto slice = [&](const Structure& structure) {
    return structure.map([&](const Leaf& leaf) { return leaf.slice(begin, end); });
  };
  return {slice(rows.x), slice(rows.y), slice(rows.sample_weight)};
}

Structure joined(const DataSource::Rows& rows) {
  if (rows.sample_weight.num_leaves() > 0) return tuple(rows.x, rows.y, rows.sample_weight);
  if (rows.y.num_leaves() > 0) return tuple(rows.x, rows.y);
  return rows.x.is_tuple() ? tuple(rows.x) : rows.x;
}

}  // namespace internal

namespace keras {

using internal::DataSource;
using internal::str;

DatasetCreator::DatasetCreator(Function fn)
    : DatasetCreator(std::move(fn), distribute::InputOptions()) {}

DatasetCreator::DatasetCreator(Function fn, const distribute::InputOptions& options) {
  if (!fn) throw InvalidArgumentError("DatasetCreator got an empty function");
  source_ =
      std::make_shared<const DataSource>(DataSource{DataSource::Creator{std::move(fn), options}});
}

Data::Data(Structure x, Structure y, Structure sample_weight)
    : source_(std::make_shared<const DataSource>(
          DataSource{DataSource::Rows{std::move(x), std::move(y), std::move(sample_weight)}})) {}

Data::Data(const data::Dataset& dataset)
    : source_(std::make_shared<const DataSource>(DataSource{dataset})) {}

Data::Data(const distribute::DistributedDataset& dataset)
    : source_(std::make_shared<const DataSource>(DataSource{dataset})) {}

Batch unpack_x_y_sample_weight(const Structure& data) {
  if (!data.is_tuple()) return {.x = data, .y = {}, .sample_weight = {}};
  if (data.size() == 0 || data.size() > 3) {
    throw InvalidArgumentError(
        str("a batch for training is x, (x, y) or (x, y, sample_weight), but the data gave a tuple "
            "of ",
            data.size(), "; inputs that are a tuple of their own stand inside one: ((a, b), y)"));
  }
  return {.x = data[0],
          .y = data.size() > 1 ? data[1] : Structure(),
          .sample_weight = data.size() > 2 ? data[2] : Structure()};
}

}  // namespace keras
}  // namespace cohort
