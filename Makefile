# Needs Python 3.11 or later with venv, a C++ compiler, and make. Everything else goes into $(VENV).
PYTHON ?= python3
VENV ?= .venv
# The torch that tests compare with, as pip is told it. `make test TORCH=` goes without.
TORCH ?= torch==2.13.0
# The older releases of Triton that `make test-releases` tries, and what it runs on each.
RELEASES ?= 3.6.0 3.7.1 3.8.0
RELEASE_TESTS ?= tests/kernels/test_device_arrays.py tests/toolchain tests/binaries tests/launcher/test_signature.py \
  tests/backends/cpu/test_cpu_arguments.py tests/backends/cpu/test_cpu_launches.py \
  tests/backends/cpu/test_cpu_cache.py tests/backends/amd/test_amd_architectures.py \
  tests/backends/amd/test_amd_against_triton.py tests/backends/amd/test_amd_options.py \
  tests/backends/amd/test_amd_refusals.py tests/backends/amd/test_amd_conversions.py tests/compiler/structured/test_expected.py \
  tests/compiler/test_semantics_shapes.py tests/compiler/test_semantics_block_pointers.py \
  tests/conformance/registration tests/conformance/runtime tests/conformance/language tests/conformance/kernels \
  tests/conformance/stress tests/conformance/mandatory tests/conformance/test_plugin.py tests/conformance/test_sessions.py \
  tests/conformance/test_bundled_profiles.py
# The releases of torch that `make test-torch-releases` tries beside $(TORCH), each with the Triton that it asks for.
TORCH_RELEASES ?= 2.11.0 2.12.0
# Processes that run tests, as pytest-xdist is told it. More than processors are slower: some tests wait in a loop.
JOBS ?= auto
PYTEST_ARGS ?=
BENCH_ARGS ?= --quick
COUNT_ARGS ?=
# A checkout of PyTorch's repository, with its tests.
PYTORCH ?=
UPSTREAM_ARGS ?=

# Tests run programs that call make themselves.
unexport MAKEFLAGS

BIN := $(VENV)/bin
DEMO := build/demo
MODELS := build/models
VENDORS := build/vendors
INTEL := build/opencl-intel
DEMO_TPK := PATH="$(CURDIR)/$(BIN):$$PATH" $(DEMO)/venv/bin/python -m triton_porting_kit.cli
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
  $(sort $(shell find -L src -type f -not -name '*.pyc' -not -name '*.so'))
