#include "common/print.h"

#include <iostream>

namespace examples {

namespace tf = cohort;
using tf::Structure;
using tf::Tensor;
using tf::distribute::PerReplica;

namespace {

template <class Values>
std::string joined(const Values& values, char open, char close) {
  std::string text(1, open);
  for (const int64_t value : values) {
    if (text.size() > 1) text += ',';
    text += std::to_string(value);
  }
  text += close;
  return text;
}

template <class Value, class Describe>
std::string in_order(const PerReplica<Value>& values, const Describe& describe) {
  std::string text;
  for (const Value& value : values.values()) {
    if (!text.empty()) text += ' ';
    text += describe(value);
  }
  return text;
}

}  // namespace

std::string brackets(const Tensor& values) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < values.size(0); ++i) list.push_back(values[i].item<int64_t>());
  return joined(list, '[', ']');
}

std::string shape(const Tensor& tensor) { return joined(tensor.sizes(), '(', ')'); }

std::string step(const PerReplica<Tensor>& values) { return in_order(values, brackets); }
std::string step(const PerReplica<Structure>& values) { return in_order(values, brackets); }
std::string shapes(const PerReplica<Tensor>& values) { return in_order(values, shape); }

std::string steps(const tf::distribute::DistributedDataset& dataset) {
  Steps steps;
  for (const auto& batch : dataset) steps.add(step(batch));
  return steps.text();
}

std::string steps(const tf::data::Dataset& dataset) {
  Steps steps;
  for (const Structure& batch : dataset) steps.add(brackets(batch));
  return steps.text();
}

void line(const std::string& title, const std::string& result) {
  std::cout << title << ": " << result << '\n';
}

tf::distribute::MirroredStrategy replicas(int count) {
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back("CPU:" + std::to_string(i));
  return tf::distribute::MirroredStrategy(devices);
}

}  // namespace examples
