// What one core analyses in a second: each analysis over batches that lie in memory, as `add` sees
// them. Run with nothing beside it.
//
//   bench_analyses --benchmark_filter=sum
//
// Google Benchmark prints values (numbers or tokens) a second, and the bytes that an accumulator
// takes where its size depends on the data.

#include "cohort/transform/analysis/analyses.h"

#include <ATen/ops/empty.h>
#include <benchmark/benchmark.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "cohort/core/structure/string_tensor.h"

namespace {

using namespace cohort;            // NOLINT
using namespace cohort::internal;  // NOLINT

constexpr int64_t kRows = 1 << 16;  // of a batch

// Numbers as features have them: of a normal distribution.
Tensor normal_values(DType dtype, int64_t features) {
  Tensor values = at::empty({kRows, features}, at::TensorOptions(float64));
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(10, 3);
  double* const numbers = values.data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i) numbers[i] = normal(random);
  return values.to(dtype);
}

struct Folder {
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  AnalysisContext context(size_t limit = size_t{256} << 20) const {
    return {posix_file_system(), path, path, limit};
  }
  std::string path = std::filesystem::temp_directory_path() / "cohort_bench_analyses";
};

void add_batches(benchmark::State& state, const Analysis& analysis,
                 const std::vector<ColumnBatch>& columns) {
  const Folder folder;
  const auto accumulator = analysis.start(folder.context());
  for (auto _ : state) accumulator->add(columns);
  int64_t values = 1;
  for (const int64_t size : columns[0].values.sizes()) values *= size;
  state.SetItemsProcessed(state.iterations() * values);
}

using MakeAnalysis = AnalysisPtr (*)(const NumericOptions&);

void numbers(benchmark::State& state, MakeAnalysis make, DType dtype, int64_t features) {
  const ColumnBatch column = {normal_values(dtype, features), std::nullopt, kRows};
  add_batches(state, *make({.dtype = dtype, .reduce_instance_dims = features == 1}), {column});
}

void register_numbers() {
  const std::pair<const char*, MakeAnalysis> analyses[] = {
      {"min_and_max", min_and_max_analysis},
      {"sum", sum_analysis},
      {"mean_and_variance", mean_and_variance_analysis}};
  for (const auto& [name, make] : analyses) {
    for (const DType dtype : {float32, float64, int64}) {
      for (const int64_t features : {1, 100}) {
        const std::string title = str(name, "/", dtype_name(dtype), "/features:", features);
        benchmark::RegisterBenchmark(title.c_str(), numbers, make, dtype, features);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_numbers();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
