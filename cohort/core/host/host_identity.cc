#include "cohort/core/host/host_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "cohort/core/error.h"
#include "cohort/core/host/random_hex.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {
namespace {

// The kernel, as long as it runs.
std::string boot_id() {
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t size = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  std::string id(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

// "net:[4026531840]": abstract unix sockets are seen within one only.
std::string network_namespace() {
  std::array<char, 64> text{};
  const ssize_t size = ::readlink("/proc/self/ns/net", text.data(), text.size());
  return {text.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

}  // namespace

std::string host_identity() {
  const std::string boot = boot_id();
  const std::string network = network_namespace();
  if (boot.empty() || network.empty()) return "unknown " + random_hex(16);
  return str(boot, ' ', network, " user ", ::geteuid());
}

}  // namespace cohort::internal
