// A tour of a cluster: its tasks find each other, exchange values, call a function of each other,
// and lose one of them. Start it once for each task, by any launcher:
//
//   cohort launch --workers 3 -- build/release/bin/cluster_tour
//   srun -n 3 build/release/bin/cluster_tour --keep-all
//   mpirun -n 3 build/release/bin/cluster_tour --keep-all
//   torchrun --nproc_per_node 3 --no_python build/release/bin/cluster_tour --keep-all
#include <CLI/CLI.hpp>

#include "tour.h"

namespace tf = cohort;

int main(int argc, char** argv) {
  cluster_tour::Options options;
  CLI::App app("A tour of a cluster. Start it once for each task.");
  bool keep_all = false;
  app.add_flag("--keep-all", keep_all, "Loses no worker at the end");
  app.add_option(
         "--metrics-port", options.metrics_port,
         "A port of this host for GET /metrics; of several tasks of a host only one can have it")
      ->check(CLI::Range(0, 65535));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 64;
  }
  options.lose_a_worker = !keep_all;
  return tf::run_program([&] {
    const auto resolver = tf::distribute::cluster_resolver::default_cluster_resolver();
    cluster_tour::tour(*resolver, options);
  });
}
