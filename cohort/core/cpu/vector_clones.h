// One function compiled for several generations of processors; the best is chosen when the program
// starts.
#pragma once

// Marks a function whose loops are worth wider registers. It changes no result if the function
// neither adds in another order nor fuses operations (-ffp-contract=off); the function's author
// must see to that. Sanitizers start after the choice is made and cannot see it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COHORT_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define COHORT_VECTOR_CLONES
#endif
