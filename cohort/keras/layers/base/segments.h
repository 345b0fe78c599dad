// Layers that run one after the other, in segments: those whose layers describe their operations
// are compiled into plans, one for each shape of input; the others run layer by layer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/layers/base/layer.h"
#include "cohort/ops/plan/plan_cache.h"

namespace cohort::internal {

// A run of layers that one plan computes, where the input is one that plans take; else they run
// one by one. Results and gradients are those of the layers, but for rounding. The layers live as
// long as it does.
// Thread safety: any thread.
class Segment {
 public:
  using Layer = keras::layers::Layer;

  explicit Segment(std::span<Layer* const> layers);

  // How many of the layers, from the first on, can be one; 0 where none is worth it. They may be
  // unbuilt.
  static size_t length(std::span<Layer* const> layers);

  // Errors: as of the layers.
  Structure operator()(const Structure& inputs, const keras::CallOptions& options);

  // For people: what is fused, for which inputs there are plans, how often they ran.
  std::string explain() const;

 private:
  // What is computed in training or outside of it, and which layers are trainable, where that
  // matters.
  struct Mode {
    Mode(std::span<Layer* const> layers, bool training);

    // nullptr where a layer has not made all of its own yet.
    const std::vector<Variable>* variables(std::span<Layer* const> layers) const;

    const bool training;
    plan::PlanCache plans;
    // Makes each parameter for a pass; empty where the parameter is a variable's value.
    std::vector<std::function<Tensor(at::IntArrayRef shape)>> draws;
    // Takes the mean and variance of each normalization by batch.
    std::vector<std::function<void(at::IntArrayRef input, const Tensor& statistics)>> receivers;
    mutable Lazy<std::vector<Variable>> found;
  };

  Mode& mode_of(bool training);
  Tensor planned(const Tensor& input, const keras::CallOptions& options);
  bool visit_layers(at::IntArrayRef input, const Mode& mode, const keras::CallOptions& options);

  const std::vector<Layer*> layers_;
  const keras::activations::Activation activation_;  // after the plan
  std::vector<const Layer*> dependent_;              // on the mode
  mutable std::mutex mutex_;
  std::map<uint64_t, Mode> modes_;  // by what they depend on
};

// Consecutive layers: segments, and what is between them.
// Thread safety: any thread.
class Segments {
 public:
  using Layer = keras::layers::Layer;

  explicit Segments(std::span<Layer* const> layers);

  Structure operator()(const Structure& inputs, const keras::CallOptions& options) const;
  std::string explain() const;

 private:
  struct Run {
    std::vector<Layer*> layers;
    std::unique_ptr<Segment> segment;  // nullptr: they run one by one
  };
  std::vector<Run> runs_;
};

// Layer by layer, but for chains that fusion.h knows.
Structure run_layers(std::span<keras::layers::Layer* const> layers, const Structure& inputs,
                     const keras::CallOptions& options);
// Why a layer takes no part in plans; empty where it does. And a line that says so.
std::string why_unplanned(const keras::layers::Layer& layer);
std::string explain_unplanned(const keras::layers::Layer& layer);

}  // namespace cohort::internal
