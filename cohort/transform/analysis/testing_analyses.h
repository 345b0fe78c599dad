// For tests of analyses.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/transform/analysis/analyses.h"

namespace cohort::internal {

// A context whose files lie in memory, in /spill and /out.
struct AnalysisFolder {
  explicit AnalysisFolder(size_t memory_limit = size_t{256} << 20) : memory_limit(memory_limit) {
    files.make_directories("/spill");
    files.make_directories("/out");
  }
  AnalysisContext context() { return {files, "/spill", "/out", memory_limit}; }

  SimulatedFileSystem files;
  size_t memory_limit;
};

template <class T>
Tensor of_vector(const std::vector<T>& values) {
  return copy_numbers(values.data(), values.size(), number_dtype<T>());
}
inline ColumnBatch dense(const Leaf& values) { return {values, std::nullopt, values.sizes()[0]}; }
inline ColumnBatch ragged(const Leaf& values, std::vector<int64_t> splits) {
  const auto rows = static_cast<int64_t>(splits.size()) - 1;
  return {values, of_vector(splits), rows};
}

// Batches of columns through one accumulator.
using Batches = std::vector<std::vector<ColumnBatch>>;
inline AnalysisResult analyse(const Analysis& analysis, const Batches& batches,
                              const AnalysisContext& context) {
  const auto accumulator = analysis.start(context);
  for (const auto& batch : batches) accumulator->add(batch);
  return accumulator->finish();
}
inline AnalysisResult analyse(const Analysis& analysis, const Batches& batches) {
  AnalysisFolder folder;
  return analyse(analysis, batches, folder.context());
}

// The same in parts: each batch is added to one of `parts` accumulators that `seed` chooses; these
// are merged in an order that it chooses, some of them as saved pieces.
inline AnalysisResult analyse_in_parts(const Analysis& analysis, const Batches& batches, int parts,
                                       unsigned seed, const AnalysisContext& context) {
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<Accumulator>> accumulators;
  for (int i = 0; i < parts; ++i) accumulators.push_back(analysis.start(context));
  for (const auto& batch : batches) accumulators[random() % accumulators.size()]->add(batch);
  while (accumulators.size() > 1) {
    std::swap(accumulators[random() % accumulators.size()], accumulators.back());
    const auto other = std::move(accumulators.back());
    accumulators.pop_back();
    Accumulator& into = *accumulators[random() % accumulators.size()];
    if (random() % 2 == 0) {
      into.merge(*other);
      continue;
    }
    std::vector<std::string> pieces;
    for (auto saved = other->save(); auto piece = saved->next();) pieces.push_back(*piece);
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (const std::string& piece : pieces) into.add_saved(piece, "a test");
  }
  return accumulators[0]->finish();
}

}  // namespace cohort::internal
