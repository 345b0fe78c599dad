// Files of elements that can be read at any position: what save() and cache() write. Blobs of
// encode_element (records/blob_file.h), and as their info one of {'graph', 'start', 'spec'}.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/files/file_system.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/records/blob_file.h"

namespace cohort::internal {

// What a file says about its elements as a whole.
struct ElementFileInfo {
  std::string graph;  // describe_graph of where they are from
  std::string start;  // the state of that pipeline's iterator before the first of them
  StructureSpec spec;
};

// Writes a file of elements. `path` stays what it was until finish(). Thread safety: none.
class ElementFileWriter {
 public:
  // Errors of all: FileSystem's.
  ElementFileWriter(FileSystem& files, std::string path) : blobs_(files, std::move(path)) {}

  void append(const Structure& element);
  void finish(const ElementFileInfo& info);

 private:
  BlobFileWriter blobs_;
};

// Thread safety: immutable; reads from any thread.
class ElementFile {
 public:
  // Errors: NotFound, InvalidArgument (not a file of elements), DataLoss (unfinished or damaged:
  // names the file and the byte), DeadlineExceeded (a server of the file does not answer).
  ElementFile(FileSystem& files, const std::string& path);

  int64_t size() const { return blobs_.size(); }
  const ElementFileInfo& info() const { return info_; }
  // Element `i` of [0, size()). Errors: DataLoss, DeadlineExceeded.
  Structure read(int64_t i) const;

 private:
  const BlobFile blobs_;
  ElementFileInfo info_;
};

}  // namespace cohort::internal
