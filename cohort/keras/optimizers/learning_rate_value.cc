#include "cohort/keras/optimizers/learning_rate_value.h"

#include <ATen/ops/scalar_tensor.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/variables/colocation.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

LearningRateValue::LearningRateValue(double value, DType dtype)
    : dtype_(dtype), value_(rounded(value)) {}

void LearningRateValue::share(const std::string& name, const Variable& neighbour) {
  if (is_shared_) return;
  const ScopedColocation beside(neighbour.impl());
  variable_ = create_own_variable(tensor_of(value_),
                                  {.name = name,
                                   .trainable = false,
                                   .synchronization = VariableSynchronization::ON_READ,
                                   .aggregation = VariableAggregation::ONLY_FIRST_REPLICA});
  is_shared_ = true;
}

double LearningRateValue::get() const {
  if (!is_shared_ || !variable_.impl().core()->can_read_variables()) return value_;
  return variable_.value().item<double>();
}

void LearningRateValue::set(double value) {
  const double number = rounded(value);
  if (is_shared_) variable_.assign(tensor_of(number));
  value_ = number;
}

double LearningRateValue::rounded(double value) const {
  const double result = dtype_ == float32 ? static_cast<double>(static_cast<float>(value)) : value;
  if (!std::isfinite(result)) {
    throw InvalidArgumentError(
        str("the learning rate is ", value, "; it must be a finite ", dtype_name(dtype_)));
  }
  if (result < 0) {  // accepted, as by Keras: who maximizes may mean it
    log_warning("the learning rate is ", result, ": updates will go up the gradient, not down");
  }
  return result;
}

Tensor LearningRateValue::tensor_of(double value) const {
  return at::scalar_tensor(value, at::dtype(dtype_));
}

std::vector<train::CheckpointValue> LearningRateValue::checkpoint_values() {
  std::vector<train::CheckpointValue> values = {
      {.attribute = train::kVariableValue, .parts = {{tensor_of(value_)}}}};
  if (is_shared_) values = variable_.impl().checkpoint_values();
  for (train::CheckpointValue& value : values) value.full_name = "learning_rate";
  return values;
}

void LearningRateValue::prepare_restore(train::RestoreSource& source) {
  if (is_shared_) return variable_.impl().prepare_restore(source);
  source.read(train::kVariableValue, {}, dtype_,
              [this](const Tensor& value) { value_ = value.item<double>(); });
}

}  // namespace cohort::internal
