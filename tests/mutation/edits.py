"""The edits that disable one control each, for tests of the tests: a mutant is the tree with the edits of
one row of table.py. The sources themselves know nothing of it.

An edit is (file, old, new): `old` stands in the file exactly once (tests/mutation/test_edits.py); its white
space stands for any white space."""
import re


def never(file, condition):
    """The condition that an `if` begins with does not count."""
    return file, f"if ({condition}", f"if (0 && {condition}"


def applied(text, old, new):
    """The text with one edit; a ValueError where `old` does not stand there once."""
    places = [*re.finditer(r"\s+".join(map(re.escape, re.split(r"\s+", old))), text)]
    if len(places) != 1:
        raise ValueError(f"stands there {len(places)} times: {old!r}")
    return text[:places[0].start()] + new + text[places[0].end():]


EDITS = {
    # init and occupant start whatever they read back of themselves
    "POSTURE": [
        never("src/box/inside/init.c", "(report.walls & INIT_REQUIRED) !="),
        never("src/box/inside/enter.c", "(report.walls & start->required) !="),
    ],
    # the service reads clients' bytes without a filter, and can be read itself
    "SERVICE": [never("src/serve/serve.c", "box_confine_service() < 0")],
    "SERVICE_DUMPABLE": [("src/box/wall/confine.c",
                          "if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS,",
                          "if (prctl(PR_SET_NO_NEW_PRIVS,")],
    # only the thread that serves is confined
    "SERVICE_THREADS": [("src/box/wall/confine.c", "SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW",
                         "SECCOMP_FILTER_FLAG_SPEC_ALLOW")],
    # ---- namespaces ----
    # the box lives in the broker's user namespace
    "USER_NS": [
        ("src/box/broker/broker_setup.c",
         "    umask(022);",
         "    prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);\n"
         "    umask(022);"),
        never("src/box/broker/broker_box.c", "write_maps("),
        ("src/box/broker/broker_box.c", "CLONE_NEWUSER | CLONE_NEWNS", "CLONE_NEWNS"),
        ("src/box/inside/enter.c", "{ POSTURE_NS_USER, POSTURE_NS_MNT", "{ POSTURE_NS_MNT"),
    ],
    # the box lives in the broker's pid namespace, and sees its /proc
    "PID_NS": [
        ("src/box/broker/broker_box.c", "CLONE_NEWPID | ", ""),
        ("src/box/inside/mount.c",
         'if (mount("proc", "proc", "proc", SAFE | MS_NOEXEC, NULL) < 0)',
         'if (mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) < 0)'),
        ("src/box/inside/mount.c", "if (system_bind() < 0 || hide_kernel() < 0)",
         "if (0 && (system_bind() < 0 || hide_kernel() < 0))"),
        never("src/box/zygote/zygote.c", "setns(fds[POSTURE_NS_PID]"),
    ],
    # the box lives in the host's network
    "NET_NS": [
        ("src/box/broker/broker_box.c", "CLONE_NEWPID | CLONE_NEWNET", "CLONE_NEWPID"),
        ("src/box/inside/enter.c", "POSTURE_NS_MNT, POSTURE_NS_NET", "POSTURE_NS_MNT"),
        never("src/box/inside/inside.c", "loopback_up()"),
    ],
    "IPC_NS": [
        ("src/box/broker/broker_box.c", "CLONE_NEWIPC | ", ""),
        ("src/box/inside/enter.c", "POSTURE_NS_NET, POSTURE_NS_IPC", "POSTURE_NS_NET"),
    ],
    "UTS_NS": [
        ("src/box/broker/broker_box.c", "CLONE_NEWIPC | CLONE_NEWUTS", "CLONE_NEWIPC"),
        ("src/box/inside/enter.c", "POSTURE_NS_UTS, POSTURE_NS_CGROUP }", "POSTURE_NS_CGROUP }"),
        never("src/box/inside/inside.c", "sethostname("),
    ],
    "CGROUP_NS": [
        ("src/box/inside/enter.c", "POSTURE_NS_UTS, POSTURE_NS_CGROUP }", "POSTURE_NS_UTS }"),
        ("src/box/inside/inside.c", "return unshare(CLONE_NEWCGROUP);", "return 0;"),
    ],
    # user.max_*_namespaces stay as they are
    "NEW_NAMESPACES": [never("src/box/inside/inside.c", "forbid_namespaces()")],
    # the box keeps the host's name
    "HOST_NAME": [never("src/box/inside/inside.c", "sethostname(")],
    # no loopback
    "LOOPBACK": [never("src/box/inside/inside.c", "loopback_up()")],
    # ---- power ----
    # effective, permitted and inheritable sets are kept
    "CAPABILITIES": [
        ("src/box/wall/drop.c",
         "return (int)syscall(SYS_capset, &head, none);",
         "return 0 && (int)syscall(SYS_capset, &head, none);"),
    ],
    # the bounding set is kept
    "BOUNDING": [
        ("src/box/wall/drop.c",
         "for (int cap = 0; cap < 64; cap++) {\n"
         "        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {",
         "for (int cap = 0; cap < 0; cap++) {\n"
         "        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {"),
    ],
    "SECUREBITS": [never("src/box/wall/drop.c", "prctl(PR_SET_SECUREBITS, locked, 0, 0, 0) < 0)")],
    "NO_NEW_PRIVS": [
        ("src/box/wall/drop.c",
         "    if (drop_capabilities() < 0)\n"
         "        return -1;\n"
         "    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);",
         "    return drop_capabilities();"),
    ],
    # supplementary groups are kept
    "GROUPS": [
        ("src/box/inside/inside.c", "plan->two_ids && syscall(SYS_setgroups", "0 && syscall(SYS_setgroups"),
        never("src/box/wall/drop.c", "groups && syscall"),
        ("src/box/host/bootstrap.c",
         "(seed->range && syscall(SYS_setgroups",
         "(0 && syscall(SYS_setgroups"),
    ],
    # init has the occupant's uid
    "INIT_UID": [
        ("src/box/inside/inside.c",
         "    struct drop_rlimits limits = { .open_files = 16, .piped_core = plan->piped_core };\n"
         "    uid_t uid = plan->two_ids ? BOX_ID_INIT : BOX_ID_OCCUPANT;",
         "    struct drop_rlimits limits = { .open_files = 16, .piped_core = plan->piped_core };\n"
         "    uid_t uid = BOX_ID_OCCUPANT;"),
    ],
    # all instances share one range of uids
    "PRIVATE_UID": [
        ("src/box/host/bootstrap.c",
         "BOOT_UID_BASE + (uid_t)slot->number * BOOT_UID_RANGE",
         "BOOT_UID_BASE + 0 * (uid_t)slot->number"),
    ],
    # the occupant's filter allows everything
    "SECCOMP": [
        ("src/box/inside/enter.c",
         "    const unsigned base = SECCOMP_FILTER_FLAG_NEW_LISTENER",
         "    static const struct sock_filter everything[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };\n"
         "    filter = seccomp_program(everything);\n"
         "    const unsigned base = SECCOMP_FILTER_FLAG_NEW_LISTENER"),
    ],
    "SECCOMP_INIT": [
        never("src/box/inside/init.c", "seccomp_raise(box_filter_init"),
    ],
    "SECCOMP_PORTER": [
        ("src/box/files/porter.c",
         "return resident ? seccomp_raise(box_filter_curator, 0) : seccomp_raise(box_filter_porter, 0);",
         "return resident && !box_filter_curator[0].code && !box_filter_porter[0].code;"),
    ],
    # memory that is not mapped can be had without a cgroup
    "UNCOUNTED": [
        ("src/box/inside/enter.c",
         "const bool uncounted = start->data_bytes > 0;",
         "const bool uncounted = false;"),
    ],
    # the supervisor lets reported calls through
    "NOTIFY_ANSWER": [
        ("src/engine/talk/notify.c",
         "answer.error = -box_call_errno(call.data.nr);",
         "answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;"),
    ],
    # the supervisor answers without end
    "NOTIFY_CAP": [
        ("src/engine/talk/notify.c",
         "if (++notify->reports >= NOTIFY_MAX)",
         "if (++notify->reports >= NOTIFY_MAX && 0)"),
    ],
    "LANDLOCK": [never("src/box/inside/enter.c", "box_landlock_restrict(FD_RULES)")],
    # the door keeps root
    "DOOR": [
        ("src/box/host/bootstrap.c",
         "    if (box_is_root() && (setgroups(0, NULL) < 0",
         "    if (err)\n"
         "        return 0;\n"
         "    if (box_is_root() && (setgroups(0, NULL) < 0"),
    ],
    # ---- inherited state ----
    # the occupant keeps what the broker has open
    "FDS": [
        ("src/box/inside/enter.c", "return io_close_from(FD_EXEC + 1);", 'return open("/", O_PATH);'),
    ],
    "INIT_FDS": [("src/box/inside/inside.c", "return io_close_from(FD_INIT + 1);", "return 0;")],
    "PORTER_FDS": [
        ("src/box/inside/enter.c",
         " ||\n"
         "        io_close_from(FD_REPORT + 1) < 0)",
         ")"),
    ],
    # the broker keeps what the caller has open
    "BROKER_FDS": [never("src/box/host/bootstrap.c", "io_close_from(kept) < 0")],
    # the occupant gets the caller's environment too
    "ENVIRONMENT": [
        ("src/engine/talk/plan.c",
         "        add_string(block, &head->envc, str_of(own));\n",
         "        add_string(block, &head->envc, str_of(own));\n"
         "    for (char **entry = environ; *entry; entry++)\n"
         "        add_default(block, head, request, *entry);\n"),
    ],
    # init and the broker get the caller's environment
    "INIT_ENVIRONMENT": [
        ("src/box/inside/inside.c",
         "argv, no_env, AT_EMPTY_PATH",
         "argv, no_env[0] ? no_env : environ, AT_EMPTY_PATH"),
        ("src/box/host/bootstrap.c",
         "argv, no_env, AT_EMPTY_PATH",
         "argv, no_env[0] ? no_env : environ, AT_EMPTY_PATH"),
    ],
    "INIT_DUMPABLE": [("src/box/inside/init.c", "if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || signal", "if (signal")],
    "BROKER_DUMPABLE": [("src/box/broker/broker_setup.c", " || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)", ")")],
    # dispositions and mask are inherited
    "SIGNALS": [
        ("src/box/wall/drop.c", "for (int sig = 1; sig < 65;", "for (int sig = 1; sig < 1;"),
        never("src/box/wall/drop.c", "sigprocmask(SIG_SETMASK"),
    ],
    "UMASK": [("src/box/wall/drop.c", "    umask(022);\n", "")],
    "SETSID": [("src/box/wall/drop.c", "return setsid() < 0", "return 0 && setsid() < 0")],
    "OOM_SCORE": [
        ("src/box/inside/enter.c",
         'if (io_write_text(AT_FDCWD, "/proc/self/oom_score_adj", "500") < 0 ||',
         "if ("),
    ],
    # ---- file system ----
    # mounts keep the propagation they come with
    "PROPAGATION": [
        never("src/box/inside/mount.c", 'mount(NULL, "/", NULL, MS_REC | MS_PRIVATE'),
        never("src/box/host/bootstrap.c", 'mount(NULL, "/", NULL, MS_REC | MS_PRIVATE'),
    ],
    "READ_ONLY_ROOT": [never("src/box/inside/mount.c", 'mount(NULL, ".", NULL, MS_REMOUNT')],
    # programs are the host's own inodes
    "OVERLAY": [
        ("src/box/inside/mount.c",
         '    if (mount("srv", "usr/local"',
         '    if (mount("/usr/bin", "usr/bin", NULL, MS_BIND | MS_REC, NULL) < 0 ||\n'
         '        mount("/usr/lib/python3.11", "usr/lib/python3.11", NULL, MS_BIND | MS_REC, NULL) < 0)\n'
         "        return BOX_STEP_IMAGE;\n"
         '    if (mount("srv", "usr/local"'),
    ],
    # the host's /usr/local is seen
    "USR_LOCAL": [never("src/box/inside/mount.c", 'mount("srv", "usr/local"')],
    "NOSUID": [
        ("src/box/inside/mount.c", "#define SAFE (MS_NOSUID | MS_NODEV)", "#define SAFE MS_NODEV"),
        ("src/box/inside/mount_usr.c", "#define SAFE (MS_NOSUID | MS_NODEV)", "#define SAFE MS_NODEV"),
    ],
    "NODEV": [
        ("src/box/inside/mount.c", "#define SAFE (MS_NOSUID | MS_NODEV)", "#define SAFE MS_NOSUID"),
        ("src/box/inside/mount_usr.c", "#define SAFE (MS_NOSUID | MS_NODEV)", "#define SAFE MS_NOSUID"),
    ],
    # a device of the host too many
    "DEVICES": [("src/box/inside/mount.c", '{ "/dev/zero", 1 }', '{ "/dev/kmsg", 1 }')],
    # a box can take all terminals of the host
    "TERMINALS": [("src/box/inside/mount.c", '#define PTYS_MAX "16"', '#define PTYS_MAX "4096"')],
    # the host's own files of the same names
    "SYSTEM_FILES": [
        ("src/box/inside/system.c",
         "if (mount(files[i].path, files[i].path + 1, NULL, MS_BIND, NULL) < 0)",
         'char own[64];\n'
         '        snprintf(own, sizeof own, "/%s", files[i].path + 1);\n'
         "        if (mount(own, own + 1, NULL, MS_BIND, NULL) < 0)"),
    ],
    "PROC_SUBSET": [("src/box/inside/mount.c", '"subset=pid,hidepid=invisible"', '"hidepid=invisible"')],
    "HIDEPID": [("src/box/inside/mount.c", '"subset=pid,hidepid=invisible"', '"subset=pid"')],
    # chroot in place of pivot_root
    "PIVOT": [
        ("src/box/inside/mount.c",
         'if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||',
         'if (chroot(".") < 0 ||'),
        ("src/box/inside/enter.c",
         '    return chdir("/workspace");',
         '    return chroot("/tmp") < 0 ? -1 : chdir("/workspace"); /* mount_root has put it there */'),
    ],
    # the old root stays mounted
    "OLD_ROOT": [("src/box/inside/mount.c", 'umount2(".", MNT_DETACH) < 0 || ', "")],
    "DISK_BYTES": [("src/box/inside/mount.c", "(long long)plan->disk_bytes", "1LL << 30")],
    "DISK_INODES": [("src/box/inside/mount.c", "(long long)plan->disk_inodes", "1LL << 20")],
    # ---- limits ----
    # the occupant stays out of the box's cgroups
    "JOIN": [
        ("src/box/inside/enter.c",
         "with_cgroup && i < plan->join_count",
         "0 && with_cgroup && i < plan->join_count"),
    ],
    "MEMORY": [
        ("src/box/broker/broker_box.c",
         "    const struct cgroup_limits limits = {\n"
         "        .memory_bytes = call->create.memory_bytes",
         "    const struct cgroup_limits limits = {\n"
         "        .memory_bytes = INT64_C(8) << 30"),
    ],
    "PIDS": [
        ("src/box/broker/broker_box.c",
         "        .pids = call->create.pids,\n"
         "        .cpu_thousandths",
         "        .pids = 30000,\n"
         "        .cpu_thousandths"),
    ],
    "CPUS": [
        ("src/box/broker/broker_box.c",
         ".cpu_thousandths = call->create.cpu_thousandths",
         ".cpu_thousandths = 64000"),
    ],
    "SOCKET_BUFFERS": [
        ("src/box/broker/broker_box.c",
         "    return cgroup_open(&broker->bases, id, &limits, group);",
         "    if (cgroup_open(&broker->bases, id, &limits, group) < 0)\n"
         "        return -1;\n"
         '    own_fd fd = openat(group->dir[BOX_CG_MEMORY], "memory.kmem.tcp.limit_in_bytes",\n'
         "                       O_WRONLY | O_CLOEXEC);\n"
         '    return fd < 0 ? -1 : io_write_all(fd, "-1", 2);'),
    ],
    # the kernel kills one process and the rest goes on
    "OOM_KILLS_ALL": [
        ("src/box/broker/broker_news.c",
         "        box->oom_seen = true;\n"
         "        broker_sweep_or_kill(broker, id);",
         "        box->oom_seen = true;"),
    ],
    # a box is killed within its limits
    "LIFT": [("src/box/broker/broker_box.c", "    if (lift)\n", "    if (0 && lift)\n")],
    "WALL_TIMER": [
        ("src/engine/run/watch.c", "run->deadline_ns + late_ns", "LOOP_NEVER"),
        never("src/engine/run/watch.c", "now >= run->deadline_ns) {"),
    ],
    "CPU_TIMER": [
        ("src/engine/run/watch.c",
         "bool counts = run->counter[BOX_COUNTER_CPU] >= 0;",
         "bool counts = false;"),
        ("src/engine/run/watch.c",
         "if (run->stats.cpu_us / 1000 >= run_limit(run, LIMITS_CPU))\n"
         "        run_kill",
         "if (0 && run->stats.cpu_us / 1000 >= run_limit(run, LIMITS_CPU))\n"
         "        run_kill"),
    ],
    # the broker ends no box by itself when its time is over
    "BROKER_DUE": [
        ("src/box/broker/broker_due.c",
         "        if (!wall)\n"
         "            continue;",
         "        if (!wall || i < BOX_MAX)\n"
         "            continue;"),
    ],
    # the RLIMIT_ of the same name is not set
    "LIMIT_CORE": [("src/box/wall/drop.c", "        { RLIMIT_CORE, limits->piped_core ? 1 : 0 },\n", "")],
    "LIMIT_CPU": [("src/box/wall/drop.c", "        { RLIMIT_CPU, limits->cpu_s ? limits->cpu_s : none },\n", "")],
    "LIMIT_NOFILE": [("src/box/wall/drop.c", "        { RLIMIT_NOFILE, limits->open_files },\n", "")],
    "LIMIT_NPROC": [
        ("src/box/wall/drop.c",
         "        { RLIMIT_NPROC, limits->processes ? limits->processes : none },\n",
         ""),
    ],
    "LIMIT_FSIZE": [
        ("src/box/wall/drop.c",
         "        { RLIMIT_FSIZE, limits->file_bytes ? limits->file_bytes : none },\n",
         ""),
    ],
    "LIMIT_DATA": [
        ("src/box/wall/drop.c",
         "        { RLIMIT_DATA, limits->data_bytes ? limits->data_bytes : none },\n",
         ""),
    ],
    "LIMIT_STACK": [("src/box/wall/drop.c", "        { RLIMIT_STACK, 8u << 20 },\n", "")],
    "LIMIT_MEMLOCK": [("src/box/wall/drop.c", "        { RLIMIT_MEMLOCK, 64u << 10 },\n", "")],
    "LIMIT_MSGQUEUE": [("src/box/wall/drop.c", "        { RLIMIT_MSGQUEUE, 0 },\n", "")],
    "LIMIT_RTPRIO": [("src/box/wall/drop.c", "        { RLIMIT_RTPRIO, 0 },\n", "")],
    "LIMIT_NICE": [("src/box/wall/drop.c", "        { RLIMIT_NICE, 0 },\n", "")],
    "LIMIT_SIGPENDING": [("src/box/wall/drop.c", "        { RLIMIT_SIGPENDING, 1024 },\n", "")],
    # ---- what comes out ----
    # the result holds all that was printed
    "OUTPUT_CAP": [
        ("src/engine/run/outputs.c",
         "size_t cap = (size_t)run_limit(run, is_err ? LIMITS_STDERR : LIMITS_STDOUT);",
         "size_t cap = SIZE_MAX / 8;"),
    ],
    # the clock of seeded runs is in every box
    "SEED_EVERYWHERE": [("src/engine/talk/plan.c", "if (request->has_seed && add_seed(", "if (add_seed(")],
    # a seeded run takes a process that was started before, which has neither seed nor clock
    "SEED_LATE": [never("src/engine/talk/plan_fit.c", "request->has_seed)")],
    # a cell has its own seed
    "SEED_OF_CELLS": [("src/contract/request_session.c", "check_seed(cell, session, err) < 0 ||", "")],
    # output over the cap does not end the run
    "OUTPUT_STOP": [never("src/engine/run/outputs.c", "stream->truncated && run->request->on_output_limit")],
    "ARTIFACT_BYTES": [
        ("src/engine/talk/files_out.c",
         "return (uint64_t)most - job->bytes_taken;",
         "return most ? UINT64_MAX : 0;"),
    ],
    "ARTIFACT_FILES": [
        ("src/engine/talk/files_out.c",
         "return job->files_taken >= most;",
         "return 0 && job->files_taken >= most;"),
    ],
    # the porter opens paths as anyone does
    "PORTER_RESOLVE": [
        ("src/box/files/tree.c",
         "    return (int)syscall(SYS_openat2,",
         "    how.flags &= ~(uint64_t)O_NOFOLLOW;\n"
         "    how.resolve = 0;\n"
         "    return (int)syscall(SYS_openat2,"),
    ],
    # the porter follows links to tell what is a file
    "PORTER_TYPES": [
        ("src/box/files/porter.c",
         "if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)",
         "if (fstatat(dir, name, &st, 0) < 0)"),
    ],
    # the engine asks for things that are no files
    "REGULAR_LIST": [never("src/engine/talk/files_out.c", "entry->type != BOX_ENTRY_FILE) {")],
    # the porter reads things that are no files
    "REGULAR_OPEN": [
        ("src/box/files/porter.c",
         "else if (!S_ISREG(st.st_mode))\n"
         "        word.error = EINVAL",
         "else if (0 && !S_ISREG(st.st_mode))\n"
         "        word.error = EINVAL"),
    ],
    # a line of the driver has no cap
    "DRIVER_LINE": [
        ("src/engine/talk/driver.c",
         "    if (driver->total > DRIVER_TOTAL_MAX)",
         "    driver->line.max = SIZE_MAX / 4;\n"
         "    if (driver->total > DRIVER_TOTAL_MAX)"),
    ],
    "DRIVER_TOTAL": [
        ("src/engine/talk/driver_results.c",
         "return driver->results_bytes + driver->line.len >",
         "return 0 && driver->results_bytes + driver->line.len >"),
        never("src/engine/talk/driver.c", "driver->total > DRIVER_TOTAL_MAX)"),
    ],
    "DRIVER_RESULTS": [("src/engine/talk/driver_results.c", "if (many || full", "if ((0 && many) || full")],
    "DRIVER_TEXT": [("src/engine/talk/driver.c", "    text.len = str_cut_utf8(text, DRIVER_TEXT_MAX);\n", "")],
    # a display id or metadata may be anything
    "DRIVER_ID": [("src/engine/talk/driver_results.c", "json_string_length(id) > DRIVER_DISPLAY_ID_MAX)) ||",
                   "(0 && json_string_length(id) > DRIVER_DISPLAY_ID_MAX))) ||")],
    # members of a bundle may be anything
    "DRIVER_FORM": [never("src/engine/talk/driver_results.c", "!is_member(key, value))")],
    # output drives the caller's terminal
    "CONTROL_CHARACTERS": [never("src/cli/term/visible.c", "point >= unsafe[i].first")],
    # ---- what is kept ready ----
    # every fork has the same random states
    "ZYGOTE_RANDOM": [("src/box/zygote/zygote.c", "i < setup->fresh_count", "i < 0 * setup->fresh_count")],
    # the zygote has no filter
    "ZYGOTE_SECCOMP": [
        ("src/box/zygote/zygote.c",
         "return seccomp_raise(box_filter_zygote",
         "return 0 && seccomp_raise(box_filter_zygote"),
    ],
    # the zygote has every power in its user namespace
    "ZYGOTE_CAPABILITIES": [
        ("src/box/broker/broker_zygote.c",
         "drop_power_but(UINT64_C(1) << CAP_SYS_ADMIN) < 0)",
         "(0 && drop_power_but(UINT64_C(1) << CAP_SYS_ADMIN) < 0))"),
    ],
    # the zygote is in the broker's network
    "ZYGOTE_NET_NS": [("src/box/broker/broker_zygote.c", "CLONE_NEWNS | CLONE_NEWNET", "CLONE_NEWNS")],
    # the zygote keeps the descriptors that it was started with
    "ZYGOTE_FDS": [
        ("src/box/broker/broker_zygote.c",
         "return io_close_from(FD_EXEC + 1);",
         "return fcntl(ZYGOTE_FD, F_DUPFD, FD_EXEC + 1);"),
    ],
    # the zygote keeps the descriptors of boxes that it forked into
    "ZYGOTE_BOX_FDS": [
        ("src/box/zygote/zygote.c",
         "        close_all(fds, count);\n"
         "        if (answer(",
         "        if (0)\n"
         "            close_all(fds, count);\n"
         "        if (answer("),
    ],
    # the zygote keeps the pid namespace of the last box
    "ZYGOTE_PID_NS": [never("src/box/zygote/zygote.c", "setns(service->own_pid_ns")],
    # the zygote's image is a file that can be written to
    "FROZEN_SEALS": [
        ("src/box/zygote/freeze.c", "failed = fcntl(file, F_ADD_SEALS, seals);", "failed = 0 && seals;"),
    ],
    # a box gets any root that was laid out, whatever lies in it
    "TEMPLATE_PLANTS": [
        ("src/box/inside/template.c",
         "    if (!set->at[i].used || set->at[i].count != plants->count",
         "    if (set)\n"
         "        return set->at[i].used;\n"
         "    if (!set->at[i].used || set->at[i].count != plants->count"),
    ],
    # a group used again has the last run's memory peak
    "SHELF_PEAK": [
        ("src/box/cgroup/cgroup.c",
         '                            io_write_text(memory, "memory.max_usage_in_bytes", "0") < 0)',
         '                            (0 && io_write_text(memory, "memory.max_usage_in_bytes", "0") < 0))'),
    ],
    # a group used again has the last run's hits of limits
    "SHELF_COUNTERS": [
        ("src/box/cgroup/cgroup.c",
         "out->oom_kills_before = kills > 0 ? kills : 0;",
         "out->oom_kills_before = 0 * kills;"),
        ("src/box/cgroup/cgroup.c",
         "out->pids_hits_before = hits > 0 ? hits : 0;",
         "out->pids_hits_before = 0 * hits;"),
    ],
    # a box is used again, where it was left clean
    "BOX_ONCE": [
        ("src/engine/pool/pool.c",
         "    struct pool *pool = set ? &set->at[POOL_BOX] : NULL;\n"
         "    if (!pool || pool->shut || request",
         "    struct pool *pool = set ? &set->at[POOL_BOX] : NULL;\n"
         "    struct house *house = &pools->engine->house;\n"
         "    for (uint32_t box = 0; pools->open && box < BOX_MAX; box++) {\n"
         "        bool left = house->box[box].taken && !house->box[box].tenant;\n"
         "        if (left && house->box[box].created && !house->box[box].empty) {\n"
         "            house_hand_over(house, box, tenant);\n"
         "            return box;\n"
         "        }\n"
         "    }\n"
         "    if (!pool || pool->shut || request"),
        ("src/engine/pool/house.c",
         "} else if (house->box[box].created && clean) {",
         "} else if (0 && house->box[box].created && clean) {"),
        ("src/engine/pool/house.c",
         "} else if (house->box[box].created) {",
         "} else if (house->box[box].created && !clean) {"),
    ],
    # a result is final at DONE though there was an OOM kill
    "FINAL_OOM": [("src/engine/run/run.c", "bool clean = stats->oom_kills == 0 && ", "bool clean = ")],
    # a result is final at DONE though something was written
    "FINAL_DISK": [
        ("src/engine/run/run.c",
         "stats->pids_hits == 0 && !wrote;",
         "stats->pids_hits == 0 && (wrote || !wrote);"),
    ],
    # anybody may open the engine's socket
    "SOCKET_MODE": [("src/serve/socket.c", "umask(0177)", "umask(0)")],
    # every user who can open the socket is served
    "SOCKET_PEER": [never("src/serve/serve.c", "!is_owner(serve, fd))")],
    # ---- tokens ----
    # any secret is one
    "TOKEN_SECRET": [("src/store/tokens.c", "return ((differ - 1) >> 8) & 1;", "return differ < 256;")],
    # each token sees what others made
    "TOKEN_OWNER": [("src/serve/who/who.c", "(*owner && strcmp(owner, token->id) == 0);",
                     "*owner;")],
    # tokens do not expire
    "TOKEN_EXPIRY": [never("src/serve/who/who.c", "now >= token->expires_at)")],
    # runs at once are not bounded
    "TOKEN_RUNS": [("src/serve/who/who_quota.c", "if (most == TOKENS_NO_BOUND || token->runs < most)",
                    "if (most == TOKENS_NO_BOUND || token->runs >= 0)")],
    # runs side by side share the same CPU time
    "TOKEN_CPU": [("src/serve/who/who_quota.c", "token->reserved_ms += cpu_ms;", "")],
    # a token may ask for any limit
    "TOKEN_LIMITS": [("src/serve/who/who_allows.c", "if (most == TOKENS_NO_BOUND || wanted <= most)",
                      "if (most == TOKENS_NO_BOUND || wanted > 0)")],
    # ---- tools ----
    # a policy may deny, and the call goes on
    "TOOL_POLICY": [never("src/tool/call/call.c", "*out_verdict == TOOL_DENY)")],
    # arguments are any
    "TOOL_ARGUMENTS": [never("src/tool/call/call.c", "schema_check(tool->of->input, arguments, &err) < 0)")],
    # a run may call without end
    "TOOL_CALLS": [never("src/tool/call/call.c", "tool->made >= tool->of->calls_max)")],
    # all calls of a tool run at once
    "TOOL_AT_ONCE": [("src/tool/call/call.c", "|| tool->running >= tool->of->at_once)",
                      "|| tool->running > 1000 * tool->of->at_once)")],
    # each token may use each tool of the service
    "TOOL_TOKEN": [("src/tool/call/choose.c",
                    "if (calls->hooks.allows && calls->hooks.allows(calls->hooks.user, name.at, &refused) < 0) {",
                    "if (calls->hooks.allows && calls->hooks.allows(calls->hooks.user, name.at, &refused) > 0) {")],
    # a tool that fetches may reach any address
    "TOOL_ADDRESS": [never("src/net/http.c", "!is_within(exchange->call->reach, place))")],
    # files of tools that others may write or open are read
    "TOOL_FILE_MODE": [never("src/tool/host/owned.c", "info.st_mode & kinds[kind].refused)")],
    # so are those of another user
    "TOOL_FILE_OWNER": [never("src/tool/host/owned.c", "info.st_uid != geteuid() && info.st_uid != 0)")],
    # ---- images and folders ----
    "IMAGE_READ_ONLY": [
        never("src/box/inside/mount.c", 'mount(NULL, ".", NULL, MS_REMOUNT'),
        ("src/box/inside/mount_usr.c", 'mount("cupel", at, "overlay", SAFE | MS_RDONLY, options)',
         'mount("cupel", at, "overlay", SAFE, options)'),
    ],
    # the tree's own files in /dev and /sys
    "IMAGE_PLACES": [("src/box/inside/mount_image.c", "i < sizeof whole / sizeof whole[0]", "i < 0 * sizeof whole")],
    # the tree above what cupel relies on
    "IMAGE_ORDER": [("src/box/inside/mount.c", 'overlay_template("root", below, TEMPLATE_AT)',
                     'overlay_template(mount_has_image(plan) ? below : "root",'
                     ' mount_has_image(plan) ? "root" : below, TEMPLATE_AT)')],
    # zygotes import what an image has
    "IMAGE_ZYGOTE": [
        ("src/engine/talk/plan.c", "else if (image->hex[0]) /*", "else if (0 && image->hex[0]) /*"),
        ("src/box/broker/broker.c", "mount_is_host(&call->zygote.image)", "mount_image_valid(&call->zygote.image)"),
    ],
    "FOLDER_NOSUID": [("src/box/inside/mount_folder.c", "#define NOSUID_NODEV 6ul", "#define NOSUID_NODEV 4ul")],
    # the list of mounts shows a path of the broker
    "FOLDER_PATH": [("src/box/inside/mount_folder.c", '"lowerdir=" BELOW ",', '"lowerdir=/mnt/" MOUNT_FOLDER ",')],
    "FOLDER_HIDES": [never("src/box/inside/mount_folder.c", "fstat(at, &st) < 0 || bind(S_ISDIR")],
}
