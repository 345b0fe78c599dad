#include "cohort/data/files/text_line_dataset.h"

#include "cohort/data/files/record_files.h"
#include "cohort/data/records/text_framing.h"

namespace cohort::internal {
namespace {

class LineFormat final : public RecordFormat {
 public:
  std::string name() const override { return "TextLineDataset"; }
  std::shared_ptr<const Framing> framing() const override { return make_line_framing(); }
};

DataNodePtr make_lines(DataNodePtr names, const data::RecordDatasetOptions& options) {
  return make_record_files(std::move(names), std::make_shared<LineFormat>(),
                           record_files_options(options));
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

TextLineDataset::TextLineDataset(const Paths& files, const RecordDatasetOptions& options)
    : Dataset(internal::make_lines(internal::file_names(files), options)) {}

TextLineDataset::TextLineDataset(std::initializer_list<std::string> files,
                                 const RecordDatasetOptions& options)
    : TextLineDataset(Paths(files), options) {}

TextLineDataset::TextLineDataset(const Dataset& files, const RecordDatasetOptions& options)
    : Dataset(internal::make_lines(files.node(), options), files.options()) {}

}  // namespace cohort::data
