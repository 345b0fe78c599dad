#include "cohort/core/files/compression.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

Compression compression_of(std::string_view name) {
  for (const Compression known : {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    if (name == compression_name(known)) return known;
  }
  throw InvalidArgumentError(
      str("there is no compression ", quoted(name), "; use '' (none), 'GZIP' or 'ZLIB'"));
}

std::string_view compression_name(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "";
    case Compression::kGzip:
      return "GZIP";
    case Compression::kZlib:
      return "ZLIB";
  }
  return "";
}

}  // namespace cohort::internal
