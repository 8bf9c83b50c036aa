# cupel: one file builds, runs, tests and installs everything, into build/.
#   make        build/cupel            make test    one test for each promise; make test-full: the rest
#   make run    the main job, shown    make bench   figures, as ratios to peers
#   make asan   the tests, sanitized   make fuzz    libFuzzer on every parser (SECONDS=60)
#   make load   the HTTP service under load, against the engine's socket
#   make records     the cost of records, pages of a million of them, and the cache
#   make extras      the long list of packages for the code that runs, by apt
#   make ecosystem   public programs, notebooks beside a Jupyter kernel, the SDKs from npm, generated clients
#   make test-long, test-mutation, test-v2, soak: the long forms of the tests
#   make install | uninstall           PREFIX, DESTDIR
# Variants: V=1 shows commands; WERROR=1 makes warnings errors; CC=clang; CFLAGS and LDFLAGS come
#   after ours; B=build/NAME SAN=address,undefined;
#   CC=aarch64-linux-gnu-gcc B=build/aarch64 for another processor
VERSION := 0.1.0
CC      := gcc
# The processor that cupel is for, and whether it is another one than this.
ARCH    := $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1)
CROSS   := $(filter-out $(shell uname -m),$(ARCH))
B       := build
SAN     :=
PREFIX  := /usr/local
DESTDIR :=
SECONDS := 60
V       :=
Q       := $(if $(V),,@)
PYTHON  := /usr/bin/python3
BUILD_PYTHON := $(shell readlink $(PYTHON))

WARN   := $(if $(WERROR),-Werror) -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
          -Wvla -Walloca -Wswitch-enum -Wcast-qual -Wpointer-arith -Wundef
HARDEN := -fstack-protector-strong -fstack-clash-protection \
          $(if $(filter x86_64,$(ARCH)),-fcf-protection)
ifneq ($(findstring clang,$(CC)),clang)
HARDEN += -ftrivial-auto-var-init=zero
endif
BASE   := -std=gnu17 -O2 -g -D_GNU_SOURCE -DCUPEL_VERSION='"$(VERSION)"' -Isrc -I. -Iinclude -I$(B)/gen \
          -include src/base/banned.h $(WARN) $(HARDEN) $(CFLAGS) -MMD -MP
# The sanitizers and fortify do not mix, and neither goes into the static programs' variant.
ifeq ($(SAN),)
HOST_CFLAGS := $(BASE) -fPIE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
HOST_LDFLAGS := -pie -Wl,-z,relro,-z,now,-z,noexecstack $(LDFLAGS)
else
# clang alone reports NULL + 0, which is how an empty string is skipped here and which C2y defines.
SANITIZE := -fsanitize=$(SAN) $(if $(findstring clang,$(CC)),-fno-sanitize=pointer-overflow -D__SANITIZE_ADDRESS__)
HOST_CFLAGS := $(BASE) -fPIE $(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
HOST_LDFLAGS := -pie -fsanitize=$(SAN) $(LDFLAGS)
endif
# jansson and libcrypto's SHA-256 are linked statically: loading them costs more than using them.
comma := ,
hash  := \#
# Fedora and Arch have no static ones of some.
static_or  = $(if $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),-Wl$(comma)-Bstatic -l$(1) -Wl$(comma)-Bdynamic,-l$(1))
HOST_LIBS := $(call static_or,jansson) $(call static_or,crypto)
EMBED_LIBS := -ljansson
# Broker and init: static, on musl, because they are copied and exec'd for every start.
# On a musl host the compiler is musl's own; for another processor glibc will do.
STATIC_CC     := $(if $(CROSS),$(CC),$(if $(shell command -v musl-gcc),musl-gcc,$(CC)))
STATIC_CFLAGS := $(filter-out -fcf-protection -O2,$(BASE)) -Os -fPIE \
                 $(if $(CROSS),,-idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch 2>/dev/null)) -ffunction-sections -fdata-sections
# musl-gcc knows no -static-pie, and links with libc.so for it: its start files are named here.
MUSL_CRT      := $(if $(CROSS),,$(dir $(shell musl-gcc '-$(hash)$(hash)$(hash)' -x c /dev/null 2>&1 | grep -o '[^ "]*Scrt1\.o' | head -1)))
STATIC_PIE    := $(if $(MUSL_CRT),-static -nostartfiles -Wl$(comma)-pie$(comma)--no-dynamic-linker \
                 $(MUSL_CRT)rcrt1.o $(MUSL_CRT)crti.o $(MUSL_CRT)crtn.o,-static-pie)
