// The transforms of Winograd's F(2x2, 3x3), of kVector channels or filters at once: each of columns
// first, then of rows. For loops that are compiled for several processors; included by files of
// loops alone.
#pragma once

#include "cohort/ops/kernels/vectors.h"

namespace cohort::internal::plan {

inline constexpr int kTransformedSize = 16;  // numbers of a transformed tile

// In Lavin and Gray's terms: of an image B^T d B,
COHORT_INLINE void transform(const Floats (&d)[16], Floats (&v)[16]) {
  Floats rows[16];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = d[c] - d[8 + c];
    rows[4 + c] = d[4 + c] + d[8 + c];
    rows[8 + c] = d[8 + c] - d[4 + c];
    rows[12 + c] = d[4 + c] - d[12 + c];
  }
#pragma GCC unroll 4
  for (int r = 0; r < 16; r += 4) {
    v[r] = rows[r] - rows[r + 2];
    v[r + 1] = rows[r + 1] + rows[r + 2];
    v[r + 2] = rows[r + 2] - rows[r + 1];
    v[r + 3] = rows[r + 1] - rows[r + 3];
  }
}

// of a kernel G g G^T,
COHORT_INLINE void transform(const Floats (&g)[9], Floats (&u)[16]) {
  Floats rows[12];
#pragma GCC unroll 3
  for (int c = 0; c < 3; ++c) {
    const Floats sides = g[c] + g[6 + c];
    rows[c] = g[c];
    rows[3 + c] = 0.5f * (sides + g[3 + c]);
    rows[6 + c] = 0.5f * (sides - g[3 + c]);
    rows[9 + c] = g[6 + c];
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const Floats sides = rows[3 * r] + rows[3 * r + 2];
    u[4 * r] = rows[3 * r];
    u[4 * r + 1] = 0.5f * (sides + rows[3 * r + 1]);
    u[4 * r + 2] = 0.5f * (sides - rows[3 * r + 1]);
    u[4 * r + 3] = rows[3 * r + 2];
  }
}

// of products A^T m A;
COHORT_INLINE void transform_back(const Floats (&m)[16], Floats (&y)[4]) {
  Floats rows[8];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = m[c] + m[4 + c] + m[8 + c];
    rows[4 + c] = m[4 + c] - m[8 + c] - m[12 + c];
  }
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
    y[2 * r] = rows[4 * r] + rows[4 * r + 1] + rows[4 * r + 2];
    y[2 * r + 1] = rows[4 * r + 1] - rows[4 * r + 2] - rows[4 * r + 3];
  }
}

// and the gradients of the last one, A y A^T, and of the kernel's, G^T u G.
COHORT_INLINE void transform(const Floats (&y)[4], Floats (&m)[16]) {
  const Floats rows[8] = {y[0],        y[1],        y[0] + y[2], y[1] + y[3],
                          y[0] - y[2], y[1] - y[3], -y[2],       -y[3]};
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    m[4 * r] = rows[2 * r];
    m[4 * r + 1] = rows[2 * r] + rows[2 * r + 1];
    m[4 * r + 2] = rows[2 * r] - rows[2 * r + 1];
    m[4 * r + 3] = -rows[2 * r + 1];
  }
}

COHORT_INLINE void transform_back(const Floats (&u)[16], Floats (&g)[9]) {
  Floats rows[12];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const Floats sum = 0.5f * (u[4 + c] + u[8 + c]);
    rows[c] = u[c] + sum;
    rows[4 + c] = 0.5f * (u[4 + c] - u[8 + c]);
    rows[8 + c] = sum + u[12 + c];
  }
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    const Floats sum = 0.5f * (rows[4 * r + 1] + rows[4 * r + 2]);
    g[3 * r] = rows[4 * r] + sum;
    g[3 * r + 1] = 0.5f * (rows[4 * r + 1] - rows[4 * r + 2]);
    g[3 * r + 2] = sum + rows[4 * r + 3];
  }
}

}  // namespace cohort::internal::plan
