#include "cohort/distribute/core/step_output.h"

#include <ostream>

namespace cohort::internal {

void write_line(std::ostream& out, const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  out.write(line.data(), static_cast<std::streamsize>(line.size())).flush();
}

void StepOutput::add(int local_replica, std::ostream& out, std::string line) {
  if (local_replica != 0) {
    const std::lock_guard lock(mutex_);
    if (in_step_) {
      lines_[static_cast<size_t>(local_replica)].emplace_back(&out, std::move(line));
      return;
    }
  }
  write_line(out, line);
}

void StepOutput::begin() {
  const std::lock_guard lock(mutex_);
  in_step_ = true;
  ++step_;
}

void StepOutput::flush() noexcept {
  const std::lock_guard lock(mutex_);
  write_kept();
}

void StepOutput::end() noexcept {
  const std::lock_guard lock(mutex_);
  write_kept();
  in_step_ = false;
}

void StepOutput::write_kept() noexcept {
  for (auto& lines : lines_) {
    for (const auto& [out, line] : lines) {
      try {
        write_line(*out, line);
      } catch (...) {  // a stream that throws; the step's result counts for more
      }
    }
    lines.clear();
  }
}

}  // namespace cohort::internal
