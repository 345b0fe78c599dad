// What one core analyses in a second: each analysis over batches that lie in memory, as `add` sees
// them. Run with nothing beside it.
//
//   bench_analyses --benchmark_filter=sum
//
// Google Benchmark prints values (numbers or tokens) a second, and the bytes that an accumulator
// takes where its size depends on the data.

#include "cohort/transform/analysis/analyses.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/text.h"

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

// The most memory that this process has had so far, in MiB.
double peak_memory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

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

void quantiles(benchmark::State& state, bool weighted, int64_t features) {
  const ColumnBatch column = {normal_values(float32, features), std::nullopt, kRows};
  const ColumnBatch weights = {normal_values(float32, 1).abs(), std::nullopt, kRows};
  const auto analysis = quantiles_analysis({.num_buckets = 10,
                                            .epsilon = 0.01,
                                            .weighted = weighted,
                                            .reduce_instance_dims = features == 1});
  if (weighted) return add_batches(state, *analysis, {column, weights});
  add_batches(state, *analysis, {column});
}

// Tokens as words are distributed: the one of rank r comes as often as 1 / r.
StringTensor words(int64_t count, int64_t distinct, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, std::log(static_cast<double>(distinct)));
  std::vector<std::string> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(str("token", static_cast<int64_t>(std::exp(uniform(random)))));
  }
  return StringTensor(tokens);
}

void vocabulary(benchmark::State& state, bool weighted) {
  const ColumnBatch tokens = {words(kRows, 1'000'000, 1), std::nullopt, kRows};
  const ColumnBatch weights = {normal_values(float32, 1), std::nullopt, kRows};
  const auto analysis = vocabulary_analysis({.weighted = weighted});
  if (weighted) return add_batches(state, *analysis, {tokens, weights});
  add_batches(state, *analysis, {tokens});
}

// Distinct tokens in bounded memory, from the first one to the file of the vocabulary.
void distinct_tokens(benchmark::State& state) {
  const int64_t count = state.range(0) * 1'000'000;
  const auto limit = static_cast<size_t>(state.range(1)) << 20;
  const Folder folder;
  const auto analysis = vocabulary_analysis();
  const double before = peak_memory();
  for (auto _ : state) {
    const auto accumulator = analysis->start(folder.context(limit));
    std::vector<std::string> tokens(kRows);
    for (int64_t done = 0; done < count; done += kRows) {
      for (int64_t i = 0; i < kRows; ++i) {
        // Scattered, and each once: the multiplier is odd.
        tokens[static_cast<size_t>(i)] =
            hex_digits(static_cast<uint64_t>(done + i) * 0x9e3779b97f4a7c15u, 16);
      }
      const ColumnBatch column = {StringTensor(tokens), std::nullopt, kRows};
      accumulator->add({&column, 1});
    }
    const AnalysisResult result = accumulator->finish();
    state.counters["lines"] = static_cast<double>(result.file->lines);
    std::filesystem::remove(result.file->path);
  }
  state.counters["grown_by_MiB"] = peak_memory() - before;
  state.SetItemsProcessed(state.iterations() * count);
}

// Batches of 100 columns with all analyses of numbers: memory does not grow with rows.
void hundred_columns(benchmark::State& state) {
  constexpr int64_t kColumns = 100;
  constexpr int64_t kBatch = 1000;
  const int64_t rows = state.range(0) * 1'000'000;
  const Folder folder;
  const Tensor values = normal_values(float32, 1).view({kRows});
  const double before = peak_memory();
  for (auto _ : state) {
    std::vector<std::unique_ptr<Accumulator>> accumulators;
    for (int64_t column = 0; column < kColumns; ++column) {
      for (const auto& analysis :
           {min_and_max_analysis(), mean_and_variance_analysis(), sum_analysis(), size_analysis(),
            quantiles_analysis({.num_buckets = 10})}) {
        accumulators.push_back(analysis->start(folder.context()));
      }
    }
    for (int64_t done = 0; done < rows; done += kBatch) {
      const int64_t begin = done % (kRows - kBatch);
      const ColumnBatch batch = {values.narrow(0, begin, kBatch), std::nullopt, kBatch};
      for (const auto& accumulator : accumulators) accumulator->add({&batch, 1});
    }
    for (const auto& accumulator : accumulators) accumulator->finish();
  }
  state.counters["grown_by_MiB"] = peak_memory() - before;
  state.SetItemsProcessed(state.iterations() * rows * kColumns);
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
  for (const bool weighted : {false, true}) {
    const std::string ending = weighted ? "/weighted" : "";
    benchmark::RegisterBenchmark(("quantiles" + ending).c_str(), quantiles, weighted, 1);
    benchmark::RegisterBenchmark(("vocabulary" + ending).c_str(), vocabulary, weighted);
  }
  benchmark::RegisterBenchmark("quantiles/features:100", quantiles, false, 100);
  benchmark::RegisterBenchmark("hundred_columns", hundred_columns)
      ->ArgName("million_rows")
      ->Arg(1)
      ->Arg(10)
      ->Iterations(1);
  benchmark::RegisterBenchmark("distinct_tokens", distinct_tokens)
      ->ArgNames({"millions", "limit_MiB"})
      ->Args({10, 64})
      ->Args({100, 64})
      ->Iterations(1);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
