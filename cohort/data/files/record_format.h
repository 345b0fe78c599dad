// What is in files of records, and what elements their records become.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cohort/core/structure/spec.h"
#include "cohort/data/files/record_cursor.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {

// Thread safety: immutable.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;
  // The name of the node, also in errors: "TFRecordDataset".
  virtual std::string name() const = 0;
  // What the user chose, as DataNode::attributes().
  virtual DataNode::Attributes attributes() const { return {}; }
  virtual std::shared_ptr<const Framing> framing() const = 0;

  // The spec of records as they are; formats that decode them have another.
  virtual StructureSpec element_spec() const;
  // The element of a slice of one record. Errors: InvalidArgument (file, line or byte).
  virtual Structure element(const RecordSlice& slice, const std::string& file) const;
  // The elements of consecutive slices of a file, as one block.
  virtual Structure block(std::span<const RecordSlice> slices, const std::string& file) const;
};

}  // namespace cohort::internal
