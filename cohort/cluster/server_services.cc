#include "cohort/cluster/server_services.h"

#include "cohort/cluster/control_service.h"

namespace cohort::internal {

std::span<const MakeService> server_services() {
  static constexpr MakeService kServices[] = {
      make_control_service,
  };
  return kServices;
}

}  // namespace cohort::internal
