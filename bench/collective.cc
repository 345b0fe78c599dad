// What collective calls between processes of one host cost: one command a line on stdin, one number
// a line on stdout. bench/collective.py gives the commands, beside its peers' turns.
//
//   bench_collective RANKS                this process is rank 0, and starts the others
//   bench_collective RANKS BACKEND HOST...  the same between hosts (collective_place.h)
//   OPERATION own BYTES SECONDS           seconds that a call takes on BYTES in Communicator::buffer;
//                                         all_reduce, reduce_scatter, all_gather, barrier;
//                                         tree_sum: of a replica a rank; tree_sum_of_6: of 6, as
//                                         equally divided as possible, BYTES each
//   OPERATION other BYTES SECONDS         the same on any other memory
//   limit own BYTES SECONDS               seconds in which all cores read BYTES of each rank, add
//                                         them and write BYTES of each rank
//   version
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/communicator.h"
#include "cohort/collective/slices.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/observe/logging.h"
#include "collective_place.h"
#include "memory_limit.h"
#include "timing.h"

extern char** environ;

namespace {

using cohort::collective::Buffer;
using cohort::collective::Communicator;
using cohort::collective::Deadline;
using cohort::collective::SumDivision;

constexpr std::string_view kRankOption = "--rank";

enum class Operation : int32_t {
  kEnd,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBarrier,
  kTreeSum,
  kTreeSumOf6
};
const std::map<std::string, Operation> kOperations = {
    {"all_reduce", Operation::kAllReduce}, {"reduce_scatter", Operation::kReduceScatter},
    {"all_gather", Operation::kAllGather}, {"barrier", Operation::kBarrier},
    {"tree_sum", Operation::kTreeSum},     {"tree_sum_of_6", Operation::kTreeSumOf6}};

// What rank 0 tells the others.
struct Command {
  Operation operation = Operation::kEnd;
  bool in_own = false;
  int64_t bytes = 0;

  // The replicas that a sum by a tree has; else 0.
  int replicas(int ranks) const {
    if (operation == Operation::kTreeSum) return ranks;
    return operation == Operation::kTreeSumOf6 ? 6 : 0;
  }
};

// The replicas that each rank hosts.
std::vector<int> divide(int replicas, int ranks) {
  std::vector<int> of_rank;
  for (const auto& range : cohort::collective::SumTree(replicas).divide(ranks)) {
    of_rank.push_back(range.size());
  }
  return of_rank;
}

class Rank {
 public:
  explicit Rank(std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)) {}

  // Rank 0 alone: the others follow.
  double time(Command command, double seconds) {
    tell(command);
    const std::function<void()> call = make_call(command);
    int64_t count = 1;
    double taken = time_calls(count, call);
    while (taken < seconds / 10) taken = time_calls(count *= 2, call);
    count =
        std::max<int64_t>(1, static_cast<int64_t>(seconds / taken * static_cast<double>(count)));
    taken = time_calls(count, call);
    int64_t none = 0;
    tell(none);
    return taken / static_cast<double>(count);
  }
  void end() {
    Command command;
    tell(command);
  }

  // The other ranks: until rank 0 ends it.
  void follow() {
    for (;;) {
      Command command;
      tell(command);
      if (command.operation == Operation::kEnd) return;
      const std::function<void()> call = make_call(command);
      int64_t count = 0;
      for (tell(count); count > 0; tell(count)) {
        for (int64_t i = 0; i < count; ++i) call();
      }
    }
  }

 private:
  template <class T>
  void tell(T& value) {
    cohort::collective::broadcast(*communicator_, {&value, sizeof value, cohort::uint8}, 0,
                                  {.name = "command", .timeout = std::chrono::hours(10)});
  }

