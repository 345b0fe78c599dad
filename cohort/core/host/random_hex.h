// Random bytes that nobody can guess.
#pragma once

#include <cstddef>
#include <string>

namespace cohort::internal {

// So many bytes, as twice as many hex digits. Errors: ResourceExhausted (the system gives none).
std::string random_hex(size_t bytes);

}  // namespace cohort::internal
