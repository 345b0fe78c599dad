// System calls on descriptors that are carried through: calls that EINTR broke off are repeated,
// short transfers are continued, and a write beyond RLIMIT_FSIZE is an error (EFBIG) rather than
// the SIGXFSZ that ends the process.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cohort::internal {

// Repeats a system call while a signal breaks it off.
template <class Call>
auto retry_eintr(Call&& call) {
  while (true) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

struct Transfer {
  size_t bytes = 0;      // done before the error, if there is one
  int error_number = 0;  // 0: none
};

// Writes at the descriptor's position.
Transfer write_all(int fd, std::string_view bytes);
// Reads from `offset` on. Fewer bytes without an error mean that the file has ended.
Transfer read_all(int fd, uint64_t offset, void* out, size_t length);
// These two give an errno, 0 for success.
int reserve_space(int fd, uint64_t bytes);  // a file system that cannot reserve: success
int set_size(int fd, uint64_t bytes);

}  // namespace cohort::internal
