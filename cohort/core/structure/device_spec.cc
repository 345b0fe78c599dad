#include <algorithm>
#include <charconv>

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"

namespace cohort {
namespace {

using internal::decimal_digits;
using internal::is_digit;
using internal::is_letter;
using internal::quoted;
using internal::str;
using internal::upper;

bool is_identifier(std::string_view text) {
  const auto is_word = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_word);
}

// Reads one name, part by part.
class Parser {
 public:
  explicit Parser(std::string_view name) : name_(name) {}

  DeviceSpec parse() {
    std::string_view rest = name_;
    if (rest.starts_with('/')) rest.remove_prefix(1);
    if (rest.empty() && !name_.empty()) fail(name_, "nothing stands behind the '/'");
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('/'), rest.size());
      read_part(rest.substr(0, end));
      if (end + 1 == rest.size()) fail("/", "nothing stands behind the last '/'");
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return spec_;
  }

 private:
  [[noreturn]] void fail(std::string_view part, std::string_view why) const {
    throw InvalidArgumentError(
        str("cannot read the device name ", quoted(name_), ": part ", quoted(part), ": ", why,
            "; a name looks like '/job:worker/replica:0/task:1/device:GPU:0' or 'GPU:0'"));
  }

  void read_part(std::string_view part) {
    const size_t colon = part.find(':');
    const bool has_value = colon != std::string_view::npos;
    const std::string_view key = part.substr(0, colon);
    const std::string_view value = has_value ? part.substr(colon + 1) : std::string_view();
    if (key == "job") {
      if (!is_identifier(value)) fail(part, "a job name is letters, digits and '_'");
      set(part, spec_.job, std::string(value));
    } else if (key == "replica") {
      read_number(part, value, spec_.replica);
    } else if (key == "task") {
      read_number(part, value, spec_.task);
    } else if (key == "device") {
      read_device(part, value);
    } else if (upper(key) == "CPU" || upper(key) == "GPU") {
      read_device(part, part);
    } else if (upper(key) == "CUDA") {
      fail(part, str("libtorch's cuda devices are called GPU here: 'GPU", has_value ? ":" : "",
                     value, "'"));
    } else {
      fail(part, "it is none of job, replica, task, device, cpu, gpu");
    }
  }

  // "GPU:0", "GPU:*" or "GPU".
  void read_device(std::string_view part, std::string_view value) {
    const size_t colon = value.find(':');
    const std::string_view type = value.substr(0, colon);
    if (!is_identifier(type)) fail(part, "a device type is letters, digits and '_'");
    set(part, spec_.type, upper(type));
    if (colon != std::string_view::npos) read_number(part, value.substr(colon + 1), spec_.index);
  }

  // "*" leaves the part open.
  void read_number(std::string_view part, std::string_view value, std::optional<int>& field) {
    if (value == "*") return;
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0) {
      fail(part, str(quoted(value), " is not a whole number from 0 on"));
    }
    set(part, field, number);
  }

  template <class T>
  void set(std::string_view part, std::optional<T>& field, T value) {
    if (field) fail(part, "this part stands twice");
    field = std::move(value);
  }

  std::string_view name_;
  DeviceSpec spec_;
};

}  // namespace

DeviceSpec DeviceSpec::parse(std::string_view name) { return Parser(name).parse(); }

DeviceSpec DeviceSpec::merged_over(const DeviceSpec& defaults) const {
  DeviceSpec merged = *this;
  if (!merged.job) merged.job = defaults.job;
  if (!merged.replica) merged.replica = defaults.replica;
  if (!merged.task) merged.task = defaults.task;
  if (!merged.type) merged.type = defaults.type;
  if (!merged.index) merged.index = defaults.index;
  return merged;
}

std::string DeviceSpec::to_string() const {
  std::string name;
  if (job) name += "/job:" + *job;
  if (replica) name += "/replica:" + decimal_digits(*replica);
  if (task) name += "/task:" + decimal_digits(*task);
  if (type) name += "/device:" + *type + ":" + (index ? decimal_digits(*index) : "*");
  return name;
}

}  // namespace cohort