STATIC_LDFLAGS := $(STATIC_PIE) -Wl,--gc-sections,-z,relro,-z,now,-z,noexecstack,-z,text -s
# The programs `tool` of bash code and `shell` of commands. They run beside the user's code, and are
# never sanitized.
CALLER_CC      := $(STATIC_CC)
CALLER_CFLAGS  := $(STATIC_CFLAGS)
CALLER_LDFLAGS := $(STATIC_LDFLAGS)
# Sanitized, they are dynamic programs on glibc: no sanitizer works in a static one. They have no
# heap, so the runtime makes no system call behind their filters; undefined behaviour traps.
ifneq ($(SAN),)
ZYGOTE_SAN     := $(patsubst -fsanitize=%,-fsanitize=undefined,$(SANITIZE)) -fsanitize-undefined-trap-on-error
STATIC_CC      := $(CC)
STATIC_CFLAGS  := $(BASE) -fPIE $(SANITIZE) -fsanitize-undefined-trap-on-error -fno-omit-frame-pointer
STATIC_LDFLAGS := -pie -fsanitize=$(SAN) -fsanitize-undefined-trap-on-error
STATIC_SAN     := tests/sanitize/options.c
endif

# Both sides use these.
STATIC_BASE := src/base/io.c src/base/mounts.c src/box/wall/clone.c src/box/wall/landlock.c \
               src/box/cgroup/counters.c src/box/proto/due.c src/box/proto/places.c
