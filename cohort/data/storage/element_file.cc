#include "cohort/data/storage/element_file.h"

#include "cohort/core/files/file_deadline.h"
#include "cohort/core/text.h"
#include "cohort/data/storage/element_codec.h"

namespace cohort::internal {

void ElementFileWriter::append(const Structure& element) { blobs_.append(encode_element(element)); }

void ElementFileWriter::finish(const ElementFileInfo& info) {
  blobs_.finish(encode_element(dict({{"graph", StringTensor::scalar(info.graph)},
                                     {"start", StringTensor::scalar(info.start)},
                                     {"spec", spec_to_structure(info.spec)}})));
}

ElementFile::ElementFile(FileSystem& files, const std::string& path)
    : blobs_(open_within(files, path, kDefaultFileDeadline), path) {
  const std::string what = str("file ", quoted(path), ": the info behind its index");
  const Structure info = decode_element(blobs_.info(), what);
  try {
    info_ = {std::string(info["graph"].strings().item()),
             std::string(info["start"].strings().item()), structure_to_spec(info["spec"])};
  } catch (const Error& error) {
    throw DataLossError(str(what, ": ", error.what()));
  }
}

Structure ElementFile::read(int64_t i) const {
  return decode_element(blobs_.read(i), str("file ", quoted(blobs_.path()), ": element ", i));
}

}  // namespace cohort::internal
