#include "cohort/data/files/fixed_length_record_dataset.h"

#include "cohort/core/error.h"
#include "cohort/data/files/record_files.h"
#include "cohort/data/records/text_framing.h"

namespace cohort::internal {
namespace {

uint64_t checked(const char* what, int64_t bytes, int64_t least) {
  if (bytes >= least) return static_cast<uint64_t>(bytes);
  throw InvalidArgumentError(
      str("FixedLengthRecordDataset: ", what, " is ", bytes, "; it must be at least ", least));
}

class FixedLengthFormat final : public RecordFormat {
 public:
  explicit FixedLengthFormat(const FixedLength& layout) : layout_(layout) {}

  std::string name() const override { return "FixedLengthRecordDataset"; }
  DataNode::Attributes attributes() const override {
    DataNode::Attributes attributes = {{"record_bytes", str(layout_.record_bytes)}};
    if (layout_.header_bytes > 0)
      attributes.emplace_back("header_bytes", str(layout_.header_bytes));
    if (layout_.footer_bytes > 0)
      attributes.emplace_back("footer_bytes", str(layout_.footer_bytes));
    return attributes;
  }
  std::shared_ptr<const Framing> framing() const override {
    return make_fixed_length_framing(layout_);
  }

 private:
  const FixedLength layout_;
};

DataNodePtr make_fixed_length(DataNodePtr names, int64_t record_bytes,
                              const data::FixedLengthRecordOptions& options) {
  const FixedLength layout = {.record_bytes = checked("record_bytes", record_bytes, 1),
                              .header_bytes = checked("header_bytes", options.header_bytes, 0),
                              .footer_bytes = checked("footer_bytes", options.footer_bytes, 0)};
  return make_record_files(std::move(names), std::make_shared<FixedLengthFormat>(layout),
                           record_files_options(options.files));
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

FixedLengthRecordDataset::FixedLengthRecordDataset(const Paths& files, int64_t record_bytes,
                                                   const FixedLengthRecordOptions& options)
    : Dataset(internal::make_fixed_length(internal::file_names(files), record_bytes, options)) {}

FixedLengthRecordDataset::FixedLengthRecordDataset(std::initializer_list<std::string> files,
                                                   int64_t record_bytes,
                                                   const FixedLengthRecordOptions& options)
    : FixedLengthRecordDataset(Paths(files), record_bytes, options) {}

FixedLengthRecordDataset::FixedLengthRecordDataset(const Dataset& files, int64_t record_bytes,
                                                   const FixedLengthRecordOptions& options)
    : Dataset(internal::make_fixed_length(files.node(), record_bytes, options), files.options()) {}

}  // namespace cohort::data
