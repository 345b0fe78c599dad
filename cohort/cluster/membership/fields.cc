#include "cohort/cluster/membership/fields.h"

#include <algorithm>
#include <bit>

#include "cohort/cluster/rpc/text.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal::membership {
uint64_t to_wire(Duration duration) {
  return static_cast<uint64_t>(std::max(bounded_wait(duration), Duration::zero()).count());
}

Duration duration_from(uint64_t value) { return Duration(std::min(value, to_wire(kLongestWait))); }

std::string text_of(std::string_view what, std::string_view bytes, size_t most) {
  if (bytes.size() > most) {
    throw InvalidArgumentError(
        str(what, " has ", bytes.size(), " bytes; at most ", most, " are allowed"));
  }
  if (!rpc::is_utf8(bytes)) throw InvalidArgumentError(str(what, " is not UTF-8"));
  return std::string(bytes);
}

std::string bytes_of(std::string_view what, std::string_view bytes, size_t most) {
  if (bytes.size() > most) {
    throw ResourceExhaustedError(
        str(what, " has ", bytes.size(), " bytes; at most ", most, " are allowed"));
  }
  return std::string(bytes);
}

std::string encode_task(const TaskId& task) {
  return Fields().bytes(1, task.job).number(2, task.index).str();
}

TaskId decode_task(std::string_view bytes) {
  TaskId task;
  WireReader in(bytes, "a task");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        task.job = text_of("a job's name", in.bytes(), kMostNameBytes);
        break;
      case 2:
        task.index = static_cast<int>(in.varint());
        break;
      default:
        break;
    }
  }
  if (task.index < 0) throw InvalidArgumentError(str("a task has the index ", task.index));
  return task;
}

std::string encode_figure(const std::string& name, double value) {
  return Fields().bytes(1, name).number(2, std::bit_cast<uint64_t>(value)).str();
}

void decode_figure(std::string_view bytes, Figures& figures) {
  limit("figures", figures, kMostFigures);
  std::string name;
  double value = 0;
  WireReader in(bytes, "a figure");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        name = text_of("a figure's name", in.bytes(), kMostNameBytes);
        break;
      case 2:
        value = std::bit_cast<double>(in.varint());
        break;
      default:
        break;
    }
  }
  figures[std::move(name)] = value;
}

}  // namespace cohort::internal::membership