NATIVE := $(filter %.cpp %.h,$(SOURCES)) $(wildcard docs/porting-guide/runtime/*)

.PHONY: help demo test suite test-browser test-models test-public test-opencl test-opencl-intel test-opencl-all test-torch-upstream \
  test-vendors test-releases \
  test-torch-releases test-all \
  docs lint check format release-template bench bench-inductor \
  bench-chip bench-opencl bench-counts performance install clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | \
	  awk -F'\t' '{printf "  make %-20s %s\n", $$1, $$2}'
	@echo "  TORCH=$(TORCH)   the torch that tests compare with; TORCH= goes without"

demo: $(VENV)/.build-tools $(VENV)/.installed ## install the kit, make and install a backend, run, judge and profile its kernels
	rm -rf $(DEMO)
	$(BIN)/tpk new acme --vendor Acme --chip X1 --dest $(DEMO)
	$(PYTHON) -m venv --without-pip $(DEMO)/venv
	$(call share_packages,$(DEMO)/venv)
	$(subst -m pip,-m pip --python $(DEMO)/venv/bin/python,$(PIP)) --no-build-isolation --no-deps $(DEMO)/triton-acme
	TRITON_DEFAULT_BACKEND=acme $(DEMO_TPK) demo
	$(DEMO_TPK) conform --backend acme --jobs 2 --report $(DEMO) \
	  --select "registration/* or runtime/* or (kernels/* and *fp32*)"
	TRITON_DEFAULT_BACKEND=acme $(DEMO_TPK) profile --dest $(DEMO) src/triton_porting_kit/kernels/profiled.py
	@echo "look at $(DEMO)/report.html, and at what the chip's units did: $(DEMO)/profile.html"
	@echo "timelines: $(DEMO)/matmul_kernel.svg, $(DEMO)/attention_forward_kernel.svg"

test: lint suite ## install with test tools, check the code, run every test

# Under `make -j 2 test`, `lint` runs beside it.
suite: $(VENV)/.test-tools $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --ignore tests/pytorch $(PYTEST_ARGS)
	$(if $(TORCH),$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(PYTEST_ARGS) tests/pytorch)

test-browser: $(VENV)/.test-tools $(VENV)/.installed ## try the pages of reports and profiles in Chromium, which has to be there
	$(BIN)/python -m pytest -m browser $(PYTEST_ARGS) tests/conformance/report tests/chips

test-models: $(MODELS)/.installed ## public models and long training on the virtual NPU
	TORCHINDUCTOR_CACHE_DIR=$(CURDIR)/$(MODELS)/inductor $(MODELS)/venv/bin/python -m pytest -m models $(PYTEST_ARGS) tests/models

test-public: $(VENV)/.test-tools $(VENV)/.installed ## a third of the kernels that others publish, which pip downloads
	$(BIN)/tpk public --backend cpu --jobs 2 --shard 1/3 --report build/public/report --cache build/public/packages

# Building a kernel takes PoCL about a second; it keeps what it has built between runs. One job, because PoCL was seen to
# abort when two processes used its cache at once.
OPENCL := $(BIN)/tpk conform --backend opencl --jobs $(shell nproc) --quiet

# Products, reductions, atomic operations and random numbers, in sizes that PoCL builds in seconds.
OPENCL_KERNELS := kernels/softmax/fp16-7x33 or kernels/online-softmax/fp16-1x1 or kernels/layer-norm-backward/fp16-1x1 or \
  kernels/matmul/fp8e5-17x33x65 or kernels/split-k-matmul/fp16-33x20x300-3 or kernels/attention/fp16-3x77x32 or \
  kernels/cross-entropy/fp16-1x1 or kernels/dropout/fp16-1025-p0.25-seed123456789

test-opencl: $(VENV)/.test-tools $(VENV)/.installed ## a sample of the conformance suite on OpenCL, whose driver has to be installed
	rm -rf build/opencl/report*
	$(OPENCL) --level registration --level runtime --shard 1/6 --report build/opencl/report
	$(OPENCL) --level language --shard 1/160 --report build/opencl/report-language
	$(OPENCL) --level kernels --shard 2/140 --report build/opencl/report-kernels
	TPK_OPENCL_WORK_ITEMS=8 $(OPENCL) --select "$(OPENCL_KERNELS)" --report build/opencl/report-8
	TPK_OPENCL_WORK_ITEMS=64 $(OPENCL) --select "$(OPENCL_KERNELS)" --report build/opencl/report-64

# Its wheels do not say where the driver is, and CPUs of this machine may be Intel's by their name.
ON_INTEL := OCL_ICD_VENDORS=$(CURDIR)/$(INTEL) LD_LIBRARY_PATH=$(CURDIR)/$(INTEL)/venv/lib TPK_OPENCL_DEVICE="Intel(R) OpenCL"

test-opencl-intel: $(INTEL)/.installed ## tests and a sample on Intel's OpenCL for CPUs, which has sub-groups and which pip downloads: 0.3 GB
	$(ON_INTEL) $(BIN)/python -m pytest $(PYTEST_ARGS) tests/backends/opencl/test_work_items.py \
	  tests/backends/opencl/test_opencl_kernels.py
	rm -rf $(INTEL)/report*
	$(ON_INTEL) $(OPENCL) --level registration --level runtime --profile tests/backends/opencl/intel.toml \
	  --report $(INTEL)/report
	$(ON_INTEL) TPK_OPENCL_WORK_ITEMS=64 $(OPENCL) --select "$(OPENCL_KERNELS)" --report $(INTEL)/report-64

test-opencl-all: $(VENV)/.test-tools $(VENV)/.installed ## the whole conformance suite on OpenCL, which takes hours
	rm -rf build/opencl/report-all
	$(OPENCL) --report build/opencl/report-all

test-torch-upstream: $(MODELS)/.installed ## PyTorch's own tests on the virtual NPU: PYTORCH=checkout of its repository
	$(MODELS)/venv/bin/python tests/pytorch/upstream.py $(PYTORCH) $(UPSTREAM_ARGS)

test-vendors: $(VENDORS)/.installed ## compile kernels for NPUs with the compilers that their vendors publish, and run them by IREE: 0.9 GB
	TPK_VENDORS=$(VENDORS)/venv $(BIN)/python -m pytest -m vendors -n $(JOBS) $(PYTEST_ARGS) tests/compiler/linalg

test-releases: $(RELEASES:%=.venv-releases/%/.installed) ## the main tests on older releases of Triton, without torch
	@failed=; for release in $(RELEASES); do \
	  echo "Triton $$release"; \
	  .venv-releases/$$release/bin/python -m pytest -n $(JOBS) --dist loadgroup \
	    -m "not slow and not browser and not models and not vendors and (sample or not table)" $(PYTEST_ARGS) $(RELEASE_TESTS) || \
	    failed="$$failed $$release"; \
	done; test -z "$$failed" || { echo "failed on Triton$$failed"; exit 1; }

test-torch-releases: $(TORCH_RELEASES:%=.venv-torch/%/.installed) ## the torch device on other releases of torch: 5 GB each
	@failed=; for release in $(TORCH_RELEASES); do \
	  echo "torch $$release"; \
	  .venv-torch/$$release/bin/python -m pytest $(PYTEST_ARGS) tests/pytorch || failed="$$failed $$release"; \
	done; test -z "$$failed" || { echo "failed on torch$$failed"; exit 1; }

test-all: test test-browser ## the tests, the slow ones too, then the demo and the quick benchmark
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m slow $(PYTEST_ARGS)
	$(BIN)/tpk demo
	$(BIN)/python -m benchmarks.run --quick --out $(VENV)/results.json

docs: $(VENV)/.installed ## write the tables of the docs and the mandatory lists from the code that they describe
	$(BIN)/python -m triton_porting_kit.compiler.dialect docs/architecture.md
	$(BIN)/python -m triton_porting_kit.compiler.ptx docs/inline-ptx.md
	$(BIN)/python -m triton_porting_kit.conformance.language.support docs/support.md
	$(BIN)/python -m triton_porting_kit.conformance.tolerances docs/conformance-kernels.md
	$(BIN)/python -m triton_porting_kit.conformance.mandatory conformance/mandatory
	$(BIN)/python -m triton_porting_kit.conformance.judge.cheats docs/judge.md

lint: $(VENV)/.test-tools ## ruff, clang-format and mypy, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(if $(TORCH),$(BIN)/python -m mypy -p triton_porting_kit -p triton_porting_kit_pytest -p benchmarks,\
	  @echo "mypy needs the types of torch: not run with TORCH=")

format: $(VENV)/.test-tools $(VENV)/.installed ## format Python and C++ in place
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE)

release-template: $(VENV)/.installed ## write the template for new backends as it is in this release, once and for all
	$(BIN)/python -m triton_porting_kit.porting.template backend_template

bench: $(VENV)/.installed ## measure the kernels beside torch, or NumPy where it is not installed, with their bars
	$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

bench-inductor: $(VENV)/.installed ## compile models for the CPU by Triton and by Inductor's C++, and time them; needs torch
	$(BIN)/python -m benchmarks.inductor $(BENCH_ARGS)

bench-chip: $(VENV)/.installed ## time kernels on the virtual chip n1 by its clock, beside kernels written by hand in C
	$(BIN)/python -m benchmarks.chip

bench-opencl: $(VENV)/.installed ## time launches and kernels on OpenCL, beside a host loop, a kernel written by hand and the CPU backend
	$(BIN)/python -m benchmarks.opencl

bench-counts: $(VENV)/.installed ## count instructions of compiling and launching, against a baseline; needs valgrind
	$(BIN)/python -m benchmarks.counts $(COUNT_ARGS)

performance: $(VENV)/.test-tools $(VENV)/.installed ## write docs/performance.md from three runs: an hour of an idle machine
	$(BIN)/python -m benchmarks.run --rounds 3 --out benchmarks/results
	$(BIN)/python -m benchmarks.plots docs/performance
	$(BIN)/python -m benchmarks.document

install: $(VENV)/.installed ## install the kit into $(VENV)

clean: ## remove the environment and everything built
	rm -rf $(VENV) .venv-releases .venv-torch build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# --- the environment ---------------------------------------------------------------------------------

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; try PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Changes when a source file appears or goes away, which no time stamp shows.
$(VENV)/.sources: force | $(VENV)/.made
	@echo '$(SOURCES)' | cmp -s - $@ || echo '$(SOURCES)' > $@

# Changes when another torch is asked for.
$(VENV)/.torch: force | $(VENV)/.made
	@echo '$(TORCH)' | cmp -s - $@ || echo '$(TORCH)' > $@

# What the kit needs at run time, and what testing it needs beside that, as pyproject.toml lists them.
requirements = import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  print(*project$(1), sep="\n")

$(VENV)/.needed: pyproject.toml | $(VENV)/.made
	$(BIN)/python -c '$(call requirements,["dependencies"])' > $(VENV)/needed.txt
	$(PIP) -r $(VENV)/needed.txt
	@touch $@

$(VENV)/.test-tools: pyproject.toml $(VENV)/.torch | $(VENV)/.needed
	$(BIN)/python -c '$(call requirements,["optional-dependencies"]["test"])' > $(VENV)/test.txt
	$(PIP) -r $(VENV)/test.txt $(TORCH)
	@touch $@

# What building a backend takes, without isolation: the kit that it is built with is the one installed here.
$(VENV)/.build-tools: pyproject.toml | $(VENV)/.needed
	$(BIN)/python -c '$(call requirements,["optional-dependencies"]["backend"])' > $(VENV)/backend.txt
	$(PIP) -r $(VENV)/backend.txt
	@touch $@

# Lets another environment see what $(VENV) has, and keeps what is installed there out of $(VENV).
share_packages = $(BIN)/python -c 'import site, sys, sysconfig; from pathlib import Path; \
  target = Path(sysconfig.get_path("purelib", vars={"base": sys.argv[1], "platbase": sys.argv[1]})); \
  (target / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")' $(1)

# The kit itself, again whenever a source changes; built once for all environments.
$(VENV)/.wheel: $(VENV)/.sources $(SOURCES) | $(VENV)/.made
	rm -rf $(VENV)/wheel
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --wheel-dir $(VENV)/wheel .
	@touch $@

$(VENV)/.installed: $(VENV)/.wheel $(VENV)/.needed
	$(PIP) --no-deps --force-reinstall $(VENV)/wheel/*.whl
	@touch $@

# --- the environments of older releases --------------------------------------------------------------

.venv-releases/%/.needed: pyproject.toml | $(VENV)/.needed
	$(PYTHON) -m venv .venv-releases/$*
	.venv-releases/$*/bin/python -m pip install -q --disable-pip-version-check -r $(VENV)/needed.txt triton==$* \
	  hypothesis jsonschema "pytest<9.2" "rocm-llvm-python>=7.2"
	@touch $@

# An environment with a generated backend, public models, and what PyTorch's tests import.
# The wheels have compilers of their own and need none of their dependencies.
$(VENDORS)/.installed: $(VENV)/.test-tools $(VENV)/.installed
	rm -rf $(VENDORS)
	$(PYTHON) -m venv --without-pip $(VENDORS)/venv
	$(subst -m pip,-m pip --python $(VENDORS)/venv/bin/python,$(PIP)) --no-deps ascendnpu-ir==1.2.0 \
	  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 ml_dtypes
	@touch $@

$(INTEL)/.installed: $(VENV)/.test-tools $(VENV)/.installed
	rm -rf $(INTEL)
	$(PYTHON) -m venv --without-pip $(INTEL)/venv
	$(subst -m pip,-m pip --python $(INTEL)/venv/bin/python,$(PIP)) intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0
	echo $(CURDIR)/$(INTEL)/venv/lib/libintelocl.so > $(INTEL)/intel.icd
	@touch $@

$(MODELS)/.installed: $(VENV)/.build-tools $(VENV)/.test-tools $(VENV)/.installed
	rm -rf $(MODELS)
	$(BIN)/tpk new acme --vendor Acme --chip X1 --shape cores --dest $(MODELS)  # the chip of the other shape is simulated
	$(PYTHON) -m venv --without-pip $(MODELS)/venv
	$(call share_packages,$(MODELS)/venv)
	$(subst -m pip,-m pip --python $(MODELS)/venv/bin/python,$(PIP)) --no-build-isolation --no-deps $(MODELS)/triton-acme
	$(subst -m pip,-m pip --python $(MODELS)/venv/bin/python,$(PIP)) "transformers==5.23.*" "psutil>=6"
	@touch $@

.PRECIOUS: .venv-releases/%/.needed .venv-torch/%/.needed
.venv-releases/%/.installed: .venv-releases/%/.needed $(VENV)/.wheel
	.venv-releases/$*/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall \
	  $(VENV)/wheel/*.whl
	@touch $@

# torch first: it pins the release of Triton.
.venv-torch/%/.needed: pyproject.toml | $(VENV)/.needed
	$(PYTHON) -m venv .venv-torch/$*
	.venv-torch/$*/bin/python -m pip install -q --disable-pip-version-check torch==$*
	.venv-torch/$*/bin/python -m pip install -q --disable-pip-version-check -r $(VENV)/needed.txt \
	  hypothesis "pytest<9.2" "expecttest>=0.3"
	@touch $@

.venv-torch/%/.installed: .venv-torch/%/.needed $(VENV)/.wheel
	.venv-torch/$*/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall \
	  $(VENV)/wheel/*.whl
	@touch $@

.PHONY: force
force:
