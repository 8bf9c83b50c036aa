# cupel: one file builds, runs, tests and installs everything, into build/.
#   make        build/cupel            make test    everything that proves it
#   make run    the main job, shown    make bench   figures, as ratios to peers
#   make asan   the tests, sanitized   make fuzz    libFuzzer on every parser (SECONDS=60)
#   make test-long, test-mutation, test-v2, soak: the long forms of the tests
#   make install | uninstall           PREFIX, DESTDIR
# Variants: V=1 shows commands; CC=clang; B=build/NAME SAN=address,undefined
VERSION := 0.1.0
CC      := gcc
B       := build
SAN     :=
PREFIX  := /usr/local
DESTDIR :=
SECONDS := 60
V       :=
Q       := $(if $(V),,@)
PYTHON  := /usr/bin/python3
BUILD_PYTHON := $(shell readlink $(PYTHON))

WARN   := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
          -Wvla -Walloca -Wswitch-enum -Wcast-qual -Wpointer-arith -Wundef
HARDEN := -fstack-protector-strong -fstack-clash-protection -fcf-protection
ifneq ($(findstring clang,$(CC)),clang)
HARDEN += -ftrivial-auto-var-init=zero
endif
BASE   := -std=gnu17 -O2 -g -D_GNU_SOURCE -DCUPEL_VERSION='"$(VERSION)"' -Isrc -I$(B)/gen \
          -include src/base/banned.h $(WARN) $(HARDEN) -MMD -MP
# The sanitizers and fortify do not mix, and neither goes into the static programs' variant.
ifeq ($(SAN),)
HOST_CFLAGS := $(BASE) -fPIE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
HOST_LDFLAGS := -pie -Wl,-z,relro,-z,now,-z,noexecstack
else
HOST_CFLAGS := $(BASE) -fPIE -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
HOST_LDFLAGS := -pie -fsanitize=$(SAN)
endif
# jansson and libcrypto's SHA-256 are linked statically: loading them costs more than using them.
HOST_LIBS := -Wl,-Bstatic -ljansson -lcrypto -Wl,-Bdynamic
# Broker and init: static, on musl, because they are copied and exec'd for every start.
STATIC_CC     := musl-gcc
STATIC_CFLAGS := $(filter-out -fcf-protection -O2,$(BASE)) -Os -fPIE -idirafter /usr/include \
                 -idirafter /usr/include/$(shell gcc -print-multiarch) -ffunction-sections -fdata-sections
STATIC_LDFLAGS := -static-pie -Wl,--gc-sections,-z,relro,-z,now,-z,noexecstack -s

# Both sides use these.
STATIC_BASE := src/base/io.c src/box/landlock.c
BROKER_SRC  := $(wildcard src/box/broker*.c) $(wildcard src/box/cgroup*.c) src/box/inside.c \
               src/box/mount.c src/box/enter.c src/box/drop.c src/box/porter.c src/box/posture.c \
               $(STATIC_BASE)
