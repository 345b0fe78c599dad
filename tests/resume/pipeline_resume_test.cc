// An input pipeline as a training has it, restored in a new process at 200 random places: record
// files in turn, shuffle, parallel map with random numbers, batch, prefetch, repeat, two replicas.
#include <cohort/cohort.h>
#include <cohort/data/files/tfrecord_dataset.h>
#include <cohort/data/records/tfrecord_writer.h>
#include <cohort/ops/philox.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace cohort {
namespace {

using std::chrono::seconds;
using testing::MultiProcessRunner;

constexpr int64_t kFiles = 5;
constexpr int64_t kRecords = 37;  // in each
constexpr int64_t kShuffle = 50;
constexpr int64_t kCalls = 4;
constexpr int64_t kBatch = 6;
constexpr int64_t kPasses = 7;
constexpr size_t kPlaces = 200;

std::string file_name(const std::string& directory, int64_t file) {
  return directory + "/records-" + std::to_string(file);
}

void write_files(const std::string& directory) {
  for (int64_t file = 0; file < kFiles; ++file) {
    io::TFRecordWriter writer(file_name(directory, file));
    for (int64_t i = 0; i < kRecords; ++i) writer.write(std::to_string(1000 * file + i));
    writer.close();
  }
}

std::atomic<int64_t> records_read;  // below the shuffle

data::Dataset pipeline(const std::string& directory) {
  return data::Dataset::range(kFiles)
      .interleave(
          [directory](int64_t file) -> data::Dataset {
            return data::TFRecordDataset({file_name(directory, file)});
          },
          {.cycle_length = 3, .block_length = 2, .num_parallel_calls = 2})
      .map([](std::string_view record) {
        ++records_read;
        return std::string(record);
      })
      .shuffle(kShuffle)
      .map(
          [](random::RandomGenerator& random, std::string_view record) {
            const auto noise = static_cast<int64_t>(random.next_u64() % 1000);
            return 1000 * std::stoll(std::string(record)) + noise;
          },
          {.num_parallel_calls = kCalls})
      .batch(kBatch)
      .prefetch(2)
      .repeat(kPasses);
}

// Each process has its own seeds, as without set_seed: a state carries them.
distribute::MirroredStrategy two_replicas() {
  config::set_logical_device_configuration("CPU", 2);
  return distribute::MirroredStrategy();
}

// What is left, batch by batch.
template <class Iterator>
std::vector<std::string> read_all(Iterator& iterator) {
  std::vector<std::string> batches;
  while (auto batch = iterator.next()) batches.push_back(internal::str(*batch));
  return batches;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string place_file(const std::string& directory, size_t place, const char* kind) {
  return directory + "/" + kind + "-" + std::to_string(place);
}
std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The new process: "" where every place went on as it would have.
std::string restore_all(const std::vector<std::string>& arguments) {
  const std::string& directory = arguments.at(0);
  const auto strategy = two_replicas();
  const auto dataset = strategy.experimental_distribute_dataset(pipeline(directory));
  int64_t most_read = 0;
  for (size_t place = 0; place < kPlaces; ++place) {
    auto iterator = dataset.iterator();
    records_read = 0;
    iterator.restore(data::IteratorState::parse(read_file(place_file(directory, place, "state"))));
    most_read = std::max(most_read, records_read.load());
    if (join(read_all(iterator)) != read_file(place_file(directory, place, "rest"))) {
      return "place " + std::to_string(place) + " goes on differently";
    }
  }
  // What was in the shuffle's buffer; maps and prefetches under way re-read from there.
  if (most_read > kShuffle) return std::to_string(most_read) + " records were read again";
  if (most_read == 0) return "nothing was counted";
  return "";
}

TEST(PipelineResume, ContinuesInANewProcess) {
  std::string directory = ::testing::TempDir() + "pipeline_resume_test.XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  write_files(directory);
  const auto strategy = two_replicas();
  const auto dataset = strategy.experimental_distribute_dataset(pipeline(directory));

  auto iterator = dataset.iterator();
  const size_t steps = kPasses * ((kFiles * kRecords + kBatch - 1) / kBatch);
  internal::Philox random(1);
  std::multiset<size_t> places;
  while (places.size() < kPlaces) places.insert(random.below(steps + 1));
  std::vector<std::string> read;
  std::vector<size_t> stands;
  size_t largest_state = 0;
  for (const size_t place : places) {
    while (read.size() < place) read.push_back(internal::str(*iterator.next()));
    const std::string state = iterator.state().serialize();
    largest_state = std::max(largest_state, state.size());
    write_file(place_file(directory, stands.size(), "state"), state);
    stands.push_back(place);
  }
  for (std::string& batch : read_all(iterator)) read.push_back(std::move(batch));
  ASSERT_EQ(read.size(), steps);
  for (size_t i = 0; i < stands.size(); ++i) {
    const std::vector<std::string> rest(read.begin() + static_cast<int64_t>(stands[i]), read.end());
    write_file(place_file(directory, i, "rest"), join(rest));
  }
  // docs/data.md states the size.
  EXPECT_LT(largest_state, 4096u);

  MultiProcessRunner restored({.jobs = {{"worker", 1}},
                               .function = "restore_all",
                               .arguments = {directory},
                               .deadline = seconds(100)});
  restored.start();
  EXPECT_EQ(restored.join().at({"worker", 0}), "");
  std::filesystem::remove_all(directory);
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"restore_all", cohort::restore_all}},
                                             cohort::run_tests);
}
