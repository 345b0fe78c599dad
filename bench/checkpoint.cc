// Saves and restores a given amount of variables on command: one command a line on stdin, one
// number of seconds a line on stdout. bench/checkpoint.py gives the commands, beside dd's and
// PyTorch's turns.
//
//   bench_checkpoint MIB
//   save PATH    write PATH and wait until it is on the disk
//   load PATH    restore from it
//   copy         copy all values once, as an asynchronous save must before it returns
//   stall PATH   start an asynchronous save: how long the call takes
//   steps N      the median of N training steps of guide 004 on 2 replicas
//   wait         until the asynchronous save is done
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <cohort/cohort.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "common/trainer.h"

namespace tf = cohort;

namespace {

double seconds(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Variables {
 public:
  explicit Variables(int64_t mebibytes) {
    constexpr int64_t kVariableBytes = int64_t{16} << 20;
    const int64_t elements = kVariableBytes / 4;
    std::vector<tf::train::NamedObject> objects;
    for (int64_t i = 0; i * 16 < mebibytes; ++i) {
      std::string name = std::to_string(i);
      name.insert(name.begin(), 'v');
      variables_.emplace_back(at::rand({elements}), tf::distribute::VariableOptions{.name = name});
      copies_.push_back(at::empty({elements}));
      objects.emplace_back(name, variables_.back());
    }
    checkpoint_.emplace(std::move(objects));
  }

  const tf::train::Checkpoint& checkpoint() const { return *checkpoint_; }
  void copy() {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < variables_.size(); ++i) copies_[i].copy_(variables_[i].value());
  }

 private:
  std::vector<tf::Variable> variables_;
  std::vector<tf::Tensor> copies_;
  std::optional<tf::train::Checkpoint> checkpoint_;
};

class GuideStep {
 public:
  GuideStep() : strategy_(two_cpus()), trainer_(strategy_, 128) {
    batch_.emplace(strategy_.experimental_distribute_values_from_function(
        [](const tf::distribute::ValueContext&) -> tf::Structure {
          return tf::tuple(at::rand({64, 28, 28, 1}), at::randint(10, {64}, at::kByte));
        }));
    for (int i = 0; i < 3; ++i) trainer_.distributed_train_step(*batch_);
  }

  double median(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      times.push_back(seconds([&] { trainer_.distributed_train_step(*batch_); }));
    }
    std::nth_element(times.begin(), times.begin() + count / 2, times.end());
    return times[static_cast<size_t>(count / 2)];
  }

 private:
  static std::vector<std::string> two_cpus() { return {"CPU:0", "CPU:1"}; }

  tf::distribute::MirroredStrategy strategy_;
  examples::Trainer trainer_;
  std::optional<tf::distribute::PerReplica<tf::Structure>> batch_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bench_checkpoint MIB < commands\n";
    return 64;
  }
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  tf::config::set_logical_device_configuration("CPU", 2);
  Variables variables(std::stoll(argv[1]));
  GuideStep step;
  const tf::train::Checkpoint& checkpoint = variables.checkpoint();
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, argument;
    words >> command >> argument;
    double result = 0;
    if (command == "save") {
      result = seconds([&] { checkpoint.write(argument); });
    } else if (command == "load") {
      result = seconds([&] { checkpoint.read(argument).assert_consumed(); });
    } else if (command == "copy") {
      result = seconds([&] { variables.copy(); });
    } else if (command == "stall") {
      result = seconds([&] { checkpoint.write(argument, {.enable_async = true}); });
    } else if (command == "wait") {
      result = seconds([&] { checkpoint.wait(); });
    } else if (command == "steps") {
      result = step.median(std::stoi(argument));
    } else {
      std::cerr << "unknown command: " << line << '\n';
      return 64;
    }
    std::cout << result << std::endl;
  }
  return 0;
}
