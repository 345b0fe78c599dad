// Objects for the tests of checkpoints: numbers, and nodes that get children late.
#pragma once

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::train {

// A float32 tensor of one dimension.
class Numbers final : public Trackable {
 public:
  explicit Numbers(std::vector<float> initial) : values(std::move(initial)) {}

  bool has_checkpoint_values() const override { return true; }
  std::vector<CheckpointValue> checkpoint_values() override {
    return {{.attribute = kVariableValue, .full_name = "numbers", .parts = {{Leaf(tensor())}}}};
  }
  void prepare_restore(RestoreSource& source) override {
    source.read(kVariableValue, {static_cast<int64_t>(values.size())}, float32,
                [this](const Tensor& value) {
                  const auto* data = value.data_ptr<float>();
                  values.assign(data, data + value.numel());
                });
  }

  std::vector<float> values;

 private:
  Tensor tensor() const { return at::tensor(values); }
};

// Children by name, which may be added at any time.
class Node final : public Trackable {
 public:
  void add(const std::string& name, std::shared_ptr<Trackable> child) {
    children.emplace_back(name, std::move(child));
    child_appeared(name, *children.back().second);
  }
  std::vector<TrackableChild> checkpoint_children() override {
    std::vector<TrackableChild> result;
    for (const auto& [name, child] : children) result.push_back({name, child.get()});
    return result;
  }

  bool awaits_children() const override { return awaits; }

  std::vector<std::pair<std::string, std::shared_ptr<Trackable>>> children;
  bool awaits = false;
};

inline std::shared_ptr<Numbers> numbers(std::vector<float> values) {
  return std::make_shared<Numbers>(std::move(values));
}

}  // namespace cohort::train
