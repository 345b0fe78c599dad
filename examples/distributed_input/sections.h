// Guide 003, section by section. Each prints what the guide says comes out.
#pragma once

namespace distributed_input {

void distribute_a_dataset();       // experimental_distribute_dataset: batches
void shard_between_workers();      // experimental_distribute_dataset: AutoShardPolicy
void run_steps_over_it();          // how a step gets its batches
void iterate();                    // distributed iterators
void batch_anew();                 // Dataset::rebatch
void keep_the_order_of_outputs();  // predictions
void distribute_values();          // inputs that are no dataset
void distribute_from_functions();  // distribute_datasets_from_function
void preprocess();                 // layers inside the dataset

}  // namespace distributed_input
