// The structures of DLPack 0.8 that tensors pass through: https://dmlc.github.io/dlpack/latest/c_api.html

#pragma once

#include <cstdint>

namespace tpk::dlpack {

/// The device type of tensors in the memory of an extension device: PyTorch's PrivateUse1.
constexpr std::int32_t kExtensionDevice = 12;

struct Device {
  std::int32_t type;
  std::int32_t index;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void *data;
  Device device;
  std::int32_t rank;
  DataType type;
  std::int64_t *shape;
  std::int64_t *strides;
  std::uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void *context;
  void (*deleter)(ManagedTensor *);
};

} // namespace tpk::dlpack
