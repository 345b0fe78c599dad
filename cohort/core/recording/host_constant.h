// A tensor of the host that steps use on their devices.
//
//   const HostConstant thresholds(at::tensor({0.25, 0.5}));   // a member of a metric
//   at::searchsorted(thresholds.on(values.device()), values);
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// It is copied to each device once, so that steps neither wait for it nor copy it.
// Thread safety: any thread. Copies of a HostConstant share what is on devices.
class HostConstant {
 public:
  // Nobody may write to `host` any more. Undefined: so it is everywhere.
  explicit HostConstant(Tensor host = {});

  const Tensor& on_host() const { return host_; }
  Tensor on(c10::Device device) const;

 private:
  struct Copies;

  Tensor host_;
  std::shared_ptr<Copies> copies_;
};

}  // namespace cohort::internal
