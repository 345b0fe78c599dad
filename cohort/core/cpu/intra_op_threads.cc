#include "cohort/core/cpu/intra_op_threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <mutex>

namespace cohort::internal {
namespace {

// Finds a function by its name in the loaded libraries: it is not known at build time which BLAS
// and which OpenMP libtorch uses, and a weak symbol of an executable is bound to nothing at link
// time.
template <class Function>
Function* find_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void set_openmp_threads(int count) {
  static auto* const set = find_function<void(int)>("omp_set_num_threads");
  if (set != nullptr) set(count);
}
void set_blas_threads(int count) {
  static auto* const set = find_function<void(int)>("openblas_set_num_threads");
  if (set != nullptr && count > 0) set(count);
}

}  // namespace

int blas_threads() {
  static auto* const get = find_function<int()>("openblas_get_num_threads");
  return get != nullptr ? get() : 0;
}

namespace {

// The OpenBLAS threads of the process. They are suspended while anybody wants OpenBLAS to use the
// calling thread alone.
class BlasThreads {
 public:
  void suspend() {
    std::lock_guard lock(mutex_);
    if (holders_++ > 0) return;
    original_ = blas_threads();
    if (original_ > 1) set_blas_threads(1);
  }
  void resume() {
    std::lock_guard lock(mutex_);
    if (--holders_ == 0 && blas_threads() != original_) set_blas_threads(original_);
  }

 private:
  std::mutex mutex_;
  int holders_ = 0;
  int original_ = 0;
};
BlasThreads& process_blas_threads() {
  static BlasThreads threads;
  return threads;
}

}  // namespace

int intra_op_threads() { return at::get_num_threads(); }

void set_intra_op_threads(int count) {
  // libtorch sets a thread's count when it first uses it; that must not come after ours.
  at::get_num_threads();
  set_openmp_threads(count);
}

ScopedIntraOpThreads::ScopedIntraOpThreads(int count) : previous_openmp_(intra_op_threads()) {
  if (previous_openmp_ != count) set_intra_op_threads(count);
  process_blas_threads().suspend();
}

ScopedIntraOpThreads::~ScopedIntraOpThreads() {
  set_openmp_threads(previous_openmp_);
  process_blas_threads().resume();
}

}  // namespace cohort::internal
