// Analyses files of plain values as a transform, once: Cohort's turn of bench/transform.py, whose peer
// is tensorflow-transform.
//
//   bench_transform WORK DIRECTORY ROWS BATCH
//
// WORK: sums (mean and variance of 10 columns), quantiles (100 buckets of 10 columns), vocabulary. Prints
// {"seconds", "cpu_seconds", "peak_mib"}.
#include <ATen/ops/from_blob.h>
#include <cohort/cohort.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tf = cohort;
namespace tft = cohort::transform;

namespace {

// transform_data.py has the same numbers.
constexpr int kNumberColumns = 10;
constexpr int64_t kTokenBytes = 8;
constexpr int64_t kBuckets = 100;
constexpr double kEpsilon = .01;

// A file as memory, for as long as the program runs.
std::string_view mapped(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    throw tf::NotFoundError("there is no " + path + "; bench/transform.py writes it");
  }
  const auto size = static_cast<size_t>(status.st_size);
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (data == MAP_FAILED) throw tf::ResourceExhaustedError("cannot map " + path);
  return {static_cast<const char*>(data), size};
}

tf::Structure number_batch(const std::vector<std::string_view>& files, int64_t begin,
                           int64_t rows) {
  tf::Structure::Dict columns;
  for (size_t i = 0; i < files.size(); ++i) {
    auto* const values = const_cast<char*>(files[i].data()) + begin * sizeof(float);
    columns.emplace_back("x" + std::to_string(i), at::from_blob(values, {rows}, at::kFloat));
  }
  return tf::dict(std::move(columns));
}

tf::Structure token_batch(std::string_view file, int64_t begin, int64_t rows) {
  auto views = std::make_shared<std::vector<std::string_view>>();
  for (int64_t i = 0; i < rows; ++i) {
    views->push_back(file.substr((begin + i) * kTokenBytes, kTokenBytes));
  }
  const std::string_view* const first = views->data();
  return tf::dict({{"token", tf::StringTensor::over(std::move(views), first, {rows})}});
}

tf::data::Dataset batches(const std::string& work, const std::string& directory, int64_t rows,
                          int64_t batch) {
  std::vector<std::string_view> files;
  if (work == "vocabulary") {
    files = {mapped(directory + "/tokens.bytes")};
  } else {
    for (int i = 0; i < kNumberColumns; ++i) {
      files.push_back(mapped(directory + "/numbers-" + std::to_string(i) + ".f32"));
    }
  }
  const bool has_tokens = work == "vocabulary";
  return tf::data::Dataset::range(0, rows, batch).map([=](int64_t begin) {
    const int64_t count = std::min(batch, rows - begin);
    return has_tokens ? token_batch(files[0], begin, count) : number_batch(files, begin, count);
  });
}

tft::Columns function_of(const std::string& work, const tft::Columns& inputs) {
  tft::Columns outputs;
  for (const auto& [name, column] : inputs) {
    if (work == "sums") outputs[name] = tft::scale_to_z_score(column);
    if (work == "quantiles") {
      outputs[name] = tft::bucketize(column, kBuckets, {.epsilon = kEpsilon});
    }
    if (work == "vocabulary") {
      outputs[name] = tft::compute_and_apply_vocabulary(column, {.vocab_filename = "tokens"});
    }
  }
  return outputs;
}

rusage usage() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  return used;
}

double cpu_seconds() {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  const rusage used = usage();
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void run(const std::string& work, const std::string& directory, int64_t rows, int64_t batch) {
  const std::string output =
      (std::filesystem::temp_directory_path() / "cohort_bench_transform").string();
  std::filesystem::remove_all(output);
  const tf::data::Dataset dataset = batches(work, directory, rows, batch);
  const double used = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  tft::analyze_dataset(
      dataset, [&](const tft::Columns& inputs) { return function_of(work, inputs); }, output);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << "{\"seconds\": " << seconds.count() << ", \"cpu_seconds\": " << cpu_seconds() - used
            << ", \"peak_mib\": " << static_cast<double>(usage().ru_maxrss) / 1024 << "}\n";
  std::filesystem::remove_all(output);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: bench_transform WORK DIRECTORY ROWS BATCH\n";
    return 64;
  }
  return tf::run_program([&] { run(argv[1], argv[2], std::atoll(argv[3]), std::atoll(argv[4])); });
}
