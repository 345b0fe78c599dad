// Reads pipelines of pictures on command: one command a line on stdin, one line on stdout.
// bench/images.py gives the commands, beside tf.data's turns.
//
//   bench_images DIRECTORY
//   write               writes the pictures; says how many, and how many bytes they have together
//   read WORK SECONDS   processor seconds that a pass takes; WORK: decoded, resized, antialiased or
//                       augmented
//   check WORK          number of pictures, and the sum of their numbers over that number
//   version             what this is, in words
#include <ATen/ops/arange.h>
#include <cohort/cohort.h>
#include <time.h>
#include <torch/version.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "timing.h"

namespace tf = cohort;

namespace {

constexpr int64_t kPictures = 128, kHeight = 375, kWidth = 500, kBatch = 32;
constexpr int64_t kSize = 224;

// What a photograph is to a codec: slopes, edges and grain.
tf::Tensor picture(int64_t seed) {
  const auto random = tf::random::RandomGenerator::from_seed(static_cast<uint64_t>(seed));
  const tf::Tensor y = at::arange(kHeight).reshape({kHeight, 1, 1});
  const tf::Tensor x = at::arange(kWidth).reshape({1, kWidth, 1});
  tf::Tensor sum = random.normal({kHeight, kWidth, 3}) * 9 + 128;
  for (const double period : {200.0, 60.0, 23.0}) {
    const tf::Tensor slope = random.uniform({2, 1, 1, 3}, {.minval = 0.5, .maxval = 2});
    sum = sum + tf::sin(x / period * slope[0] + y / period * slope[1]) * 25;
  }
  for (int64_t i = 0; i < 12; ++i) {
    const tf::Tensor at = random.uniform({2}, {.minval = 0, .maxval = 0.8});
    const auto top = static_cast<int64_t>(at[0].item<float>() * kHeight);
    const auto left = static_cast<int64_t>(at[1].item<float>() * kWidth);
    sum.narrow(0, top, kHeight / 6).narrow(1, left, kWidth / 6).add_(random.normal({3}) * 50);
  }
  return sum.clamp(0, 255).to(tf::uint8);
}

std::string write_pictures(const std::string& directory) {
  size_t bytes = 0;
  for (int64_t i = 0; i < kPictures; ++i) {
    const std::string file = tf::io::encode_jpeg(picture(i), {.quality = 90});
    bytes += file.size();
    std::ofstream(directory + "/" + std::to_string(1000 + i) + ".jpg", std::ios::binary) << file;
  }
  return std::to_string(kPictures) + " " + std::to_string(bytes);
}

tf::data::Dataset pipeline(const std::string& directory, const std::string& work) {
  const auto files = tf::data::Dataset::list_files(directory + "/*.jpg", {.shuffle = false});
  const auto decode = [](const tf::StringTensor& path) {
    return tf::io::decode_jpeg(tf::io::read_file(path), {.channels = 3});
  };
  if (work == "decoded") return files.map(decode).batch(kBatch);
  if (work == "augmented") {
    return files
        .map(
            [decode](tf::random::RandomGenerator& random, const tf::StringTensor& path) {
              const tf::Tensor part =
                  tf::image::random_crop(decode(path), {kSize, kSize, 3}, random);
              return tf::image::random_brightness(tf::image::random_flip_left_right(part, random),
                                                  0.2, random);
            },
            {.seed = 1})
        .batch(kBatch);
  }
  const bool antialias = work == "antialiased";
  return files
      .map([decode, antialias](const tf::StringTensor& path) {
        return tf::image::resize(decode(path), {kSize, kSize}, {.antialias = antialias});
      })
      .batch(kBatch);
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int64_t read_pass(const tf::data::Dataset& dataset, double& sum, bool sums) {
  int64_t rows = 0;
  for (const tf::Structure& batch : dataset) {
    rows += batch.tensor().size(0);
    if (sums) sum += batch.tensor().sum(tf::float64).item<double>();
  }
  return rows;
}

std::string answer(const std::string& directory, const std::string& line) {
  std::istringstream words(line);
  std::string command, work;
  double seconds = 0, sum = 0;
  words >> command >> work >> seconds;
  std::ostringstream out;
  if (command == "version") {
    out << "Cohort " << tf::kVersion << " on libtorch " << TORCH_VERSION;
  } else if (command == "write") {
    out << write_pictures(directory);
  } else if (command == "check") {
    const int64_t rows = read_pass(pipeline(directory, work), sum, true);
    out << rows << ' ' << sum / static_cast<double>(rows);
  } else if (command == "read") {
    const tf::data::Dataset dataset = pipeline(directory, work);
    out << bench::time_runs(seconds, 1, [&](int64_t count) {
      const double start = processor_seconds();
      for (int64_t i = 0; i < count; ++i) read_pass(dataset, sum, false);
      return processor_seconds() - start;
    });
  } else {
    throw tf::InvalidArgumentError("unknown command");
  }
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bench_images DIRECTORY < commands\n";
    return 64;
  }
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(argv[1], line) << std::endl;
    } catch (const std::exception& error) {
      std::cerr << "bench_images: " << line << ": " << error.what() << '\n';
      return 1;
    }
  }
  return 0;
}
