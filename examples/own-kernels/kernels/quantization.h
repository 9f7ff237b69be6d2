// What 8-bit integers stand for. Both arms take it by value: nvcc and the C++ compiler read this file, Rust what bindgen made
// of it.
#pragma once

#include <stdint.h>

struct Quantization {
    double scale;
    int32_t zero_point;
    // Negative numbers become 0.
    bool rectify;
    // Added to each number of an even and of an odd column.
    float bias[2];
};
