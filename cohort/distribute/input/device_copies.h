// Batches on their way from the host to the replicas' devices.
//
// A pipeline reads ahead of the steps. Where its last node but that is of make_copied, what it has
// read lies on the devices: a step from host data then costs what one from device data does.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <mutex>
#include <vector>

#include "cohort/core/structure/device_stream.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/graph/node.h"

namespace cohort::distribute::internal_input {

// Thread safety: any thread.
class DeviceCopies {
 public:
  // devices: of this process's replicas.
  explicit DeviceCopies(std::vector<c10::Device> devices) : devices_(std::move(devices)) {}

  // Starts to copy what a batch has in the host's memory to the device of local replica `replica`:
  // through page-locked memory, on the device's stream for copies. Nobody waits for it.
  Structure start(const Structure& batch, size_t replica);
  // The batch as the replica's step may use it: what the calling thread does on the device from now
  // on comes after its copies. What start has not copied, or to another device, is copied now.
  Structure arrived(const Structure& batch, size_t replica);
  // A batch that start or nobody has copied, in the host's memory. It may still arrive. Waits for
  // the device.
  Structure on_host(const Structure& batch);

 private:
  // One copy under way. The memory that it writes identifies it: no other has that at the time.
  struct Copy {
    const void* memory = nullptr;  // nullptr: free
    c10::Event done;
  };
  void note(const Structure& batch, c10::Stream stream);
  void order_after_copy(const Structure& batch, bool forget);

  const std::vector<c10::Device> devices_;
  std::mutex mutex_;
  std::vector<Copy> copies_;  // guarded by mutex_; as many as were ever under way together
};

// The elements of `input`, which go to the local replicas from `first` on in turn, `replicas` of
// them: each is on the way to its replica's device when it is returned.
internal::DataNodePtr make_copied(const internal::DataNodePtr& input,
                                  const std::shared_ptr<DeviceCopies>& copies, size_t first,
                                  size_t replicas);

}  // namespace cohort::distribute::internal_input
