/* A classic BPF machine; see bpf_sim.h. Jumps only go forward, so that it ends. */
#include "bpf_sim.h"

#include <stdbool.h>
#include <string.h>

struct machine {
    uint32_t a;
    size_t pc;
    const struct seccomp_data *data;
};

static int load(struct machine *machine, const struct sock_filter *at)
{
    if (at->k % 4 || at->k > sizeof *machine->data - 4)
        return -1;
    memcpy(&machine->a, (const char *)machine->data + at->k, 4);
    return 0;
}

static int mask(struct machine *machine, const struct sock_filter *at)
{
    machine->a &= at->k;
    return 0;
}

static int jump(struct machine *machine, const struct sock_filter *at)
{
    machine->pc += at->k;
    return 0;
}

static int branch(struct machine *machine, const struct sock_filter *at, bool holds)
{
    machine->pc += holds ? at->jt : at->jf;
    return 0;
}

static int if_equal(struct machine *machine, const struct sock_filter *at)
{
    return branch(machine, at, machine->a == at->k);
}

static int if_greater_or_equal(struct machine *machine, const struct sock_filter *at)
{
    return branch(machine, at, machine->a >= at->k);
}

static const struct {
    uint16_t code;
    int (*step)(struct machine *machine, const struct sock_filter *at);
} steps[] = {
    { BPF_LD | BPF_W | BPF_ABS, load },
    { BPF_ALU | BPF_AND | BPF_K, mask },
    { BPF_JMP | BPF_JA, jump },
    { BPF_JMP | BPF_JEQ | BPF_K, if_equal },
    { BPF_JMP | BPF_JGE | BPF_K, if_greater_or_equal },
};

int bpf_sim_run(const struct sock_filter *filter, size_t len, const struct seccomp_data *data,
                uint32_t *out_action)
{
    struct machine machine = { .data = data };
    while (machine.pc < len) {
        const struct sock_filter *at = &filter[machine.pc++];
        size_t i = 0;
        if (at->code == (BPF_RET | BPF_K)) {
            *out_action = at->k;
            return 0;
        }
        while (i < sizeof steps / sizeof steps[0] && steps[i].code != at->code)
            i++;
        if (i == sizeof steps / sizeof steps[0] || steps[i].step(&machine, at))
            return -1;
    }
    return -1;
}