  double time_calls(int64_t count, const std::function<void()>& call) {
    tell(count);
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < count; ++i) call();
    return bench::seconds_since(start);
  }

  std::function<void()> make_call(const Command& command) {
    const int size = communicator_->size();
    if (const int replicas = command.replicas(size)) return make_tree_sum(command, replicas);
    const Buffer values = values_of(command, 1);
    std::vector<int64_t> counts;
    for (int rank = 0; rank < size; ++rank) {
      const auto slice = cohort::collective::slice_of(values.count, rank, size);
      counts.push_back(slice.end - slice.begin);
    }
    const auto call = [this, values, counts, operation = command.operation] {
      perform(operation, values, counts);
    };
    auto* numbers = static_cast<float*>(values.data);
    std::fill_n(numbers, values.count, static_cast<float>(communicator_->rank() + 1));
    call();
    const int64_t mine =
        cohort::collective::slice_of(values.count, communicator_->rank(), size).begin;
    const bool adds = command.operation == Operation::kAllReduce ||
                      (command.operation == Operation::kReduceScatter &&
                       counts[static_cast<size_t>(communicator_->rank())] > 0);
    if (adds && numbers[mine] != static_cast<float>(size * (size + 1) / 2)) {
      throw cohort::InternalError("a wrong sum");
    }
    std::fill_n(numbers, values.count, 0.0f);  // remains what it is
    return call;
  }

  std::function<void()> make_tree_sum(const Command& command, int replicas) {
    const auto division = std::make_shared<const SumDivision>(
        divide(replicas, communicator_->size()), communicator_->rank());
    communicator_->use_division(division);
    const auto parts = static_cast<int64_t>(division->own_parts().size());
    const Buffer values = values_of(command, parts);
    auto* numbers = static_cast<float*>(values.data);
    std::fill_n(numbers, parts * values.count, 1.0f);
    const auto call = [this, values] {
      communicator_->all_reduce_parts(values, {.name = "tree_sum"});
    };
    call();
    if (numbers[0] != static_cast<float>(division->additions().size())) {
      throw cohort::InternalError("a wrong sum");
    }
    std::fill_n(numbers, parts * values.count, 0.0f);
    return call;
  }

  void perform(Operation operation, const Buffer& values, const std::vector<int64_t>& counts) {
    switch (operation) {
      case Operation::kAllReduce:
        return communicator_->all_reduce({&values, 1}, {.name = "all_reduce"})
            ->wait(Deadline::max());
      case Operation::kReduceScatter:
        return communicator_->reduce_scatter({&values, 1}, counts, {.name = "reduce_scatter"})
            ->wait(Deadline::max());
      case Operation::kAllGather:
        return communicator_->all_gather({&values, 1}, counts, {.name = "all_gather"})
            ->wait(Deadline::max());
      default:
        return communicator_->barrier({.name = "barrier"});
    }
  }

  // A buffer of the command's size, in memory of so many.
  Buffer values_of(const Command& command, int64_t times) {
    const int64_t count = command.bytes / static_cast<int64_t>(sizeof(float));
    void* data = nullptr;
    if (command.in_own) {
      Buffer& own = own_[times * command.bytes];
      if (own.data == nullptr) own = communicator_->buffer(times * command.bytes);
      data = own.data;
    } else {
      other_.resize(std::max(other_.size(), static_cast<size_t>(times * count)));
      data = other_.data();
    }
    return {data, count, cohort::float32};
  }

  std::shared_ptr<Communicator> communicator_;
  std::map<int64_t, Buffer> own_;
  std::vector<float> other_;
};

// This program once more, as another rank of the same group.
pid_t start_rank(int rank, const bench::Place& place) {
  std::vector<std::string> words = {"bench_collective",         std::string(kRankOption),
                                    std::to_string(rank),       place.directory,
                                    std::to_string(place.size), place.backend};
  words.insert(words.end(), place.hosts.begin(), place.hosts.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  if (::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0) {
    throw cohort::ResourceExhaustedError("cannot start a rank");
  }
  return pid;
}

double answer(Rank& rank, int size, const std::string& line) {
  std::istringstream words(line);
  std::string name, memory;
  Command command;
  double seconds = 0;
  if (!(words >> name >> memory >> command.bytes >> seconds)) {
    throw std::invalid_argument("arguments missing");
  }
  if (name == "limit") return bench::time_memory_limit(size, command.bytes, seconds);
  command.operation = kOperations.at(name);
  command.in_own = memory == "own";
  return rank.time(command, seconds);
}

int serve(const bench::Place& place) {
  std::vector<pid_t> others;
  for (int rank = 1; rank < place.size; ++rank) others.push_back(start_rank(rank, place));
  Rank rank(bench::connect(place));
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "version") {
      std::cout << "Cohort" << std::endl;
      continue;
    }
    std::cout << answer(rank, place.size, line) << std::endl;
  }
  rank.end();
  for (const pid_t pid : others) ::waitpid(pid, nullptr, 0);
  return 0;
}

// RANKS [BACKEND HOST...]
bench::Place place_of(std::span<char* const> words) {
  bench::Place place{.size = std::stoi(words[0])};
  if (words.size() > 1) place.backend = words[1];
  for (size_t i = 2; i < words.size(); ++i) place.hosts.push_back(words[i]);
  if (place.backend != "memory" && place.hosts.size() != static_cast<size_t>(place.size)) {
    throw std::invalid_argument("each rank needs a host");
  }
  return place;
}

}  // namespace

int main(int argc, char** argv) {
  cohort::logging::set_level(cohort::logging::Level::kWarning);
  const std::span<char* const> words(argv + 1, static_cast<size_t>(argc - 1));
  try {
    if (words.size() > 3 && words[0] == kRankOption) {
      bench::Place place = place_of(words.subspan(3));
      place.rank = std::stoi(words[1]);
      place.directory = words[2];
      bench::enter(place);
      Rank(bench::connect(place)).follow();
      return 0;
    }
    if (words.empty()) {
      std::cerr << "usage: bench_collective RANKS [BACKEND HOST...] < commands\n";
      return 64;
    }
    bench::Place place = place_of(words);
    place.directory = std::filesystem::temp_directory_path() / "bench-collective-XXXXXX";
    if (::mkdtemp(place.directory.data()) == nullptr) {
      throw std::runtime_error("no temporary folder");
    }
    bench::enter(place);
    const int code = serve(place);
    std::filesystem::remove_all(place.directory);
    return code;
  } catch (const std::exception& error) {
    std::cerr << "bench_collective: " << error.what() << '\n';
    return 1;
  }
}
