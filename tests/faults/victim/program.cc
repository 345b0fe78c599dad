#include "program.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>

#include "cohort/core/error.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_manager.h"
#include "cohort/train/objects/testing_objects.h"

namespace cohort::faults {
namespace {

constexpr size_t kBigNumbers = 9'000'000;  // 36 MB: files of 32 MiB and more take the big path

constexpr rlim_t kMostAddressSpace = rlim_t{16} << 30;

struct Program {
  explicit Program(bool big = false)
      : a(train::numbers({0})),
        b(train::numbers(std::vector<float>(big ? kBigNumbers : 3))),
        checkpoint({{"a", a}, {"b", b}}) {}

  void set(float value) {
    a->values.assign(a->values.size(), value);
    b->values.assign(b->values.size(), value);
  }
  float value() const {
    const float value = a->values[0];
    for (const float other : b->values) {
      if (other != value) throw InternalError(internal::str("a mix of ", value, " and ", other));
    }
    return value;
  }

  std::shared_ptr<train::Numbers> a;
  std::shared_ptr<train::Numbers> b;
  train::Checkpoint checkpoint;
};

std::string save_once(Program& program, const SaveOptions& options,
                      const std::optional<std::string>& restored) {
  using How = SaveOptions::How;
  const train::CheckpointOptions how{.enable_async = options.async};
  if (options.how == How::kOverwrite) return program.checkpoint.write(restored.value(), how);
  if (options.how == How::kSave) return program.checkpoint.save(options.directory + "/ckpt", how);
  const train::CheckpointManager manager(program.checkpoint, options.directory, {.max_to_keep = 1});
  return manager.save({.checkpoint = how}).value();
}

// While it lives, if there is a limit; what the program reports afterwards goes to a file too.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(const std::optional<rlim_t>& bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    if (bytes) set({*bytes, before_.rlim_max});
  }
  ~FileSizeLimit() { set(before_); }

 private:
  static void set(const rlimit& limit) { ::setrlimit(RLIMIT_FSIZE, &limit); }

  rlimit before_ = {};
};

// A line of /proc/self/status in KiB.
int64_t memory_kib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1));
  }
  throw InternalError("/proc/self/status has no " + name);
}

void save_with(Program& program, const SaveOptions& options) {
  const auto latest = train::latest_checkpoint(options.directory);
  program.checkpoint.restore(latest);
  if (options.again) {
    program.set(program.value());
    save_once(program, options, latest);
    program.checkpoint.wait();
  }
  program.set(options.value);
  options.ready();
  std::string path;
  {
    const FileSizeLimit limit(options.most_file_bytes);
    path = save_once(program, options, latest);
    program.checkpoint.wait();
  }
  std::cout << "saved " << path << std::endl;
}

}  // namespace

void save(const SaveOptions& options) {
  Program program(options.big);
  save_with(program, options);
}

void hold(const SaveOptions& options) {
  Program program(options.big);
  save_with(program, options);
  options.ready();
  std::string line;
  while (std::getline(std::cin, line)) {
  }
}

void check(const std::string& directory, bool big) {
  const auto path = train::latest_checkpoint(directory);
  if (!path) {
    std::cout << "none" << std::endl;
    return;
  }
  Program program(big);
  program.checkpoint.restore(path).assert_consumed();
  std::cout << "value " << program.value() << std::endl;
}

void measure_restore(const std::string& prefix) {
  Program program;
  program.set(7);
  // On machines that promise any memory, a process that touches it all takes the others down.
  const rlimit most{kMostAddressSpace, kMostAddressSpace};
  ::setrlimit(RLIMIT_AS, &most);
  const int64_t before = memory_kib("VmRSS");
  const auto start = std::chrono::steady_clock::now();
  std::string outcome = "restored";
  try {
    program.checkpoint.restore(prefix).expect_partial();
  } catch (const Error& error) {
    outcome = internal::str(code_name(error.code()), ": ", error.what());
    if (program.value() != 7) throw InternalError("a failed restore changed an object");
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::cout << "ms " << took.count() << " kib " << memory_kib("VmHWM") - before << ' ' << outcome
            << std::endl;
}

}  // namespace cohort::faults
