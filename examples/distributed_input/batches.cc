// Batches of other sizes, taken in turn. (experimental_distribute_dataset splits each batch by
// itself instead.)
#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

using cohort::data::Dataset;

void batch_anew() {
  line("rebatch range(8).batch(4) to [2,1,1]",
       steps(Dataset::range(8).batch(4).rebatch({2, 1, 1})));
  line("rebatch range(16).batch(4) to [6]", steps(Dataset::range(16).batch(4).rebatch(6)));
}

}  // namespace distributed_input
