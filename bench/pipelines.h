// The input pipelines that bench/input.py compares; bench/peers/tf_data.py has the same in tf.data.
#pragma once

#include <cohort/cohort.h>

#include <functional>
#include <string>
#include <vector>

namespace bench {

class Pipelines {
 public:
  // Reads what bench/input_data.py wrote there.
  explicit Pipelines(std::string directory);

  // One pass: calls `use` for each batch, in a distributed pipeline for each replica's.
  //   scalar_map    range, a map of C++ numbers, batch
  //   vector_map    range, a map of blocks, batch
  //   shuffled      from_tensor_slices of images, shuffle, batch
  //   distributed   from_tensor_slices of images, batch, over 2 replicas
  //   lookups       from_tensor_slices of words, batch, StringLookup
  //   records       a TFRecord file of large records, batch
  //   small_records TFRecord files of small records, batch
  //   examples      the same files, shuffle, batch, parse tf.Examples
  //   tables        CSV files, shuffle, batch, by make_csv_dataset
  // `parallel`: maps and reads on several threads, and prefetch at the end.
  // Errors: InvalidArgument (another name), what reading throws.
  void read(const std::string& work, bool parallel,
            const std::function<void(const cohort::Structure& batch)>& use) const;

  // Reads the files of such a work and checksums their bytes, without a look at their records.
  uint32_t checksum_files(const std::string& work) const;

 private:
  std::vector<std::string> files(const std::string& work) const;
  cohort::data::Dataset records(const std::string& work, bool parallel) const;
  cohort::data::Dataset make(const std::string& work, bool parallel) const;

  std::string directory_;
  cohort::Tensor images_;
  cohort::Tensor labels_;
  cohort::StringTensor words_;
  cohort::distribute::MirroredStrategy strategy_;
  cohort::keras::layers::StringLookup lookup_;
};

}  // namespace bench
