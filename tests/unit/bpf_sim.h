/* A classic BPF machine for seccomp filters, so that a verdict can be tested
 * without a process that suffers it. Only what the kernel lets such filters do. */
#ifndef TESTS_UNIT_BPF_SIM_H
#define TESTS_UNIT_BPF_SIM_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __aarch64__
#define OWN_ARCH AUDIT_ARCH_AARCH64
#define OTHER_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_X86_64
#define OTHER_ARCH AUDIT_ARCH_AARCH64
#endif

/* Runs the filter on one call: 0 with its action, or -1 where the program leaves
 * its bounds, reads outside of the data or holds an instruction that is unknown. */
int bpf_sim_run(const struct sock_filter *filter, size_t len, const struct seccomp_data *data,
                uint32_t *out_action);

#endif
