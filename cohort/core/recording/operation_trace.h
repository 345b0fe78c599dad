// What a step asks of a device, operation by operation: how a step is found fit to be recorded.
//
//   OperationTrace trace(device);
//   step();
//   trace.stop();
//   trace.obstacle();                             // "it reads a number ...", or empty
//   OperationTrace::difference(earlier, trace);   // "mul.Scalar has other numbers ...", or empty
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Watches the operations of the calling thread, and of the backward passes that it begins. One may
// watch at a time in a process: `is_watching()` says whether it does.
// Thread safety: one thread makes, stops and reads it.
class OperationTrace {
 public:
  explicit OperationTrace(c10::Device device);
  ~OperationTrace();
  OperationTrace(const OperationTrace&) = delete;
  OperationTrace& operator=(const OperationTrace&) = delete;

  bool is_watching() const { return is_watching_; }
  void stop();

  // The first thing by which host and device waited for each other, or which a graph would repeat
  // with old values. Empty: none.
  const std::string& obstacle() const { return obstacle_; }
  // A value of the host that a graph would repeat.
  void add_constant(const Tensor& host);
  // Tensors that the step is given anew each time, in the same order, before they are used.
  void add_argument(const Tensor& tensor);
  // A tensor that stands for one that an operation makes.
  void add_made(const Tensor& tensor);

  // While it lives, copies between the host and the device are the caller's business.
  class Pause {
   public:
    explicit Pause(OperationTrace& trace) : trace_(trace) { trace_.set_paused(true); }
    ~Pause() { trace_.set_paused(false); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    OperationTrace& trace_;
  };

  // The memory of the device that the operations used and had not made, and that lives on: of
  // variables. After the step.
  std::vector<c10::Storage> lasting_memory() const;

  // What two steps did otherwise: a value of the host, or memory of the device, that one of them
  // had. Empty: nothing.
  static std::string difference(const OperationTrace& a, const OperationTrace& b);

 private:
  struct Operation {
    uint64_t fingerprint;
    std::string name;
  };

  // What a tensor is to the step: an argument, what one of its operations made, or something that
  // was there before, by its memory.
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    uint64_t identity;
  };
  static constexpr uint64_t kMade = 1;

  static std::unique_ptr<at::ObserverContext> on_operation(const at::RecordFunction& call);
  static void on_results(const at::RecordFunction& call, at::ObserverContext* context);
  void add(const at::RecordFunction& call);
  bool has_memory(const Tensor& tensor) const;
  // The tensor has memory of the device, which gets `otherwise` if it is seen for the first time.
  uint64_t identity_of(const Tensor& tensor, uint64_t otherwise);
  void set_paused(bool paused);
  void add_results(const c10::IValue& value);
  std::string obstacle_of(const std::string& name, c10::ArrayRef<const c10::IValue> inputs) const;

  const c10::Device device_;
  bool is_watching_ = false;
  at::CallbackHandle callback_ = at::INVALID_CALLBACK_HANDLE;
  std::mutex mutex_;  // guards what follows while it watches
  bool paused_ = false;
  std::vector<Operation> operations_;
  std::unordered_map<const c10::StorageImpl*, Memory> memory_;
  uint64_t num_arguments_ = 0;
  std::string obstacle_;
};

}  // namespace cohort::internal