PARKING     := $(wildcard src/box/park/*.c src/box/fork/*.c)
PORTER_SRC  := $(wildcard src/box/files/*.c)
BROKER_SRC  := $(filter-out src/box/inside/init.c,$(wildcard src/box/broker/*.c src/box/keep/*.c src/box/inside/*.c)) \
               src/box/cgroup/cgroup.c src/box/wall/drop.c src/box/wall/posture.c $(PORTER_SRC) $(PARKING) $(STATIC_BASE)
INIT_SRC    := src/box/inside/init.c src/box/wall/posture.c src/base/io.c
STATIC_ONLY := $(filter-out $(STATIC_BASE) $(PARKING),$(BROKER_SRC) $(INIT_SRC))
# The zygote's library is loaded by the image's own interpreter, hence glibc.
ZYGOTE_OWN  := $(wildcard src/box/zygote/*.c)
ZYGOTE_SRC  := $(ZYGOTE_OWN) src/box/inside/enter.c src/box/wall/drop.c src/box/wall/landlock.c $(PORTER_SRC) \
               src/box/wall/posture.c src/base/io.c
ZYGOTE_CFLAGS = $(BASE) $(ZYGOTE_SAN) -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections
# The clock of seeded runs: loaded by every program of their boxes.
SEED_SRC    := $(wildcard src/box/seed/*.c)
CALLER_OWN  := $(wildcard src/box/caller/*.c)
CALLER_SRC  := $(CALLER_OWN) src/base/io.c
SHELL_OWN   := $(wildcard src/box/shell/*.c)
SHELL_SRC   := $(SHELL_OWN) src/box/proto/shell.c
HOST_SRC    := $(filter-out $(STATIC_ONLY) $(ZYGOTE_OWN) $(SEED_SRC) $(CALLER_OWN) $(SHELL_OWN),$(wildcard src/*/*.c src/*/*/*.c))
EMBED_CFLAGS := $(BASE) -fPIC -fvisibility=hidden -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
EMBED_SRC := $(wildcard src/embed/*.c) src/contract/frame.c src/contract/frame_news.c src/contract/refusal.c \
             src/base/io.c src/base/base64.c src/base/buf.c src/base/err.c src/base/json.c src/base/json_add.c src/base/str.c

host_obj   = $(patsubst %.c,$(B)/host/%.o,$(1))
static_obj = $(patsubst %.c,$(B)/static/%.o,$(1))
COMPLETION_OBJ := $(call host_obj,$(wildcard dev/completion/*.c))
LIB_OBJ   := $(filter-out $(B)/host/src/cli/main.o,$(call host_obj,$(HOST_SRC)))
UNIT_OBJ  := $(call host_obj,$(wildcard tests/unit/*.c))
FUZZ      := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: ci-build analyze all run extras test test-full ecosystem test-long test-mutation test-v2 test-distros test-aarch64 soak bench load records asan fuzz install uninstall clean deps \
        check unit replay format completions
all: $(B)/cupel $(B)/libcupel.so $(B)/libcupel.a

# The objects depend on a stamp of compiler and flags, the programs on a stamp of their sources: a
# change of either builds them again. A stamp is written only when its text changes.
FLAGS   := $(strip $(shell $(CC) --version 2>/dev/null | head -n 1) | $(CC) $(HOST_CFLAGS) $(HOST_LDFLAGS) $(HOST_LIBS) | \
           $(STATIC_CC) $(STATIC_CFLAGS) $(STATIC_LDFLAGS) | $(CALLER_CC) $(CALLER_CFLAGS) $(CALLER_LDFLAGS) | $(EMBED_CFLAGS) | $(ZYGOTE_CFLAGS) | $(BUILD_PYTHON))
SOURCES := $(sort $(HOST_SRC) $(BROKER_SRC) $(INIT_SRC) $(ZYGOTE_SRC) $(SEED_SRC) $(CALLER_SRC) $(SHELL_SRC) $(EMBED_SRC) $(wildcard tests/unit/*.c bench/warm/*.c bench/load/*.c dev/completion/*.c))
ifneq ($(file <$(B)/stamp/flags),$(FLAGS))
$(B)/stamp/flags: FORCE
endif
ifneq ($(file <$(B)/stamp/sources),$(SOURCES))
$(B)/stamp/sources: FORCE
endif
$(B)/stamp/flags: export STAMP = $(FLAGS)
$(B)/stamp/flags:
	@dev/check-tools '$(CC)' '$(STATIC_CC)' '$(PYTHON)'
	@mkdir -p $(@D) && printf '%s\n' "$$STAMP" >$@
$(B)/stamp/sources: export STAMP = $(SOURCES)
$(B)/stamp/sources:
	@mkdir -p $(@D) && printf '%s\n' "$$STAMP" >$@
FORCE:

# Only these install packages, each no more than its target needs.
deps: deps-test
deps-%:
	@dev/bootstrap $*

$(B)/cupel: $(LIB_OBJ) $(B)/host/src/cli/main.o $(B)/stamp/sources
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)

# libcupel: the client's side alone; all that it shows is cupel_*. Never sanitized: it is
# loaded by programs that are not.
embed_obj := $(patsubst %.c,$(B)/pic/%.o,$(EMBED_SRC))
$(B)/pic/%.o: %.c $(B)/stamp/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(EMBED_CFLAGS) -c -o $@ $<
$(B)/libcupel.so.0: $(embed_obj) $(B)/stamp/sources
	$(Q)$(CC) -shared -Wl,-soname,libcupel.so.0 -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs $(LDFLAGS) -o $@ $(filter %.o,$^) $(EMBED_LIBS)
$(B)/libcupel.so: $(B)/libcupel.so.0
	$(Q)ln -sf libcupel.so.0 $@
# One object, whose other names are local: a program's own buf_add is not ours.
$(B)/libcupel.a: $(embed_obj) $(B)/stamp/sources
	$(Q)$(LD) -r -o $(B)/pic/cupel.o $(filter %.o,$^)
	$(Q)objcopy --wildcard --keep-global-symbol='cupel_*' $(B)/pic/cupel.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(B)/pic/cupel.o

$(B)/broker: $(call static_obj,$(BROKER_SRC) $(STATIC_SAN)) $(B)/stamp/sources
	$(Q)$(STATIC_CC) $(STATIC_LDFLAGS) -o $@ $(filter %.o,$^)
$(B)/init: $(call static_obj,$(INIT_SRC) $(STATIC_SAN)) $(B)/stamp/sources
	$(Q)$(STATIC_CC) $(STATIC_LDFLAGS) -o $@ $(filter %.o,$^)

$(B)/tool: $(patsubst %.c,$(B)/caller/%.o,$(CALLER_SRC)) $(B)/stamp/sources
	$(Q)$(CALLER_CC) $(CALLER_LDFLAGS) -o $@ $(filter %.o,$^)
$(B)/shell: $(patsubst %.c,$(B)/caller/%.o,$(SHELL_SRC)) $(B)/stamp/sources
	$(Q)$(CALLER_CC) $(CALLER_LDFLAGS) -o $@ $(filter %.o,$^)
$(B)/caller/%.o: %.c $(B)/stamp/flags
	@mkdir -p $(@D)
	$(Q)$(CALLER_CC) $(CALLER_CFLAGS) -c -o $@ $<

# No constructor, nothing exported but zygote_*, every symbol bound at load: nothing is written later.
$(B)/zygote.so: $(patsubst %.c,$(B)/shared/%.o,$(ZYGOTE_SRC)) $(B)/stamp/sources
	$(Q)$(CC) -shared -Wl,--gc-sections,-z,relro,-z,now,-z,noexecstack,-z,defs -s -o $@ $(filter %.o,$^)
# Its names stand before libc's in every program.
$(B)/seed.so: $(patsubst %.c,$(B)/shared/%.o,$(SEED_SRC)) $(B)/stamp/sources
	$(Q)$(CC) -shared -Wl,--gc-sections,-z,relro,-z,now,-z,noexecstack,-z,defs -s -o $@ $(filter %.o,$^)
$(B)/shared/%.o: %.c $(B)/stamp/flags | $(B)/gen/box/wall/filter.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(ZYGOTE_CFLAGS) -c -o $@ $<

# Built-in files: the static programs and the drivers (.incbin has no depfile).
$(B)/host/src/box/host/programs.o: $(B)/broker $(B)/init
$(B)/host/src/image/extras.o: dev/image-packages
$(B)/host/src/agent/prompts.o: $(wildcard prompts/*)
$(B)/host/src/store/records/export_tools.o: src/store/records/standin.py
$(B)/host/src/serve/api/about.o: api/openapi.json
$(B)/host/src/mcp/definitions.o: api/mcp-tools.json
COMPILED := $(patsubst drivers/%.py,$(B)/gen/%.pyc,$(filter-out %/zygote.py %/prepare.py,$(wildcard drivers/*.py)))
$(B)/host/src/engine/talk/drivers.o: $(wildcard drivers/*) $(COMPILED) $(B)/zygote.so $(B)/seed.so $(B)/tool $(B)/shell
# The drivers compiled ahead: compiling one at every start would cost a third of a cold run.
$(B)/gen/%.pyc: drivers/%.py $(B)/stamp/flags
	@mkdir -p $(@D)
	$(Q)$(PYTHON) -X no_debug_ranges -c 'import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], \
	    "/usr/lib/cupel/$*.py", True, 0, py_compile.PycInvalidationMode.UNCHECKED_HASH)' $< $@

# The system call policy becomes BPF at build time; cupel itself has no libseccomp.
POLICIES := $(wildcard policy/*.policy)
$(B)/policyc: dev/policyc.c dev/policyc.h $(B)/stamp/flags
	@mkdir -p $(@D)
	$(Q)$(if $(CROSS),gcc,$(CC)) -std=gnu17 -O1 -g -D_GNU_SOURCE $(WARN) -o $@ $< -lseccomp
$(B)/gen/box/wall/filter.h: $(B)/policyc $(POLICIES)
	@mkdir -p $(@D)
	$(Q)$(B)/policyc policy $@.tmp $(ARCH) && mv $@.tmp $@

$(B)/host/%.o: %.c $(B)/stamp/flags | $(B)/gen/box/wall/filter.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -DBUILD_DIR='"$(B)"' -DBUILD_PYTHON='"$(BUILD_PYTHON)"' -c -o $@ $<
$(B)/static/%.o: %.c $(B)/stamp/flags | $(B)/gen/box/wall/filter.h
	@mkdir -p $(@D)
	$(Q)$(STATIC_CC) $(STATIC_CFLAGS) -c -o $@ $<

$(B)/unit: $(UNIT_OBJ) $(filter-out %/main.o,$(COMPLETION_OBJ)) $(LIB_OBJ) $(call host_obj,$(PORTER_SRC)) $(B)/stamp/sources
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)
unit: $(B)/unit
	$(B)/unit

# The stopwatch of `make bench`: a client of the engine, not installed.
$(B)/bench: $(call host_obj,$(wildcard bench/warm/*.c)) $(LIB_OBJ) $(B)/stamp/sources
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)
$(B)/host/bench/warm/peer.o: bench/ipykernel_peer.py

# The client of `make load`: it drives a server that bench/load.py started; not installed.
$(B)/load: $(call host_obj,$(wildcard bench/load/*.c) $(addprefix bench/warm/,engine.c figure.c host.c stats.c)) $(LIB_OBJ) $(B)/stamp/sources
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)

# A server for the MCP conformance suite, with its fixture tools; not installed.
$(B)/host/tests/mcp/fixture/main.o: tests/mcp/fixture/tools.json
$(B)/mcp-fixture: $(call host_obj,tests/mcp/fixture/main.c) $(LIB_OBJ) $(B)/stamp/sources
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)

# Redacts what it reads, for the tests; not installed.
$(B)/redact: $(call host_obj,tests/redact/main.c) $(LIB_OBJ) $(B)/stamp/sources
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)

# Makes images of folders, for the tests; not installed.
$(B)/image-maker: $(call host_obj,tests/images/main.c) $(LIB_OBJ) $(B)/stamp/sources
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)

# The writer of completions/, whose files are built into cupel. It is not installed.

$(B)/completion: $(COMPLETION_OBJ) $(LIB_OBJ) $(B)/stamp/sources
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)
$(B)/host/src/cli/list/cmd_completion.o: $(wildcard completions/*)
completions: $(B)/completion
	$(B)/completion bash >completions/cupel.bash
	$(B)/completion zsh >completions/_cupel
	$(B)/completion fish >completions/cupel.fish

# Each fuzz target twice: a replayer of its corpus for the tests, and libFuzzer.
$(B)/replay/%: $(B)/host/tests/fuzz/fuzz_%.o $(B)/host/tests/fuzz/replay.o $(LIB_OBJ) $(B)/stamp/sources
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $(filter %.o,$^) $(HOST_LIBS)
replay: $(FUZZ:%=$(B)/replay/%)
FUZZ_LIB := $(filter-out src/cli/main.c,$(HOST_SRC))
$(B)/fuzz/%: tests/fuzz/fuzz_%.c $(FUZZ_LIB) $(B)/stamp/flags $(B)/broker $(B)/init $(COMPILED) $(B)/zygote.so $(B)/seed.so $(B)/tool $(B)/shell | $(B)/gen/box/wall/filter.h
	@mkdir -p $(@D)
	$(Q)clang $(filter-out -MMD -MP -ftrivial-auto-var-init=zero,$(BASE)) -DBUILD_DIR='"$(B)"' -DBUILD_PYTHON='"$(BUILD_PYTHON)"' -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=all -o $@ tests/fuzz/fuzz_$*.c $(FUZZ_LIB) $(HOST_LIBS)
fuzz: deps-fuzz $(FUZZ:%=$(B)/fuzz/%)
	@for t in $(FUZZ); do mkdir -p $(B)/corpus/$$t; \
	    if $(B)/fuzz/$$t -max_total_time=$(SECONDS) -max_len=65536 -print_final_stats=1 \
	        $(B)/corpus/$$t tests/fuzz/corpus/$$t >$(B)/corpus/$$t.log 2>&1; then tail -n 12 $(B)/corpus/$$t.log; \
	    else tail -n 60 $(B)/corpus/$$t.log; exit 1; fi; done

check:
	dev/check-layers
	dev/check-size
	dev/check-style

# All that dev/image-packages lists: what people expect of a code interpreter, about 1 GB.
extras: deps-extras
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@$(B)/cupel images extras

run: deps-run
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@examples/agent.sh $(B)/cupel
	@examples/tour.sh $(B)/cupel

# The forms of the suite: tests/selection.py has the rules.
TESTED := all $(B)/unit $(B)/bench $(B)/load $(B)/completion $(B)/redact $(B)/image-maker $(B)/mcp-fixture replay
SUITE = CUPEL=$(abspath $(B)/cupel) BUILD=$(abspath $(B)) $(PYTHON) tests/suite.py
test: deps
	@$(MAKE) --no-print-directory -j2 $(TESTED)
	@$(MAKE) --no-print-directory check
	$(SUITE) short
test-full: deps-full
	@$(MAKE) --no-print-directory -j2 $(TESTED)
	$(SUITE) full

# Public programs; then notebooks beside a Jupyter kernel; then the SDKs, from the network into build/ecosystem: skipped,
# and said so, only where npm's registry is out of reach.
ecosystem: deps-ecosystem
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@CUPEL=$(abspath $(B)/cupel) $(PYTHON) -B tests/ecosystem/suites.py
	@CUPEL=$(abspath $(B)/cupel) $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/ecosystem/test_notebooks.py
	@CUPEL=$(abspath $(B)/cupel) tests/ecosystem/run $(abspath $(B))/ecosystem
	@$(MAKE) --no-print-directory -j2 $(B)/mcp-fixture
	@CUPEL_TESTS=long CUPEL=$(abspath $(B)/cupel) BUILD=$(abspath $(B)) $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/ecosystem/test_api_clients.py
	@CUPEL_TESTS=long CUPEL=$(abspath $(B)/cupel) BUILD=$(abspath $(B)) $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/ecosystem/test_mcp_clients.py tests/ecosystem/test_tool_servers.py

# The long forms: every fault, every mutation, all loads; then two thousand runs and more.
test-mutation: deps
	@tests/mutation/run.py
test-long: deps-long
	@$(MAKE) --no-print-directory -j2 $(TESTED)
	$(SUITE) long
	@tests/mutation/run.py
# Pure cgroup v2: Debian's cloud kernel in software emulation (slow; see tests/v2/boot.py).
test-v2: deps-v2
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@BUILD=$(abspath $(B)) CUPEL=$(abspath $(B)/cupel) $(PYTHON) tests/v2/boot.py
# Root file systems of other releases, by mmdebstrap; SUITES="trixie".
test-distros: deps-distros
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@BUILD=$(abspath $(B)) CUPEL=$(abspath $(B)/cupel) $(PYTHON) tests/distros.py
# Another processor: built by a cross compiler, its unit tests in qemu's user emulation.
AARCH64 := B=build/aarch64 CC=aarch64-linux-gnu-gcc
test-aarch64:
	@dpkg --print-foreign-architectures | grep -qx arm64 || \
	    { echo "first: sudo dpkg --add-architecture arm64 && sudo apt-get update" >&2; exit 1; }
	@dev/bootstrap aarch64
	@$(MAKE) --no-print-directory -j2 $(AARCH64) build/aarch64/cupel build/aarch64/unit
	@BUILD=build/aarch64 $(PYTHON) tests/aarch64.py
soak: deps-bench
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@CUPEL=$(abspath $(B)/cupel) $(PYTHON) bench/leak.py
	@CUPEL=$(abspath $(B)/cupel) $(PYTHON) bench/soak.py
	@CUPEL=$(abspath $(B)/cupel) $(PYTHON) bench/soak_sessions.py

SANITIZED := CC=clang WERROR=1 B=build/asan SAN=address,undefined
asan: deps-ci
	@$(MAKE) --no-print-directory test $(SANITIZED)

# gcc's analyzer on every source. Leaks are switched off: the zygote fills its heap on purpose, and gcc 12
# loses a size that passes through __builtin_mul_overflow. The sanitizer finds real ones. The ordinary build
# checks for truncation, at -O2.
ANALYZE := -fanalyzer -fanalyzer-verbosity=0 -Wno-analyzer-malloc-leak -Wno-format-truncation
$(B)/analyzed/%: %.c $(B)/stamp/flags | $(B)/gen/box/wall/filter.h
	@mkdir -p $(@D)
	$(Q)gcc $(filter-out -MMD -MP $(HARDEN),$(BASE)) -O1 -DBUILD_DIR='"$(B)"' -DBUILD_PYTHON='"$(BUILD_PYTHON)"' $(ANALYZE) -Werror -S -o /dev/null $< && touch $@
analyze: $(patsubst %.c,$(B)/analyzed/%,$(wildcard src/*/*.c src/*/*/*.c))

