// The number of threads that one tensor operation may use. libtorch's OpenMP count belongs to a
// thread. OpenBLAS's count belongs to the process, and libtorch's does not reach it.
#pragma once

namespace cohort::internal {

// The calling thread's OpenMP count.
int intra_op_threads();
void set_intra_op_threads(int count);

// The process's OpenBLAS count; 0 where libtorch uses another BLAS.
int blas_threads();

// Sets the calling thread's OpenMP count to `count`, and the process's OpenBLAS count to one, for
// its lifetime: OpenBLAS's threads spin for milliseconds after each product, on the cores that
// OpenMP's threads need then (a training step of convolutions takes twice as long beside them).
// Where several live at once on different threads, OpenBLAS stays at one until the last has gone.
// Thread safety: any thread; one is destroyed on the thread that made it.
class ScopedIntraOpThreads {
 public:
  explicit ScopedIntraOpThreads(int count);
  ~ScopedIntraOpThreads();
  ScopedIntraOpThreads(const ScopedIntraOpThreads&) = delete;
  ScopedIntraOpThreads& operator=(const ScopedIntraOpThreads&) = delete;

 private:
  int previous_openmp_;
};

// For its lifetime an operation of the calling thread has one thread. OpenBLAS's threads stay.
class OneIntraOpThread {
 public:
  OneIntraOpThread() : previous_(intra_op_threads()) { set_intra_op_threads(1); }
  ~OneIntraOpThread() { set_intra_op_threads(previous_); }
  OneIntraOpThread(const OneIntraOpThread&) = delete;
  OneIntraOpThread& operator=(const OneIntraOpThread&) = delete;

 private:
  int previous_;
};

}  // namespace cohort::internal
