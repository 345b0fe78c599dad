#include "cohort/parameter_server/store/write_kept.h"

#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_data_file.h"
#include "cohort/train/bundle/value_bytes.h"

namespace cohort::internal {
namespace {

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTemporaryPrefix) && name.find('/') == name.npos;
}

}  // namespace

// The directory is a coordinator's word, so what is written there can only be what every
// checkpoint's writer removes.
WriteKeptReply write_kept(FileSystem& files, const std::vector<Tensor>& values,
                          const WriteKeptRequest& request) {
  if (!request.directory.starts_with('/') || !is_temporary_name(request.probe) ||
      !is_temporary_name(request.file) || request.file == request.probe) {
    throw InvalidArgumentError(str("a ps task was asked to write ", quoted(request.file),
                                   " beside ", quoted(request.probe), " into ",
                                   quoted(request.directory), ", which no checkpoint asks for"));
  }
  if (!files.exists(join_path(request.directory, request.probe))) return {};
  uint64_t bytes = 0;
  for (const Tensor& value : values) bytes += value.nbytes();
  BundleDataFile file(files, join_path(request.directory, request.file), bytes);
  WriteKeptReply reply{.sees_directory = true, .places = {}};
  for (const Tensor& value : values) {
    const uint64_t offset = file.size();
    const uint32_t crc = file.append(bytes_of(value));
    reply.places.push_back({offset, value.nbytes(), mask_crc(crc)});
  }
  file.finish();
  file.let_go();
  return reply;
}

}  // namespace cohort::internal
