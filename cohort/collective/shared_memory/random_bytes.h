// Random bytes that nobody can guess.
#pragma once

#include <cstddef>
#include <string>

namespace cohort::collective::shared_memory {

// So many bytes, as twice as many hex digits. Errors: ResourceExhausted.
std::string random_hex(size_t bytes);

}  // namespace cohort::collective::shared_memory
