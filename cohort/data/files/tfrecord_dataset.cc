#include "cohort/data/files/tfrecord_dataset.h"

#include "cohort/data/files/record_files.h"
#include "cohort/data/records/tfrecord_framing.h"

namespace cohort::internal {
namespace {

class TFRecordFormat final : public RecordFormat {
 public:
  std::string name() const override { return "TFRecordDataset"; }
  std::shared_ptr<const Framing> framing() const override { return make_tfrecord_framing(); }
};

}  // namespace

RecordFilesOptions record_files_options(const data::RecordDatasetOptions& options) {
  return {.compression = compression_of(options.compression_type),
          .buffer_size = options.buffer_size,
          .num_parallel_reads = options.num_parallel_reads.value_or(1),
          .ignore_errors = options.ignore_errors,
          .deadline = file_deadline(options.read_timeout, "a dataset of files")};
}

}  // namespace cohort::internal

namespace cohort::data {

TFRecordDataset::TFRecordDataset(internal::DataNodePtr names, Options dataset_options,
                                 const RecordDatasetOptions& options, Skipped skipped)
    : Dataset(internal::make_record_files(std::move(names),
                                          std::make_shared<internal::TFRecordFormat>(),
                                          internal::record_files_options(options), skipped),
              std::move(dataset_options)),
      skipped_(std::move(skipped)) {}

TFRecordDataset::TFRecordDataset(const Paths& files, const RecordDatasetOptions& options)
    : TFRecordDataset(internal::file_names(files), {}, options,
                      std::make_shared<std::atomic<int64_t>>(0)) {}

TFRecordDataset::TFRecordDataset(std::initializer_list<std::string> files,
                                 const RecordDatasetOptions& options)
    : TFRecordDataset(Paths(files), options) {}

TFRecordDataset::TFRecordDataset(const Dataset& files, const RecordDatasetOptions& options)
    : TFRecordDataset(files.node(), files.options(), options,
                      std::make_shared<std::atomic<int64_t>>(0)) {}

}  // namespace cohort::data
