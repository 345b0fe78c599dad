// A run of operations, compiled for one shape of input: which primitives, which layouts, which
// memory, in which chunks; so that a step does nothing but compute.
//
//   auto plan = Plan::compile({.operations = {...}, .input = {8, 28, 28, 1}});
//   Tensor y = run(plan.plan, x, parameters);    // recorded.h: as one operation, with its gradient
//
// The bits of a result depend on shapes, values and the processor, never on the number of threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cohort/ops/plan/buffer.h"
#include "cohort/ops/plan/chunks.h"
#include "cohort/ops/plan/operation.h"
#include "cohort/ops/plan/pool.h"
#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {

// Whether there are plans with such an operation; the reason if not.
std::string why_not(const Operation& operation);

// What a plan is compiled for. Values are float32, without gaps, on the host.
struct Request {
  std::vector<Operation> operations;
  Shape input;
  bool records = false;  // whether a backward pass may follow
  bool wants_input = false;
  std::vector<bool> wants_parameters = {};  // whose gradients; those of all operations, in order
};

class Plan;
struct Compiled {
  std::shared_ptr<const Plan> plan;  // nullptr where there is none
  std::string why_not;
};

// Thread safety: any thread; each pass is one thread's.
class Plan {
 public:
  // A forward pass: what its gradient needs.
  struct ForwardPass {
    std::vector<std::unique_ptr<Forward>> units;
    std::vector<Buffer<float>> values;  // what each unit gives, but for the last's
  };
  // A backward pass over it. There may be several.
  struct BackwardPass {
    std::vector<std::unique_ptr<Backward>> units;
    Buffer<float> gradients[2];  // by turns those of the values between units
    Tensor token;                // a zero of its own, by which the pass is known
  };

  static Compiled compile(const Request& request);

  const Request& request() const { return request_; }
  const Shape& output() const { return output_; }
  // What each Normalization by batch is given, in order.
  const std::vector<Shape>& normalized() const { return normalized_; }
  size_t num_units() const { return units_.size(); }
  // The place among all parameters of unit u's first, and how many it has.
  size_t first_parameter(size_t u) const { return first_parameter_[u]; }
  size_t num_parameters(size_t u) const { return units_[u]->num_parameters(); }
  // How many of them its backward pass reads.
  size_t num_kernels(size_t u) const { return units_[u]->num_kernels(); }
  const Shape& parameter_shape(size_t i) const { return parameter_shapes_[i]; }
  // Whether somebody wants a gradient that comes from unit u, or from before it.
  bool wants_gradient(size_t u) const { return wants_gradient_[u]; }
  std::vector<std::string> describe() const;

  std::unique_ptr<ForwardPass> take_forward() const;
  void give_back(std::unique_ptr<ForwardPass> pass) const;
  std::unique_ptr<BackwardPass> take_backward() const;
  void give_back(std::unique_ptr<BackwardPass> pass) const;
  // Whether passes that have been given back are kept for the next ones, as they are at first.
  // keep_no_passes returns those that are free, for the caller to destroy.
  struct Passes {
    Pool<ForwardPass>::Objects forward;
    Pool<BackwardPass>::Objects backward;

    bool empty() const { return forward.empty() && backward.empty(); }
  };
  void keep_passes() const;
  [[nodiscard]] Passes keep_no_passes() const;
  // What a forward and a backward pass hold of values; units' own memory comes on top.
  int64_t bytes_of_passes() const;

  // For each of normalized(): the mean and the biased variance of each channel, by this pass.
  std::vector<const float*> statistics(const ForwardPass& pass) const;

  // Whole batches.
  void forward(ForwardPass& pass, const float* input, const float* const* parameters,
               float* output) const;
  // One unit's share, from the last unit to the first. output_gradient: for the last; gradients:
  // where those of the unit's own parameters go, nullptr for unwanted ones; input_gradient: for
  // the first, nullptr if unwanted. goes_on: whether the unit before is wanted, too.
  void backward(const ForwardPass& forward, BackwardPass& pass, size_t unit, const float* input,
                const float* const* unit_parameters, const float* output_gradient,
                float* const* gradients, float* input_gradient, bool goes_on) const;

 private:
  explicit Plan(const Request& request);  // NotPlanned

  // Units from first to before end, chunk by chunk.
  void run_units(ForwardPass& pass, size_t first, size_t end, const float* input,
                 float* output) const;
  int64_t per_thread(int64_t work) const;
  bool keeps_all() const;
  int64_t kept_examples() const;

  Request request_;
  Shape output_;
  std::vector<Shape> normalized_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<std::string> forward_names_;  // of units, in traces
  std::vector<std::string> backward_names_;
  std::vector<size_t> first_parameter_;
  std::vector<Shape> parameter_shapes_;
  std::vector<bool> wants_gradient_;
  Chunks chunks_{0, 1};
  mutable Pool<ForwardPass> forward_passes_;
  mutable Pool<BackwardPass> backward_passes_;
};

// The operations as units, each with what is fused into it; `output`: the shape of the result.
// Errors: NotPlanned.
std::vector<std::unique_ptr<Unit>> make_units(const Request& request, Shape& output);

}  // namespace cohort::internal::plan
