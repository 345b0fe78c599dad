// What the sides of the GPU benchmark train: a model, its data and its optimizer.
// bench/peers/torch_gpu.py holds the same ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "models.h"

namespace bench {

// One measurement, named "SIDE/MODEL/BATCH[/FLAG...]": "fit/cnn/64/host".
//
// Models: "cnn" (28x28), "resnet18" (32x32), "resnet50" (224x224), "transformer" (6 blocks of 512, 128
// tokens), "embedding" (10^7 rows of 64, 10 ids an example, sparse gradients).
// Flags: "host" (batches come from host memory; else they lie on the device), "bf16", "tf32".
struct GpuWork {
  std::string name;
  std::string side;
  std::string model;
  int64_t batch = 0;
  std::set<std::string> flags = {};
  // Models and batches of a size that a CPU trains in a moment: to try out that all of it runs.
  bool small = false;

  // Errors: std::invalid_argument (not such a name).
  static GpuWork parse(const std::string& name, bool small);
  bool has(const std::string& flag) const { return flags.contains(flag); }
};

// Adam for all but the residual networks, which SGD with momentum trains.
bool uses_adam(const GpuWork& work);
int64_t embedding_rows(const GpuWork& work);

// On the host. Errors: std::invalid_argument (no such model; "embedding" is Keras').
std::shared_ptr<Classifier> make_gpu_classifier(const GpuWork& work);

// Inputs and int64 labels of `batches` batches, one after another, on the host.
std::pair<at::Tensor, at::Tensor> make_gpu_data(const GpuWork& work, int64_t batches);

// The machine's first GPU, else the CPU.
c10::Device gpu_or_cpu();
void wait_for_gpu();

// Batches of device data, and of an epoch of host data.
constexpr int64_t kDeviceBatches = 8;
constexpr int64_t kHostBatches = 32;

}  // namespace bench
