#include "cohort/keras/base/backend.h"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/policy.h"

namespace cohort {
namespace {

// The one place of Keras's process-wide settings.
struct KerasContext {
  std::atomic<DType> floatx{float32};
  std::mutex mutex;  // guards what follows
  std::optional<keras::mixed_precision::Policy> policy;
  std::map<std::string, int, std::less<>> name_counts;
};

KerasContext& context() {
  static KerasContext context;
  return context;
}

}  // namespace

namespace internal {

DType keras_floatx() { return context().floatx; }

std::string to_snake_case(std::string_view name) {
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool starts_word =
        i + 1 < name.size() && (is_lower(name[i + 1]) || is_digit(name[i + 1]));
    if (i > 0 && is_upper(name[i]) && (starts_word || is_lower(name[i - 1]))) snake += '_';
    snake += to_lower(name[i]);
  }
  return snake;
}

}  // namespace internal

namespace keras::backend {

std::string floatx() { return internal::dtype_name(internal::keras_floatx()); }

void set_floatx(std::string_view name) {
  if (name == "float32") {
    context().floatx = float32;
  } else if (name == "float64") {
    context().floatx = float64;
  } else {
    throw InvalidArgumentError(
        internal::str("floatx is ", internal::quoted(name), "; it must be 'float32' or 'float64'"));
  }
}

void clear_session() {
  std::lock_guard lock(context().mutex);
  context().name_counts.clear();
}

std::string unique_object_name(std::string_view class_name) {
  std::string name = internal::to_snake_case(class_name);
  std::lock_guard lock(context().mutex);
  const int count = context().name_counts[name]++;
  return count == 0 ? name : internal::str(name, "_", count);
}

}  // namespace keras::backend

namespace keras::mixed_precision {

Policy global_policy() {
  std::lock_guard lock(context().mutex);
  return context().policy.value_or(Policy(internal::keras_floatx()));
}

void set_global_policy(const std::optional<Policy>& policy) {
  if (policy && !at::isFloatingType(policy->compute_dtype())) {
    throw InvalidArgumentError(internal::str(
        "the global policy cannot be ", internal::quoted(policy->name()),
        ": most layers compute with floating numbers alone; give one layer this .dtype"));
  }
  std::lock_guard lock(context().mutex);
  context().policy = policy;
}

}  // namespace keras::mixed_precision
}  // namespace cohort
