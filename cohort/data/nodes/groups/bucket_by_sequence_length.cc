#include <algorithm>

#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/answers.h"
#include "cohort/data/nodes/groups/group_by_window.h"
#include "cohort/ops/random.h"

// Groups by bucket, whose windows are batches.
namespace cohort::internal {
namespace {
using data::BucketBySequenceLengthOptions;

struct Buckets {
  std::vector<int64_t> boundaries;
  std::vector<int64_t> batch_sizes;
  BucketBySequenceLengthOptions options;

  // Bucket i holds the lengths of boundaries[i - 1] or more and less than boundaries[i].
  int64_t bucket_of(int64_t length) const {
    const int64_t bucket =
        std::upper_bound(boundaries.begin(), boundaries.end(), length) - boundaries.begin();
    if (!options.pad_to_bucket_boundary || bucket < std::ssize(boundaries)) return bucket;
    throw InvalidArgumentError(str("the length is ", length, ", but with pad_to_bucket_boundary ",
                                   "lengths are below the last boundary, which is ",
                                   boundaries.empty() ? "missing" : str(boundaries.back())));
  }
  data::Dataset batches(int64_t bucket, const data::Dataset& window) const {
    const auto i = static_cast<size_t>(bucket);
    if (options.no_padding) {
      return window.batch(batch_sizes[i], {.drop_remainder = options.drop_remainder});
    }
    return window.padded_batch(
        batch_sizes[i], padding(options.pad_to_bucket_boundary ? boundaries[i] - 1 : kUnknownDim));
  }
  StructureSpec spec(const data::Dataset& input) const {
    if (options.no_padding) return input.batch(1).element_spec();
    data::PaddedBatchOptions padding = this->padding(kUnknownDim);
    padding.drop_remainder = false;  // batches differ in size
    return input.padded_batch(1, padding).element_spec();
  }

 private:
  // `size`: of dimensions whose padded size is not given.
  data::PaddedBatchOptions padding(int64_t size) const {
    auto shapes = options.padded_shapes;
    for (auto& shape : shapes) std::replace(shape.begin(), shape.end(), kUnknownDim, size);
    return {.padded_shapes = std::move(shapes),
            .padding_values = options.padding_values,
            .drop_remainder = options.drop_remainder};
  }
};

std::string list_str(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + str(number);
  return '[' + text + ']';
}

void check_buckets(const Buckets& buckets) {
  const auto& boundaries = buckets.boundaries;
  const auto fail = [](const std::string& text) {
    throw InvalidArgumentError("bucket_by_sequence_length: " + text);
  };
  if (buckets.batch_sizes.size() != boundaries.size() + 1) {
    fail(str("there are ", boundaries.size(), " bucket_boundaries, but ",
             buckets.batch_sizes.size(), " bucket_batch_sizes; there must be one size more"));
  }
  for (size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i - 1] >= boundaries[i]) {
      fail(str("bucket_boundaries are ", list_str(boundaries), "; they must ascend"));
    }
  }
  for (const int64_t size : buckets.batch_sizes) {
    if (size < 1) fail(str("a batch size is ", size, "; it must be at least 1"));
  }
  if (!buckets.options.pad_to_bucket_boundary) return;
  if (boundaries.empty()) fail("with pad_to_bucket_boundary there must be a boundary");
  if (boundaries[0] < 1) fail(str("with pad_to_bucket_boundary boundaries are at least 1"));
}

// The padded shapes, where they were not given: the spec's, which tells what differs between
// elements.
void find_padded_shapes(Buckets& buckets, const data::Dataset& input) {
  const BucketBySequenceLengthOptions& options = buckets.options;
  if (!options.pad_to_bucket_boundary || options.no_padding || !options.padded_shapes.empty()) {
    return;
  }
  bool known = !input.node()->guesses_spec();
  std::vector<std::vector<int64_t>> shapes;
  for (const TensorSpec& leaf :
       known ? input.element_spec().flatten() : std::vector<TensorSpec>()) {
    known = known && leaf.shape().has_value();
    if (known) shapes.push_back(*leaf.shape());
  }
  if (!known) {
    throw InvalidArgumentError(
        "bucket_by_sequence_length: pad_to_bucket_boundary needs to know which sizes differ "
        "between elements; give padded_shapes, with kUnknownDim for those, or the output_spec of "
        "the map or generator below");
  }
  buckets.options.padded_shapes = std::move(shapes);
}

DataNode::Attributes attributes_of(const Buckets& buckets) {
  const BucketBySequenceLengthOptions& options = buckets.options;
  DataNode::Attributes attributes = {{"bucket_boundaries", list_str(buckets.boundaries)},
                                     {"bucket_batch_sizes", list_str(buckets.batch_sizes)}};
  std::string shapes;
  for (const auto& shape : options.padded_shapes) shapes += shape_str(shape);
  if (!shapes.empty()) attributes.emplace_back("padded_shapes", shapes);
  if (options.padding_values) {
    attributes.emplace_back("padding_values", str(*options.padding_values));
  }
  const auto add = [&](const char* name, bool set) {
    if (set) attributes.emplace_back(name, "true");
  };
  add("pad_to_bucket_boundary", options.pad_to_bucket_boundary);
  add("no_padding", options.no_padding);
  add("drop_remainder", options.drop_remainder);
  return attributes;
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::bucket_by_sequence_length_erased(internal::ElementFunction element_length_func,
                                                  std::vector<int64_t> bucket_boundaries,
                                                  std::vector<int64_t> bucket_batch_sizes,
                                                  BucketBySequenceLengthOptions options) const {
  internal::Buckets found{std::move(bucket_boundaries), std::move(bucket_batch_sizes),
                          std::move(options)};
  internal::check_buckets(found);
  internal::find_padded_shapes(found, *this);
  const auto buckets = std::make_shared<const internal::Buckets>(std::move(found));
  internal::WindowGrouping grouping{.name = "bucket_by_sequence_length",
                                    .attributes = internal::attributes_of(*buckets)};
  grouping.key = [buckets, length = std::move(element_length_func)](const Structure& element) {
    return buckets->bucket_of(internal::integer_of(length.whole(element)));
  };
  grouping.window_size = [buckets](int64_t bucket) {
    return buckets->batch_sizes[static_cast<size_t>(bucket)];
  };
  grouping.reduce = [buckets](int64_t bucket, const Dataset& window) {
    return buckets->batches(bucket, window);
  };
  grouping.spec = [buckets](const Dataset& input) { return buckets->spec(input); };
  if (!node()->guesses_spec()) grouping.spec(*this);  // padding that cannot be is an error here
  return Dataset(
      internal::make_group_by_window(
          node_.pointer(), std::make_shared<const internal::WindowGrouping>(std::move(grouping)),
          internal::next_seed()),
      options_);
}

}  // namespace cohort::data
