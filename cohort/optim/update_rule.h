// An optimizer's formula, applied to flat slices of variables: no tensors, no strategy, no threads.
//
//   auto rule = optim::make_adam({.beta_1 = 0.8});
//   StepScalars scalars = rule->prepare(/*learning_rate=*/1e-3, /*iteration=*/0);   // once a step
//   void* slots[] = {m, v};                                          // in rule->slots()'s order
//   rule->update(scalars, {.param = weights, .slots = slots, .gradient = gradient, .size = n});
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::optim {

// The shape of a slot.
enum class SlotForm {
  kVariable,           // the variable's
  kWithoutLast,        // the variable's without its last dimension
  kWithoutSecondLast,  // the variable's without its last dimension but one
};
// A variable with less than two dimensions does not use the latter two, whose shape is [] then.
COHORT_API std::vector<int64_t> slot_shape(SlotForm form, at::IntArrayRef variable);
constexpr bool slot_is_used(SlotForm form, size_t dimensions) {
  return form == SlotForm::kVariable || dimensions >= 2;
}

// State that a rule keeps beside a variable: a tensor of the variable's dtype.
struct SlotSpec {
  std::string name;  // Keras 2.15's: "m", "v", "velocity", ...
  double initial_value = 0;
  bool starts_as_variable = false;  // from the variable's value instead
  SlotForm form = SlotForm::kVariable;  // another one only in rules that update whole variables
};

// A list of slots in a checkpoint of Keras 2.15, one for each variable.
struct SlotList {
  std::string name;  // "_momentums"
  std::string slot;  // a SlotSpec's name
  // Keras walks over the variables several times when it makes slots, and numbers the slots of a
  // later walk after those of earlier ones; within a walk, variable by variable.
  int walk = 0;
  // Keras has zeros where the rule keeps no such slot (else the list stays empty).
  bool zeros_if_not_kept = false;
};

// See transformed.h.
struct TransformOptions {
  double clipvalue = 0;  // cuts each element of the gradient to [-clipvalue, clipvalue]; 0: no
  std::optional<double> weight_decay = std::nullopt;  // not below 0
  std::optional<double> ema_momentum = std::nullopt;  // of the average, in [0, 1]; missing: none
  // Every so many updates the variable is set to its average; 0: never.
  int64_t ema_overwrite_frequency = 0;
};

// A rule as data, from which another process makes it again (make_rule): its name and its
// hyper-parameters, without the learning rate, which comes with each step.
struct RuleConfig {
  std::string name;
  std::vector<std::pair<std::string, double>> values;
  std::optional<TransformOptions> transform = std::nullopt;
};

// No rule has more slots than this.
inline constexpr int kMaxSlots = 4;

// A number that Keras keeps in a checkpoint and that follows from the iteration alone.
struct DerivedScalar {
  std::string name;  // "_u_product"
  double value = 0;
};

// What one step's learning rate and iteration come to, in the dtypes of the variables: Keras
// computes these numbers in the variable's own dtype, and float32 differs visibly there.
struct StepScalars {
  float step_size_float32 = 0;
  double step_size_float64 = 0;
  // What a rule needs beside it, in the rule's order.
  std::array<float, 3> more_float32{};
  std::array<double, 3> more_float64{};
  // Set by transformed rules only.
  double learning_rate = 0;
  bool last_of_period = false;
};

// How many numbers StepScalars has in each dtype, last_of_period left out, and number `i` of them:
// the step size, those beside it, the learning rate.
inline constexpr size_t kStepNumbers = 5;
COHORT_API double number_of_step(const StepScalars& scalars, DType dtype, size_t i);

// `size` elements from the same place of a variable, of each of its slots and of its gradient, all
// dense and of one dtype (float32 or float64). No two of the arrays may overlap.
struct Slice {
  void* param = nullptr;         // read and written
  void* const* slots = nullptr;  // in the order of UpdateRule::slots(); read and written
  const void* gradient = nullptr;
  int64_t size = 0;
  DType dtype = float32;
};

// Whole variables on one device that is not the host, with their slots and gradients: of one dtype
// (float32 or float64) and equal shapes. Nothing shares memory.
struct TensorSlice {
  std::vector<Tensor> params;              // read and written
  std::vector<std::vector<Tensor>> slots;  // [slot][variable], in the order of UpdateRule::slots()
  std::vector<Tensor> gradients;
  DType dtype = float32;
  // The numbers of StepScalars on the device, in place of those of the host, which a step that is
  // recorded would repeat: see number_of_step(). Shape: [kStepNumbers], of `dtype`. Undefined: the
  // host's. Only for rules that take them (takes_device_numbers).
  Tensor numbers = {};
};

// A whole variable of the host with its slots and its gradient, all dense and of one dtype (float32
// or float64). No two of the arrays may overlap.
struct WholeVariable {
  void* param = nullptr;         // read and written
  void* const* slots = nullptr;  // in the order of UpdateRule::slots(); read and written
  const void* gradient = nullptr;
  at::IntArrayRef shape = {};
  DType dtype = float32;
  double clipvalue = 0;  // cuts each element of the gradient to [-clipvalue, clipvalue]; 0: no
};

// Rows of a variable with a gradient for some of them.
struct SparseSlice {
  void* param = nullptr;         // [num_rows, row_size]
  void* const* slots = nullptr;  // each [num_rows, row_size]
  int64_t num_rows = 0;
  int64_t row_size = 0;
  const void* gradient = nullptr;    // [num_row_ids, row_size]
  const int64_t* row_ids = nullptr;  // [num_row_ids], in [0, num_rows), strictly ascending
  int64_t num_row_ids = 0;
  DType dtype = float32;
};

// Thread safety: immutable; threads may update different slices at once. An element's new value
// depends on that element's inputs alone, bit for bit: however a variable is cut into slices, the
// result is the same; unless the rule updates whole variables.
class COHORT_API UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // "SGD", "Adam", "RMSprop", ...
  virtual std::string name() const = 0;
  virtual RuleConfig config() const = 0;
  virtual std::vector<SlotSpec> slots() const = 0;
  // In the order of Keras's lists.
  virtual std::vector<SlotList> slot_lists() const = 0;
  // After `iterations` updates.
  virtual std::vector<DerivedScalar> derived_scalars(int64_t iterations) const;
  // slots().size(), without building the list.
  virtual int num_slots() const = 0;

  // `iteration`: how many updates were applied before this one.
  // Errors: InvalidArgument (learning rate not finite, iteration negative).
  virtual StepScalars prepare(double learning_rate, int64_t iteration) const = 0;

  // One step on one slice. Allocates nothing.
  // Errors: InvalidArgument (a dtype other than float32 and float64).
  virtual void update(const StepScalars& scalars, const Slice& slice) const = 0;
  // The same on a device. Rules of this library take a few kernels for all variables together and
  // wait for none of them; operations are not fused, so that the bits are the host's where the
  // device's kernels round correctly. By default the variables are copied to the host, updated
  // there, and copied back.
  virtual void update_tensors(const StepScalars& scalars, const TensorSlice& slice) const;
  // Whether update_tensors uses nothing of StepScalars where a slice has numbers on the device.
  virtual bool takes_device_numbers() const { return false; }

  // Whether an element's new value depends on the whole variable: the rule then takes it with one
  // call of update_whole in place of many of update, and sparse gradients as dense ones.
  virtual bool updates_whole_variables() const { return false; }
  // One step on one variable. Allocates nothing.
  // Errors: as update.
  virtual void update_whole(const StepScalars& scalars, const WholeVariable& whole) const;

  // Whether a zero gradient leaves an element and its slots as they are. If so, update_rows touches
  // only the given rows; else it touches all, as Keras does with tf.IndexedSlices (moments decay).
  virtual bool zero_gradient_is_no_op() const = 0;
};

// One step with a sparse gradient; bitwise equal to update() with zeros in the other rows.
// Allocates nothing.
// Errors: InvalidArgument (dtype; row ids that are not strictly ascending or outside the variable),
// before anything is written.
COHORT_API void update_rows(const UpdateRule& rule, const StepScalars& scalars,
                            const SparseSlice& slice);

}  // namespace cohort::optim
