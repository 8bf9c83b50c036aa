/* The filters of all policies, run on single calls and on tables of calls. */
#include "filter_check.h"

#include "base/attr.h"
#include "box/wall/filter.h"
#include "check.h"

const struct filter filters[FILTERS] = {
    { "occupant", box_filter_occupant, BOX_FILTER_OCCUPANT_LEN, QUIET(ENOSYS) },
    { "init", box_filter_init, BOX_FILTER_INIT_LEN, KILL },
    { "porter", box_filter_porter, BOX_FILTER_PORTER_LEN, KILL },
    { "session", box_filter_session, BOX_FILTER_SESSION_LEN, QUIET(ENOSYS) },
    { "keeper", box_filter_keeper, BOX_FILTER_KEEPER_LEN, KILL },
    { "curator", box_filter_curator, BOX_FILTER_CURATOR_LEN, KILL },
    { "session_one_uid", box_filter_session_one_uid, BOX_FILTER_SESSION_ONE_UID_LEN,
      QUIET(ENOSYS) },
    { "warden", box_filter_warden, BOX_FILTER_WARDEN_LEN, KILL },
    { "uncounted", box_filter_uncounted, BOX_FILTER_UNCOUNTED_LEN, ALLOW },
    { "service", box_filter_service, BOX_FILTER_SERVICE_LEN, QUIET(ENOSYS) },
    { "through", box_filter_through, BOX_FILTER_THROUGH_LEN, ALLOW },
};
uint32_t filter_run(const struct filter *filter, struct seccomp_data data)
{
    uint32_t action = 0;
    if (bpf_sim_run(filter->at, filter->len, &data, &action))
        check_failed(__FILE__, __LINE__, "%s: no verdict for %d", filter->name, data.nr);
    return action;
}

struct seccomp_data filter_call(int nr)
{
    return (struct seccomp_data){ .nr = nr, .arch = OWN_ARCH };
}

const char *filter_call_name(int nr)
{
    for (size_t i = 0; i < array_len(box_filter_names); i++)
        if (box_filter_names[i].nr == nr)
            return box_filter_names[i].name;
    return NULL;
}

int filter_call_number(const char *name)
{
    for (size_t i = 0; i < array_len(box_filter_names); i++)
        if (check_same_text(box_filter_names[i].name, name))
            return box_filter_names[i].nr;
    if (OWN_ARCH == AUDIT_ARCH_X86_64)
        check_failed(__FILE__, __LINE__, "no number for '%s'", name);
    return -1;
}

void filter_check_names(const struct filter *filter, const char *const *names, uint32_t want)
{
    for (; *names; names++) {
        struct seccomp_data data = filter_call(filter_call_number(*names));
        if (data.nr < 0)
            continue;
        for (int fill = 0; fill < 2; fill++) {
            for (int i = 0; i < 6; i++)
                data.args[i] = fill ? 0x5a5a5a5a5a5a5a5aull + (unsigned)i : 0;
            uint32_t got = filter_run(filter, data);
            if (got != want)
                check_failed(__FILE__, __LINE__, "%s: %s is 0x%08x, not 0x%08x", filter->name,
                             *names, got, want);
        }
    }
}

void filter_check_cases(const struct filter *filter, const struct filter_case *at, size_t count)
{
    for (; count > 0; count--, at++) {
        struct seccomp_data data = filter_call(at->nr);
        data.args[0] = at->a0;
        data.args[1] = at->a1;
        data.args[2] = at->a2;
        uint32_t got = filter_run(filter, data);
        if (got != at->want)
            check_failed(__FILE__, __LINE__, "%s(0x%llx, 0x%llx) is 0x%08x, not 0x%08x",
                         filter_call_name(at->nr), (long long)at->a0, (long long)at->a1, got,
                         at->want);
    }
}

const struct filter *filter_named(const char *name)
{
    for (size_t i = 0; i < FILTERS; i++)
        if (check_same_text(filters[i].name, name))
            return &filters[i];
    check_failed(__FILE__, __LINE__, "policy '%s' is not tested", name);
}
