// stalled_reader PATTERN TIMEOUT_MS PARALLEL
//
// Reads the TFRecord files that match, and says a line for each thing that happens: `remote 0|1` of
// the first file, a record's bytes, `error CODE: text`, `end`. Waits for a line of input before it
// lists, after 10 records, and after each error.
#include <cohort/cohort.h>

#include <chrono>
#include <iostream>
#include <string>

#include "cohort/core/files/file_system.h"

namespace tf = cohort;

namespace {

void say(const std::string& line) { std::cout << line << std::endl; }

void wait() {
  std::string line;
  if (!std::getline(std::cin, line)) std::exit(1);
}

template <class Call>
auto until_it_works(const Call& call) {
  while (true) {
    try {
      return call();
    } catch (const tf::Error& error) {
      say("error " + std::string(tf::code_name(error.code())) + ": " + error.what());
      wait();
    }
  }
}

}  // namespace

int main(int, char** arguments) {
  const std::string pattern = arguments[1];
  const std::chrono::milliseconds timeout(std::stoi(arguments[2]));
  wait();
  const auto files = until_it_works([&] {
    return tf::data::Dataset::list_files(pattern, {.shuffle = false, .read_timeout = timeout});
  });
  const tf::data::TFRecordDataset records(files, {.buffer_size = 4096,
                                                  .num_parallel_reads = std::stoi(arguments[3]),
                                                  .read_timeout = timeout});
  auto iterator = records.iterator();
  for (int count = 0;; ++count) {
    if (count == 10) {
      say("ten");
      wait();
    }
    const auto record = until_it_works([&] { return iterator.next(); });
    if (!record) break;
    say(std::string(record->strings().item().substr(0, 8)));
  }
  const std::string first(files.iterator().get_next().strings().item());
  say(std::string("remote ") +
      (tf::internal::posix_file_system().open(first)->is_remote() ? "1" : "0"));
  say("end");
  return 0;
}
