"""The virtual NPU's C API, for programs that replay launches."""

from __future__ import annotations

from triton_porting_kit.replay.runtimes import ReplayRuntime


class VnpuRuntime(ReplayRuntime):
    """``vnpu.h``: docs/virtual-npu.md describes it."""

    name = "the virtual NPU"
    address_type = "vnpu_address"
    includes = ("<vnpu.h>",)
    cmake = "find_package(vnpu CONFIG REQUIRED)"
    libraries = ("vnpu::vnpu",)
    declarations = """\
namespace {

// Ends the program if a call fails, with the runtime's message.
void check(vnpu_status status, const char *call) {
  if (status == VNPU_OK)
    return;
  std::fprintf(stderr, "%s\\n  %s: %s\\n", call, vnpu_status_name(status), vnpu_last_error());
  std::exit(1);
}

#define CHECK(call) check((call), #call)

} // namespace"""
    open = """\
vnpu_device *device = nullptr;
CHECK(vnpu_open(nullptr, &device));"""
    load = """\
const replay::Bytes binary = options.read("{{ file }}", {{ size }});
vnpu_module loaded = 0;
CHECK(vnpu_module_load(device, binary.data(), binary.size(), &loaded));
vnpu_function kernel = 0;
CHECK(vnpu_get_symbol(device, loaded, "{{ kernel }}", &kernel));"""
    allocate = "CHECK(vnpu_alloc(device, {{ size }}, {{ alignment }}, &{{ address }}));"
    copy_in = "CHECK(vnpu_copy_to_device(device, VNPU_DEFAULT_QUEUE, {{ address }}, {{ host }}.data(), {{ size }}));"
    launch = """\
CHECK(vnpu_launch(device, VNPU_DEFAULT_QUEUE, kernel, {{ x }}, {{ y }}, {{ z }}, {{ arguments }}, {{ size }}));"""
    wait = "CHECK(vnpu_queue_synchronize(device, VNPU_DEFAULT_QUEUE));"
    copy_out = (
        "CHECK(vnpu_copy_to_host(device, VNPU_DEFAULT_QUEUE, {{ host }}.data(), {{ address }}, {{ size }}));"
    )
    free = "CHECK(vnpu_free(device, {{ address }}));"
    close = """\
CHECK(vnpu_module_unload(device, loaded));
CHECK(vnpu_close(device));"""

    def prefix(self) -> str:
        try:
            from triton_porting_kit.driver.virtual import cmake_prefix

            return str(cmake_prefix())
        except (ImportError, FileNotFoundError):  # It was not built. CMake reports the missing package.
            return ""
