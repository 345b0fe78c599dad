#include "pipelines.h"

#include <ATen/ops/empty.h>

#include <fstream>
#include <optional>

#include "cohort/core/files/crc32c.h"

namespace bench {
namespace {

namespace tf = cohort;
using tf::StringTensor;
using tf::Structure;
using tf::Tensor;
using tf::data::Dataset;

constexpr int64_t kNumbers = 100'000;
constexpr int64_t kImages = 60'000;

std::ifstream open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw tf::NotFoundError(path + " is missing");
  return file;
}

Tensor read_bytes(const std::string& path, const std::vector<int64_t>& shape) {
  const Tensor values = at::empty(shape, at::kByte);
  if (!open(path).read(static_cast<char*>(values.data_ptr()), values.numel())) {
    throw tf::DataLossError(path + " is short");
  }
  return values;
}

StringTensor read_lines(const std::string& path) {
  std::ifstream file = open(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return StringTensor(lines);
}

std::optional<int64_t> autotune_if(bool parallel) {
  return parallel ? std::optional<int64_t>(tf::data::AUTOTUNE) : std::nullopt;
}

}  // namespace

Pipelines::Pipelines(std::string directory)
    : directory_(std::move(directory)),
      images_(read_bytes(directory_ + "/images.u8", {kImages, 28, 28})),
      labels_(read_bytes(directory_ + "/labels.u8", {kImages})),
      words_(read_lines(directory_ + "/words.txt")),
      strategy_({"CPU:0", "CPU:1"}),
      lookup_({.vocabulary = directory_ + "/vocabulary.txt"}) {}

std::vector<std::string> Pipelines::files(const std::string& work) const {
  if (work == "records") return {directory_ + "/records.tfrecord"};
  return {directory_ + "/examples-0.tfrecord", directory_ + "/examples-1.tfrecord"};
}

Dataset Pipelines::records(const std::string& work, bool parallel) const {
  return tf::data::TFRecordDataset(files(work), {.num_parallel_reads = autotune_if(parallel)});
}

Dataset Pipelines::make(const std::string& work, bool parallel) const {
  const std::optional<int64_t> calls = autotune_if(parallel);
  if (work == "scalar_map") {
    return Dataset::range(kNumbers)
        .map([](int64_t x) { return 2 * x + 1; }, {.num_parallel_calls = calls})
        .batch(256);
  }
  if (work == "vector_map") {
    return Dataset::range(kNumbers)
        .map([](const Tensor& x) { return 2 * x + 1; },
             {.num_parallel_calls = calls, .vectorized = true})
        .batch(256);
  }
  if (work == "shuffled" || work == "distributed") {
    const auto rows = Dataset::from_tensor_slices(tf::tuple(images_, labels_));
    return work == "shuffled" ? rows.shuffle(10'000, {.seed = 1}).batch(128) : rows.batch(256);
  }
  if (work == "lookups") {
    return Dataset::from_tensor_slices(words_).batch(256).map(
        [this](const Structure& words) { return lookup_(words); }, {.num_parallel_calls = calls});
  }
  if (work == "records" || work == "small_records") {
    return records(work, parallel).batch(work == "records" ? 16 : 256);
  }
  if (work == "examples") {
    return records(work, parallel)
        .shuffle(10'000, {.seed = 1})
        .batch(128)
        .map(
            [](const StringTensor& examples) {
              return tf::io::parse_example(examples,
                                           {{"image", tf::io::FixedLenFeature::strings()},
                                            {"label", tf::io::FixedLenFeature({}, tf::int64)}});
            },
            {.num_parallel_calls = calls});
  }
  if (work == "tables") {
    return tf::data::experimental::make_csv_dataset(directory_ + "/table-*.csv", 128,
                                                    {.num_epochs = 1,
                                                     .shuffle_seed = 1,
                                                     .prefetch_buffer_size = 0,
                                                     .num_parallel_reads = calls});
  }
  throw tf::InvalidArgumentError("there is no pipeline '" + work + "'");
}

void Pipelines::read(const std::string& work, bool parallel,
                     const std::function<void(const Structure& batch)>& use) const {
  Dataset dataset = make(work, parallel);
  if (parallel) dataset = dataset.prefetch(tf::data::AUTOTUNE);
  if (work == "distributed") {
    for (const auto& batch : strategy_.experimental_distribute_dataset(dataset)) {
      for (const Structure& piece : batch.values()) use(piece);
    }
  } else {
    for (const Structure& batch : dataset) use(batch);
  }
}

uint32_t Pipelines::checksum_files(const std::string& work) const {
  std::vector<char> buffer(256 << 10);
  uint32_t crc = 0;
  for (const std::string& path : files(work)) {
    std::ifstream file = open(path);
    while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())),
           file.gcount() > 0) {
      crc = tf::internal::crc32c(buffer.data(), static_cast<size_t>(file.gcount()), crc);
    }
  }
  return crc;
}

}  // namespace bench
