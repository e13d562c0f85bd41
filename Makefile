# Two commands: `make demo` and `make test`. Each installs what is missing, builds, and runs.
JOBS ?= $(shell nproc)
# Places for tests, on two cores: one that computes takes three of them (tests/CMakeLists.txt).
TEST_JOBS ?= 6
CTEST_ARGS ?=

.PHONY: all setup build package wheel docs demo test test-long test-asan test-tsan fuzz test-pmu test-web format-web bench bench-peers ladder validate install clean format

all: build

setup:
	@sh scripts/setup.sh

build: setup
	@cmake --preset release > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release -j $(JOBS)

demo: setup
	@cmake --preset release -DHEADRACE_TESTS=OFF > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release -j $(JOBS) --target headrace
	@./build/headrace demo

test: setup
	@cmake --preset release -DHEADRACE_TESTS=ON > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release -j $(JOBS)
	@sh scripts/run_tests.sh build $(TEST_JOBS) $(CTEST_ARGS)

# All that this machine can run: also every fuzzer, and threads under ThreadSanitizer (docs/testing.md).
test-long:
	@HEADRACE_LONG=1 $(MAKE) test

# The same tests under AddressSanitizer and UndefinedBehaviorSanitizer, and under ThreadSanitizer.
test-asan: setup
	@cmake --preset asan && cmake --build --preset asan -j $(JOBS)
	@sh scripts/run_tests.sh build-asan $(TEST_JOBS) $(CTEST_ARGS)
test-tsan: setup
	@cmake --preset tsan && cmake --build --preset tsan -j $(JOBS)
	@sh scripts/run_tests.sh build-tsan $(TEST_JOBS) $(CTEST_ARGS)

# Hardware counters and BPF programs in emulated machines, with Debian's stock kernel: docs/testing.md.
test-pmu: setup
	@sh scripts/test_pmu.sh

# The pages of `headrace serve` in a browser, with npm (docs/testing.md). WEB_ARGS="-g what-if" for some of them.
WEB_ARGS ?=
test-web: build
	@sh scripts/test_web.sh build $(WEB_ARGS) || [ $$? -eq 77 ]

# As the check in test-web wants the sources of the pages. Needs the packages that test-web has installed.
format-web:
	@build/web-test/node_modules/.bin/prettier --print-width 100 --write 'dashboards/web/**/*.ts' 'tests/web/*.ts' 'tests/web/*.m*s'

# Ten minutes of the fuzzers, one after the other; FUZZ_SECONDS=60 for less.
FUZZ_SECONDS ?= 600
fuzz: setup
	@sh scripts/fuzz.sh $(FUZZ_SECONDS)

bench: setup
	@cmake --preset release -DHEADRACE_TESTS=ON > /dev/null && cmake --build --preset release -j $(JOBS) --target all benches
	@sh scripts/bench.sh

# The same rows read by other readers, in pairs: PEERS_ARGS="--pairs 15 --markdown FILE".
PEERS_ARGS ?=
bench-peers: setup
	@cmake --preset release -DHEADRACE_TESTS=ON > /dev/null && cmake --build --preset release -j $(JOBS) --target headrace scan_bench
	@sh scripts/bench_peers.sh $(PEERS_ARGS)

# The optimisation ladder of the literature on an rm1 table and a modelled disk: LADDER_ARGS="--quick", "--pairs 12 --format md".
LADDER_ARGS ?=
ladder: setup
	@cmake --preset release -DHEADRACE_TESTS=ON > /dev/null && cmake --build --preset release -j $(JOBS) --target headrace
	@build/headrace characterize rm1 --ladder-only --fresh -o build/ladder $(LADDER_ARGS)

# How often what headrace says is true: docs/accuracy.md and docs/accuracy-real.md, made anew. SHARE=0.1 for a tenth of the pipelines;
# REAL=0 without those that really run, which take an hour on a machine that does nothing else.
SHARE ?= 1
REAL ?= 42
RULES ?= 60
validate: setup
	@cmake --preset release -DHEADRACE_TESTS=ON > /dev/null && cmake --build --preset release -j $(JOBS) --target accuracy headrace
	@sh scripts/validate.sh build $(JOBS) $(SHARE) $(REAL) $(RULES)
	@if [ "$(SHARE)" = 1 ]; then cp build/validation/accuracy.md docs/; else echo "build/validation/accuracy.md"; fi
	@if [ "$(SHARE)" = 1 ] && [ "$(REAL)" -ge 40 ]; then cp build/validation/accuracy-real.md docs/; else ls build/validation/accuracy-real.md 2> /dev/null || true; fi

ARCH ?= $(shell uname -m)

# Debian packages and an archive for any Linux, in build/packages, and the wheel (docs/install.md).
# ARCH=aarch64: Debian packages for 64-bit ARM with the program of that wheel.
package: wheel
	@cmake --build --preset release -j $(JOBS) --target headrace headrace_account
ifeq ($(ARCH),$(shell uname -m))
	@cd build && cpack -B packages && rm -rf packages/_CPack_Packages
	@ls -l build/packages dist
else
	@cd build && cpack -G DEB -B packages > /dev/null && rm -rf packages/_CPack_Packages
	@sh packaging/portable/deb_arm64.sh build/packages build-arm64 build/packages
endif

# One file for pip: program, Python package, import hook, instrumentation's library (docs/install.md). In dist.
# ARCH=aarch64: the same for 64-bit ARM, in dist/aarch64, by cross compilation. Manual and completions are printed by this machine's headrace.
wheel: setup
ifeq ($(ARCH),$(shell uname -m))
	@cmake --preset release > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release -j $(JOBS) --target headrace_portable headrace_account_portable
	@python3 packaging/wheel/make_wheel.py build/packaging/portable/bin dist
else ifeq ($(ARCH),aarch64)
	@sh scripts/setup.sh g++-aarch64-linux-gnu
	@sh packaging/portable/arm64_root.sh build-arm64/root
	@{ cmake --preset release && cmake --preset arm64; } > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release -j $(JOBS) --target headrace
	@cmake --build --preset arm64 -j $(JOBS) --target headrace_portable headrace_account_portable
	@python3 packaging/wheel/make_wheel.py build-arm64/packaging/portable/bin dist/aarch64 build-arm64/root build/headrace
else
	@echo "wheel: no cross compilation for $(ARCH): ARCH=aarch64, or make wheel on such a machine" >&2; exit 2
endif

# The documents as a site, with mkdocs-material from PyPI, in build/site.
docs:
	@sh scripts/docs.sh build

install: build
	@cmake --install build

format:
	@git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i

clean:
	rm -rf build build-arm64 build-asan build-tsan build-fuzz
