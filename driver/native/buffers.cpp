#include "buffers.h"

#include "text.h"

#include <atomic>

namespace tpk {
namespace {

struct Node {
  Py_buffer view;
  Node *next;
};

// A lock-free list: it is pushed to from any thread and taken as a whole, also across fork().
std::atomic<Node *> finished{nullptr};

void push(Node *node) {
  node->next = finished.load(std::memory_order_relaxed);
  while (!finished.compare_exchange_weak(node->next, node, std::memory_order_release)) {
  }
}

} // namespace

HeldBuffer hold(pybind11::handle object, bool writable) {
  auto node = std::make_unique<Node>();
  if (PyObject_GetBuffer(object.ptr(), &node->view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) {
    pybind11::error_already_set why;
    throw NoBuffer(text("type '", Py_TYPE(object.ptr())->tp_name, "' is no contiguous ",
                        writable ? "writable " : "",
                        "buffer: ", pybind11::str(why.value()).cast<std::string>()));
  }
  HeldBuffer held{node->view.buf, uint64_t(node->view.len), nullptr};
  held.keep = Keep(node.release(), [](void *done) { push(static_cast<Node *>(done)); });
  return held;
}

void releaseFinished() {
  Node *node = finished.exchange(nullptr, std::memory_order_acquire);
  while (node) {
    Node *next = node->next;
    PyBuffer_Release(&node->view);
    delete node;
    node = next;
  }
}

} // namespace tpk