INIT_SRC    := src/box/init.c src/box/posture.c src/base/io.c
STATIC_ONLY := $(filter-out $(STATIC_BASE),$(BROKER_SRC) $(INIT_SRC))
HOST_SRC    := $(filter-out $(STATIC_ONLY),$(wildcard src/*/*.c))

host_obj   = $(patsubst %.c,$(B)/host/%.o,$(1))
static_obj = $(patsubst %.c,$(B)/static/%.o,$(1))
LIB_OBJ   := $(filter-out $(B)/host/src/cli/main.o,$(call host_obj,$(HOST_SRC)))
UNIT_OBJ  := $(call host_obj,$(wildcard tests/unit/*.c))
FUZZ      := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: all run test test-long test-mutation test-v2 soak bench asan fuzz install uninstall clean deps \
        check unit replay format
all: $(B)/cupel

deps:
	@dev/bootstrap

$(B)/cupel: $(LIB_OBJ) $(B)/host/src/cli/main.o
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $^ $(HOST_LIBS)

$(B)/broker: $(call static_obj,$(BROKER_SRC))
	$(Q)$(STATIC_CC) $(STATIC_LDFLAGS) -o $@ $^
$(B)/init: $(call static_obj,$(INIT_SRC))
	$(Q)$(STATIC_CC) $(STATIC_LDFLAGS) -o $@ $^

# Embedded files: the static programs and the drivers (.incbin has no depfile).
$(B)/host/src/box/embed.o: $(B)/broker $(B)/init
$(B)/host/src/engine/embed.o: $(wildcard drivers/*) $(B)/gen/driver.pyc
# The driver compiled ahead: compiling it at every start would cost a third of a cold run.
$(B)/gen/driver.pyc: drivers/driver.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) -c 'import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], \
	    "/usr/lib/cupel/driver.py", True, 2, py_compile.PycInvalidationMode.UNCHECKED_HASH)' $< $@

# The system call policy becomes BPF at build time; cupel itself has no libseccomp.
POLICIES := $(wildcard policy/*.policy)
$(B)/policyc: dev/policyc.c dev/policyc.h
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O1 -g -D_GNU_SOURCE $(WARN) -o $@ $< -lseccomp
$(B)/gen/box/filter.h: $(B)/policyc $(POLICIES)
	@mkdir -p $(@D)
	$(Q)$(B)/policyc policy $@.tmp && mv $@.tmp $@

$(B)/host/%.o: %.c | $(B)/gen/box/filter.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -DBUILD_DIR='"$(B)"' -DBUILD_PYTHON='"$(BUILD_PYTHON)"' -c -o $@ $<
$(B)/static/%.o: %.c | $(B)/gen/box/filter.h
	@mkdir -p $(@D)
	$(Q)$(STATIC_CC) $(STATIC_CFLAGS) -c -o $@ $<

$(B)/unit: $(UNIT_OBJ) $(LIB_OBJ)
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $^ $(HOST_LIBS)
unit: $(B)/unit
	$(B)/unit

# Each fuzz target twice: a replayer of its corpus for the tests, and libFuzzer.
$(B)/replay/%: $(B)/host/tests/fuzz/fuzz_%.o $(B)/host/tests/fuzz/replay.o $(LIB_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_LDFLAGS) -o $@ $^ $(HOST_LIBS)
replay: $(FUZZ:%=$(B)/replay/%)
FUZZ_LIB := $(filter-out src/cli/main.c,$(HOST_SRC))
$(B)/fuzz/%: tests/fuzz/fuzz_%.c $(FUZZ_LIB) $(B)/broker $(B)/init $(B)/gen/driver.pyc | $(B)/gen/box/filter.h
	@mkdir -p $(@D)
	$(Q)clang $(filter-out -MMD -MP -ftrivial-auto-var-init=zero,$(BASE)) -DBUILD_DIR='"$(B)"' -DBUILD_PYTHON='"$(BUILD_PYTHON)"' -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=all -o $@ tests/fuzz/fuzz_$*.c $(FUZZ_LIB) $(HOST_LIBS)
fuzz: deps $(FUZZ:%=$(B)/fuzz/%)
	@for t in $(FUZZ); do mkdir -p $(B)/corpus/$$t; \
	    $(B)/fuzz/$$t -max_total_time=$(SECONDS) -max_len=65536 -print_final_stats=1 \
	        $(B)/corpus/$$t tests/fuzz/corpus/$$t 2>&1 | tail -12 || exit 1; done

check:
	dev/check-layers
	dev/check-size
	dev/check-style

run: deps
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@examples/tour.sh $(B)/cupel

test: deps
	@$(MAKE) --no-print-directory -j2 $(B)/cupel $(B)/unit replay
	@$(MAKE) --no-print-directory check
	CUPEL=$(abspath $(B)/cupel) BUILD=$(abspath $(B)) $(PYTHON) -m pytest -q -p no:cacheprovider tests

# The long forms: every fault, every mutation, all loads; then two thousand runs and more.
test-mutation: deps
	@tests/mutation/run.py
test-long: deps
	@dev/bootstrap long
	@$(MAKE) --no-print-directory -j2 $(B)/cupel $(B)/unit replay
	CUPEL_LONG=1 CUPEL=$(abspath $(B)/cupel) BUILD=$(abspath $(B)) $(PYTHON) -m pytest -q -p no:cacheprovider tests
	@tests/mutation/run.py
# Pure cgroup v2: Debian's cloud kernel in software emulation (slow; see tests/v2/boot.py).
test-v2: deps
	@dev/bootstrap v2
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@BUILD=$(abspath $(B)) CUPEL=$(abspath $(B)/cupel) $(PYTHON) tests/v2/boot.py
soak: deps
	@dev/bootstrap bench
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@CUPEL=$(abspath $(B)/cupel) $(PYTHON) bench/leak.py

asan: deps
	@$(MAKE) --no-print-directory test B=build/asan SAN=address,undefined

bench: deps
	@dev/bootstrap bench
	@$(MAKE) --no-print-directory -j2 $(B)/cupel
	@CUPEL=$(abspath $(B)/cupel) $(PYTHON) bench/run.py

format:
	clang-format-14 -i $(wildcard src/*/*.[ch] tests/*/*.[ch] dev/*.c)

install: all
	install -D -m 0755 $(B)/cupel $(DESTDIR)$(PREFIX)/bin/cupel
	install -D -m 0644 dev/apparmor/cupel $(DESTDIR)$(PREFIX)/share/cupel/apparmor/cupel
	for p in man/*.1; do install -D -m 0644 $$p $(DESTDIR)$(PREFIX)/share/man/man1/$${p##*/} || exit 1; done
	install -D -m 0644 completions/cupel.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/cupel
	install -D -m 0644 completions/_cupel $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_cupel
	install -D -m 0644 completions/cupel.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/cupel.fish
	install -D -m 0644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/cupel/LICENSE
	install -D -m 0644 README.md $(DESTDIR)$(PREFIX)/share/doc/cupel/README.md

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/cupel
	rm -f $(patsubst man/%,$(DESTDIR)$(PREFIX)/share/man/man1/%,$(wildcard man/*.1))
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/cupel
	rm -f $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_cupel
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/cupel.fish
	rm -rf $(DESTDIR)$(PREFIX)/share/cupel $(DESTDIR)$(PREFIX)/share/doc/cupel

clean:
	rm -rf build

.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