# CI, beside the tests: the analyzer; clang's warnings as errors; the sanitizers in the unit, contract and
# replay tests, and in broker, keeper, init and porter as real runs and sessions start them.
ci-build: deps-ci
	@dev/check-format
	@$(MAKE) --no-print-directory -j2 analyze
	@$(MAKE) --no-print-directory -j2 $(SANITIZED) all build/asan/unit replay
	CUPEL_TESTS=short CUPEL=$(abspath build/asan/cupel) BUILD=$(abspath build/asan) $(PYTHON) -m pytest -q -p no:cacheprovider \
	    tests/sanitize tests/test_unit.py tests/test_fuzz_replay.py \
	    $(addprefix tests/flow/test_,contract_schema.py run_python.py run_inputs.py collect.py session.py)

bench: deps-bench
	@$(MAKE) --no-print-directory -j2 $(B)/cupel $(B)/bench
	@CUPEL=$(abspath $(B)/cupel) BUILD=$(abspath $(B)) $(PYTHON) bench/run.py

# The HTTP service under load, as ratios to the engine's socket: build/load.jsonl.
load: deps-load
	@$(MAKE) --no-print-directory -j2 $(B)/cupel $(B)/load
	@CUPEL=$(abspath $(B)/cupel) BUILD=$(abspath $(B)) $(PYTHON) bench/load.py

