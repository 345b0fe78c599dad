#include "cohort/keras/training/loop_form.h"

#include <ATen/ops/tensor.h>

#include <string>
#include <vector>

namespace cohort::internal {
namespace {

Structure numbers(const std::vector<double>& values) {
  return at::tensor(values, at::dtype(at::kDouble));
}

std::vector<double> doubles(const Tensor& values) {
  const auto* first = values.data_ptr<double>();
  return {first, first + values.numel()};
}

}  // namespace

// (names, values)
Structure form_of(const keras::Logs& logs) {
  std::vector<std::string> names;
  std::vector<double> values;
  for (const auto& [name, value] : logs) {
    names.push_back(name);
    values.push_back(value);
  }
  return tuple(StringTensor(names), numbers(values));
}

keras::Logs logs_of(const Structure& form) {
  keras::Logs logs;
  const std::vector<double> values = doubles(form[1].tensor());
  for (size_t i = 0; i < values.size(); ++i) {
    logs.set(form[0].strings()[static_cast<int64_t>(i)], values[i]);
  }
  return logs;
}

// (epochs, names, (values of each name))
Structure form_of(const keras::History& history) {
  std::vector<std::string> names;
  std::vector<Structure> values;
  for (const auto& [name, of_epochs] : history.history) {
    names.push_back(name);
    values.push_back(numbers(of_epochs));
  }
  return tuple(at::tensor(history.epoch, at::dtype(at::kLong)), StringTensor(names),
               Structure::make_tuple(std::move(values)));
}

keras::History history_of(const Structure& form) {
  keras::History history;
  const Tensor& epochs = form[0].tensor();
  const auto* first = epochs.data_ptr<int64_t>();
  history.epoch.assign(first, first + epochs.numel());
  for (size_t i = 0; i < form[2].size(); ++i) {
    history.history.emplace_back(form[1].strings()[static_cast<int64_t>(i)],
                                 doubles(form[2][i].tensor()));
  }
  return history;
}

}  // namespace cohort::internal
