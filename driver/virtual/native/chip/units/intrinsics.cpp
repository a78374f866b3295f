#include "intrinsics.h"
#include "mistake.h"

#include "../../../../host/native/services.h"

#include <new>

namespace vnpu {

thread_local Playing playing;

void endKernel() {
  tpk::endUnless([](const void *) { return std::string("ended"); }, nullptr);
  __builtin_unreachable();
}

namespace {

// Runs the body on the calling thread's core, and ends the kernel if it throws. Nothing that needs a
// destructor is alive when the kernel is ended.
template <typename Body> auto onCore(Body body) -> decltype(body(*playing.core)) {
  try {
    if (!playing.core)
      throw Mistake{"an intrinsic was called outside of a kernel on a chip with a description"};
    if (!playing.stopped->load(std::memory_order_relaxed))
      return body(*playing.core);
    playing.mistake.clear();
  } catch (const Mistake &mistake) {
    playing.mistake = mistake.text;
  } catch (const std::bad_alloc &) {
    playing.mistake = "the chip's process is out of memory";
  }
  endKernel();
}

uint64_t address(int64_t number) { return uint64_t(number); }

} // namespace
} // namespace vnpu

using vnpu::address;
using vnpu::NpuCore;
using vnpu::onCore;

int64_t tpk_npu_dma(int32_t channel, const tpk_npu_transfer *transfer, int32_t line) {
  return onCore([&](NpuCore &core) { return core.transfer(channel, *transfer, line); });
}

int64_t tpk_npu_gather(int32_t channel, int64_t local, int64_t base, int64_t offsets, int64_t mask,
                       int64_t count, int32_t element_bytes, int32_t offset_bytes, int32_t scale,
                       int64_t fill, int32_t line) {
  return onCore([&](NpuCore &core) {
    return core.indexed({channel, address(local), address(base), address(offsets), address(mask), count,
                         element_bytes, offset_bytes, scale, fill, line, true});
  });
}

int64_t tpk_npu_scatter(int32_t channel, int64_t local, int64_t base, int64_t offsets, int64_t mask,
                        int64_t count, int32_t element_bytes, int32_t offset_bytes, int32_t scale,
                        int32_t line) {
  return onCore([&](NpuCore &core) {
    return core.indexed({channel, address(local), address(base), address(offsets), address(mask), count,
                         element_bytes, offset_bytes, scale, 0, line, false});
  });
}

int64_t tpk_npu_matrix(int64_t c, int64_t a, int64_t b, int32_t m, int32_t n, int32_t k, int64_t c_stride,
                       int64_t a_stride, int64_t b_stride, int32_t a_type, int32_t b_type, int32_t c_type,
                       int32_t flags, int32_t line) {
  return onCore([&](NpuCore &core) {
    return core.product({address(c), address(a), address(b), m, n, k, c_stride, a_stride, b_stride, a_type,
                         b_type, c_type, flags, line});
  });
}

void tpk_npu_wait(int32_t unit, int64_t token) {
  onCore([&](NpuCore &core) { core.wait(unit, token); });
}

void tpk_npu_order(int32_t unit, int32_t other, int64_t token) {
  onCore([&](NpuCore &core) { core.order(unit, other, token); });
}

void tpk_npu_reads(int64_t at, int64_t bytes, int32_t line) {
  onCore([&](NpuCore &core) { core.touch(address(at), bytes, line, false); });
}

void tpk_npu_writes(int64_t at, int64_t bytes, int32_t line) {
  onCore([&](NpuCore &core) { core.touch(address(at), bytes, line, true); });
}

void tpk_npu_work(int32_t kind, int64_t count) {
  onCore([&](NpuCore &core) { core.work(kind, count); });
}

void tpk_npu_works(const int64_t *parts, int64_t iterations) {
  onCore([&](NpuCore &core) { core.works(parts, iterations); });
}

uint64_t tpk_npu_element_load(int64_t at, int32_t bytes, int32_t line) {
  return onCore([&](NpuCore &core) { return core.load(address(at), bytes, line); });
}

void tpk_npu_element_store(int64_t at, uint64_t value, int32_t bytes, int32_t line) {
  onCore([&](NpuCore &core) { core.store(address(at), value, bytes, line); });
}

uint64_t tpk_npu_atomic(int32_t kind, int32_t type, int64_t at, uint64_t value, uint64_t compare, int32_t,
                        int32_t line) {
  return onCore([&](NpuCore &core) { return core.atomic(kind, type, address(at), value, compare, line); });
}

void vnpu::addIntrinsics(std::vector<tpk::Routine> &routines) {
  const auto add = [&](const char *name, auto *function) {
    routines.push_back({name, reinterpret_cast<uint64_t>(function)});
  };
  add("tpk_npu_dma", &tpk_npu_dma);
  add("tpk_npu_gather", &tpk_npu_gather);
  add("tpk_npu_scatter", &tpk_npu_scatter);
  add("tpk_npu_matrix", &tpk_npu_matrix);
  add("tpk_npu_wait", &tpk_npu_wait);
  add("tpk_npu_order", &tpk_npu_order);
  add("tpk_npu_reads", &tpk_npu_reads);
  add("tpk_npu_writes", &tpk_npu_writes);
  add("tpk_npu_work", &tpk_npu_work);
  add("tpk_npu_works", &tpk_npu_works);
  add("tpk_npu_element_load", &tpk_npu_element_load);
  add("tpk_npu_element_store", &tpk_npu_element_store);
  add("tpk_npu_atomic", &tpk_npu_atomic);
}