# Records, their search and the cache, as ratios to a server without them: build/records.jsonl.
records: deps-load
	@$(MAKE) --no-print-directory -j2 $(B)/cupel $(B)/load
	@CUPEL=$(abspath $(B)/cupel) BUILD=$(abspath $(B)) $(PYTHON) bench/records.py

format: deps-format
	@dev/check-format --fix

# What is installed: FILE:PLACE below PREFIX; the templates get their paths and version on the way.
# Install builds nothing, so that `sudo make install` leaves no files of root in build/.
INSTALLED := $(B)/cupel:bin/cupel $(B)/libcupel.so.0:lib/libcupel.so.0 $(B)/libcupel.a:lib/libcupel.a \
    include/cupel.h:include/cupel.h dev/apparmor/cupel:share/cupel/apparmor/cupel \
    dev/containers/seccomp.json:share/cupel/seccomp.json \
    completions/cupel.bash:share/bash-completion/completions/cupel \
    completions/_cupel:share/zsh/site-functions/_cupel \
    completions/cupel.fish:share/fish/vendor_completions.d/cupel.fish \
    $(foreach f,$(wildcard man/*.1),$(f):share/man/man1/$(notdir $(f))) \
    $(foreach f,$(wildcard api/*.json),$(f):share/cupel/$(f)) \
    $(foreach f,LICENSE README.md SECURITY.md $(wildcard docs/*.* docs/*/*.*),$(f):share/doc/cupel/$(f))
