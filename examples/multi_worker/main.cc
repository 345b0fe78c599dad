// Guide 004's training in step on several workers, and guide 000's distributed input with two of
// them. Start it once for each worker, by any launcher:
//
//   cohort launch --workers 2 --restarts 3 -- build/release/bin/multi_worker --checkpoints DIR
//   srun -n 2 build/release/bin/multi_worker
//   mpirun -n 2 build/release/bin/multi_worker
//   torchrun --nproc_per_node 2 --no_python build/release/bin/multi_worker
//   build/release/bin/multi_worker --replicas 2        # alone, with two replicas
//   cohort launch --workers 3 -- build/release/bin/multi_worker --elastic 8    # on any workers
#include <cohort/cohort.h>

#include "input.h"
#include "options.h"
#include "training.h"

namespace tf = cohort;

int main(int argc, char** argv) {
  const multi_worker::Options options = multi_worker::parse_options(argc, argv);
  return tf::run_program([&] {
    tf::config::keep_freed_memory();
    tf::random::set_seed(options.seed);
    tf::config::set_logical_device_configuration("CPU", options.input ? 1 : options.replicas);
    if (options.input) tf::logging::set_level(tf::logging::Level::kError);
    tf::distribute::MultiWorkerMirroredStrategyOptions strategy_options;
    strategy_options.elastic.replicas = options.elastic;
    const tf::distribute::MultiWorkerMirroredStrategy strategy(strategy_options);
    if (options.input) {
      multi_worker::show_input(strategy);
    } else {
      multi_worker::train(strategy, options);
    }
  });
}
