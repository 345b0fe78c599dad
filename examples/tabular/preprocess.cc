#include "preprocess.h"

#include <algorithm>

namespace tabular {
namespace {

namespace tf = cohort;
namespace tft = tf::transform;

constexpr int64_t kBuckets = 8;
constexpr int64_t kMostCategories = 1'000;
constexpr int64_t kMostWords = 2'000;
constexpr int64_t kCrosses = 1'000;

tft::Column category(const tft::Column& column, const std::string& name) {
  return tft::compute_and_apply_vocabulary(
      column, {.top_k = kMostCategories, .num_oov_buckets = 1, .vocab_filename = name});
}

tft::Column words(const tft::Column& text, const std::string& name) {
  const auto tokens = tft::bag_of_words(tft::split(tft::lower(text)), {1, 1}, " ");
  return tft::compute_and_apply_vocabulary(
      tokens, {.top_k = kMostWords, .num_oov_buckets = 1, .vocab_filename = name});
}

tft::Columns preprocess(const tft::Columns& inputs, const Roles& roles) {
  for (const std::string& text : roles.texts) {
    if (!inputs.contains(text) || !(inputs[text].dtype() == tf::string)) {
      throw tf::InvalidArgumentError("'" + text + "' is no column of strings");
    }
  }
  tft::Columns outputs;
  std::vector<tft::Column> numbers, categories;
  for (const auto& [name, column] : inputs) {
    if (name == roles.label) {
      outputs["label"] = tft::compute_and_apply_vocabulary(column, {.vocab_filename = "label"});
    } else if (column.dtype() != tf::string) {
      // A missing number is NaN, which means and variances pass over. It becomes the mean.
      const auto z_score = tft::scale_to_z_score(column);
      numbers.push_back(tft::where(tft::is_nan(z_score), 0.0, z_score));
      outputs[name + " bucket"] = tft::bucketize(numbers.back(), kBuckets);
    } else if (std::ranges::find(roles.texts, name) != roles.texts.end()) {
      outputs[name + " words"] = words(column, name + " words");
    } else {
      categories.push_back(column);
      outputs[name + " category"] = category(column, name + " category");
    }
  }
  if (!numbers.empty()) outputs["all numbers"] = tft::concat(numbers);
  if (categories.size() > 1) {
    const auto pair = tft::join({categories[0], categories[1]}, " and ");
    outputs["cross"] = tft::hash_strings(pair, kCrosses);
  }
  return outputs;
}

}  // namespace

tft::PreprocessingFunction preprocessing(const Roles& roles) {
  return [roles](const tft::Columns& inputs) { return preprocess(inputs, roles); };
}

}  // namespace tabular
