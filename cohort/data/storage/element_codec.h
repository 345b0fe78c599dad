// Elements as bytes, for files that datasets write and for states.
//
//   element: 0 leaf | 1 n element*n (tuple) | 2 n (key element)*n (dict) | 3 sparse
//   leaf:    dtype rank size*rank  then  the values in row-major order, little-endian,
//            or for strings (dtype 255) the length of each and then all of them
//   sparse:  rank size*rank, element of the indices (int64 [sparse dims, n], in order), element
//            of the values: a tensor in COO layout
// Numbers are varints, keys have their length in front; dtypes have libtorch's numbers.
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// Tensors are taken to the CPU. Errors: Unimplemented (a dtype that is not plain numbers).
std::string encode_element(const Structure& element);

// Takes no memory that the bytes do not account for. Errors: DataLoss (these are not the bytes of
// an element: names the byte; the text begins with `what`).
Structure decode_element(std::string_view bytes, std::string_view what);

// A spec as a structure of its own form, and back. Each leaf is int64 numbers: the dtype (-1 for
// strings), 1 where the rank is known (else 0), the sizes.
// Errors: InvalidArgument (that is no such structure).
Structure spec_to_structure(const StructureSpec& spec);
StructureSpec structure_to_spec(const Structure& structure);

}  // namespace cohort::internal
