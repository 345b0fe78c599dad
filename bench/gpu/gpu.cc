// How long a step takes on the machine's first GPU, by Cohort and by loops of libtorch's own.
//
//   bench_gpu [--small] SECONDS WORK...      for example: bench_gpu 1 run/cnn/64 graph/cnn/64
//
// WORK is described in work.h. Each gives a line "RESULT WORK MILLISECONDS LOSS", or "FAIL WORK: why".
// Without a GPU all of it runs on the CPU; --small then makes it quick. scripts/gpu runs it.
#include <ATen/Context.h>
#include <cohort/cohort.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "sides.h"
#include "timing.h"

namespace {

// Seconds of a step, and its loss. Steps are timed in three equal parts, of which the shortest counts:
// what disturbs a GPU's host is never fast.
void measure(const bench::GpuWork& work, double seconds) {
  at::globalContext().setAllowTF32CuBLAS(work.has("tf32"));
  auto training = bench::train_with_cohort(work);
  if (!training) training = bench::train_with_libtorch(work);
  if (!training) throw std::invalid_argument("no side is called '" + work.side + "'");
  const auto timed = [&](int64_t count) {
    const auto start = std::chrono::steady_clock::now();
    training->run(count);
    return bench::seconds_since(start);
  };
  const int64_t warm = work.small ? 1 : 15;
  timed(warm);
  const int64_t multiple = work.small ? 1 : bench::kHostBatches;  // an epoch of fit
  double best = timed(multiple) / static_cast<double>(multiple);
  const auto count = static_cast<int64_t>(seconds / 3 / best) / multiple * multiple;
  if (count > multiple) {
    best = timed(count) / static_cast<double>(count);
    for (int i = 0; i < 2; ++i) {
      best = std::min(best, timed(count) / static_cast<double>(count));
    }
  }
  std::printf("RESULT %s %.4f %.4f\n", work.name.c_str(), best * 1e3, training->loss());
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc > 1 && std::strcmp(argv[1], "--small") == 0;
  const int first = small ? 2 : 1;
  if (argc < first + 2) {
    std::fprintf(stderr, "usage: bench_gpu [--small] SECONDS SIDE/MODEL/BATCH[/FLAG...]...\n");
    return 64;
  }
  cohort::logging::set_level(cohort::logging::Level::kWarning);
  int failed = 0;
  for (int i = first + 1; i < argc; ++i) {
    try {
      cohort::keras::utils::set_random_seed(1);
      measure(bench::GpuWork::parse(argv[i], small), std::atof(argv[first]));
    } catch (const std::exception& error) {
      std::printf("FAIL %s: %s\n", argv[i], error.what());
      failed = 1;
    }
    std::fflush(stdout);
  }
  return failed;
}
