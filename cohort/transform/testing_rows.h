// For tests: rows with columns of all kinds, and a function that makes all kinds of analyses of
// them.
#pragma once

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/dataset.h"
#include "cohort/transform/functions/analyzers.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/functions/mappers.h"
#include "cohort/transform/graph/column.h"

namespace cohort::transform {

// Numbers whose sum depends on the order of inexact additions, missing values, NaNs, words of which
// few are frequent.
inline Structure mixed_rows(int64_t count) {
  std::vector<float> x, missing;
  std::vector<double> wide;
  std::vector<int64_t> n, lengths;
  std::vector<std::string> words, texts;
  uint64_t state = 88172645463325252;
  const auto next = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<double>(next() % 100'000) / 1000 - 50;
    x.push_back(next() % 50 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                 : static_cast<float>(number));
    wide.push_back(std::ldexp(number, static_cast<int>(next() % 80) - 40));
    n.push_back(static_cast<int64_t>(next() % 1000) - 500);
    const auto word = [&] {
      const uint64_t one = next() % 400 + 1;
      return "w" + std::to_string(next() % one);
    };
    words.push_back(word());
    texts.push_back(word() + " " + word() + " " + word());
    lengths.push_back(next() % 3 == 0 ? 0 : 1);
    if (lengths.back() == 1) missing.push_back(static_cast<float>(number));
  }
  return dict({{"x", at::tensor(x)},
               {"wide", at::tensor(wide)},
               {"n", at::tensor(n)},
               {"word", StringTensor(words)},
               {"text", StringTensor(texts)},
               {"missing", RaggedTensor::from_row_lengths(at::tensor(missing), lengths)}});
}

inline data::Dataset mixed_batches(int64_t rows = 3000, int64_t batch = 32) {
  return data::Dataset::from_tensor_slices(mixed_rows(rows)).batch(batch);
}

// Its results are the same to the bit however rows are divided. Two phases.
inline Columns exact_analyses(const Columns& in) {
  const Column tokens =
      compute_and_apply_vocabulary(split(in["text"]), {.vocab_filename = "texts"});
  const auto [indices, weights] = tfidf(tokens, 400);
  const auto [keys, counts] = count_per_key(in["word"]);
  keep_statistic("keys", keys);
  keep_statistic("counts", counts);
  keep_statistic("sum", sum(in["wide"]));
  keep_statistic("var", var(in["wide"]));
  keep_statistic("size", size(in["missing"]));
  keep_statistic("bins", histogram(in["x"]).counts);
  vocabulary(in["word"], {.vocab_filename = "weighed", .weights = abs(in["wide"])});
  return {{"z", scale_to_z_score(in["x"])},
          {"u", scale_to_0_1(scale_to_z_score(in["wide"]))},
          {"n", scale_to_z_score(in["n"])},
          {"missing", scale_to_0_1(in["missing"])},
          {"word", compute_and_apply_vocabulary(in["word"], {.top_k = 50, .num_oov_buckets = 2})},
          {"i", indices},
          {"w", weights}};
}

// All files of an output, with their names.
inline std::string contents_of(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    files.push_back(std::filesystem::relative(entry.path(), directory).string() + "\n" + text);
  }
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) all += file + "\n";
  return all;
}

}  // namespace cohort::transform