TEMPLATES := dev/cupel.pc.in:lib/pkgconfig/cupel.pc dev/systemd/cupel.service:lib/systemd/system/cupel.service \
    dev/systemd/cupel-user.service:lib/systemd/user/cupel.service
INTO := $(DESTDIR)$(PREFIX)
LDCONFIG := if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi
install:
	@$(MAKE) --no-print-directory -q -o $(B)/stamp/flags all || { echo '$(B) is not up to date: run make first' >&2; exit 1; }
	@set -e; for pair in $(INSTALLED); do to='$(INTO)'/$${pair#*:}; case $$to in */bin/*|*.so.0) mode=755 ;; *) mode=644 ;; esac; \
	    install -D -m $$mode $${pair%:*} "$$to"; done
	@set -e; for pair in $(TEMPLATES); do \
	    sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@BINDIR@|$(PREFIX)/bin|' $${pair%:*} | \
	    install -D -m 644 /dev/stdin '$(INTO)'/$${pair#*:}; done
	@ln -sf libcupel.so.0 '$(INTO)/lib/libcupel.so'
	@$(LDCONFIG)
	@echo 'installed below $(INTO)'

uninstall:
	@for pair in $(INSTALLED) $(TEMPLATES) :lib/libcupel.so; do rm -f '$(INTO)'/$${pair#*:}; done
	@for f in share/doc/cupel share/cupel; do [ ! -d '$(INTO)'/$$f ] || find '$(INTO)'/$$f -depth -type d -empty -delete; done
	@$(LDCONFIG)

clean:
	rm -rf build

.SECONDARY: $(FUZZ:%=$(B)/host/tests/fuzz/fuzz_%.o)
-include $(shell find $(addprefix $(B)/,host static shared pic) -name '*.d' 2>/dev/null)
