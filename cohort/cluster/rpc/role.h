// The roles of callers. Every method names the roles that may call it; a channel proves its
// caller's role.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort::internal::rpc {

enum class Role : uint8_t {
  kCoordinator = 1,  // job chief of a parameter-server cluster
  kWorker = 2,       // workers, and a chief that trains along
  kPs = 4,
  kEvaluator = 8,
  kOperator = 16,  // a person with a certificate for it: looks, changes nothing
};

// A set of roles.
class Roles {
 public:
  constexpr Roles(Role role) : bits_(static_cast<uint8_t>(role)) {}  // NOLINT: a set of one
  constexpr Roles operator|(Roles other) const { return Roles(bits_ | other.bits_); }
  constexpr bool contains(Role role) const { return (bits_ & static_cast<uint8_t>(role)) != 0; }

 private:
  constexpr explicit Roles(int bits) : bits_(static_cast<uint8_t>(bits)) {}
  uint8_t bits_;
};
constexpr Roles operator|(Role left, Role right) { return Roles(left) | Roles(right); }

inline constexpr Roles kEveryTask =
    Role::kCoordinator | Role::kWorker | Role::kPs | Role::kEvaluator;
inline constexpr Roles kEverybody = kEveryTask | Role::kOperator;

std::string_view role_name(Role role);

}  // namespace cohort::internal::rpc
