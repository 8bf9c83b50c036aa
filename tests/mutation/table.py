"""Which probes must notice which disabled control. One row a mutant:

  name      how it is called in the report
  off       names of edits.py that it applies together
  probes    tests, by short id; at least one must fail
  table     the table of system calls must notice as well, in the build and in a real box
  refused   the program must refuse to start it: "posture" (what it reads back of itself) or
            "kernel" (the box cannot be built without it); a mutant with the posture check off
            as well then has to be noticed by a probe
  policy    {file: [(pattern, new)]}: a changed system call policy
  compiler  [(old, new)]: a changed compiler of policies
  covered   why nothing need notice it alone: the wall that covers it; another row disables both"""
from edits import EDITS


def box(program, who="root", boxed="host"):
    return f"tests/wall/test_wall.py::test_the_box_holds[{who}-{boxed}-{program}]"


def wall(file, test, who="root", boxed="host"):
    """`who` is None for a test that chooses its users itself, `boxed` for one that runs in no box."""
    ids = "-".join(filter(None, (who, boxed)))
    return f"tests/wall/test_{file}.py::test_{test}" + (f"[{ids}]" if ids else "")


def flow(file, test, who="root"):
    return f"tests/flow/test_{file}.py::test_{test}" + (f"[{who}]" if who else "")


def warm(file, test, who="root"):
    return f"tests/warm/test_warm_{file}.py::test_{test}" + (f"[{who}]" if who else "")


def status(case, who="root"):
    return flow("run_status", "the_code_ends_in_its_status", f"{who}-{case}")


SHARED = wall("posture", "the_occupant_shares_no_namespace_with_the_host")
APART = wall("own_processes", "the_box_shares_no_namespace_with_the_broker")
INIT = wall("own_processes", "init_holds_its_report_and_is_confined")
PORTER = wall("own_processes", "the_porter_is_as_weak_as_the_box", None)
POWERS = wall("posture", "the_occupant_is_nobody_with_no_powers")
REGULAR = wall("artifact_walls", "only_regular_files_come_back_and_the_rest_has_its_reason")
CONTENTS = wall("artifact_walls", "contents_of_the_host_never_come_back")
BETWEEN = wall("between_boxes", "a_box_neither_sees_nor_holds_up_another")
ODD_STATE = wall("inherited", "odd_signals_and_umask_do_not_reach_the_box")
RLIMITS = box("rlimits.py")
CONFINED = wall("service", "every_thread_of_the_service_is_confined_and_holds_no_power", boxed=None)
TABLE = [wall("syscalls", "the_compiled_filter_is_the_golden_one", None, None),
         wall("syscalls", "the_box_answers_as_the_table_says")]


def driver(test, row=""):
    return f"tests/wall/test_driver_caps.py::test_{test}[host{row}]"


class Mutant:
    def __init__(self, name, *probes, off=None, refused=None, policy=None, compiler=None,
                 covered=None, table=False):
        self.name, self.probes = name, list(probes)
        self.table = TABLE if table else []
        self.off = [name] if off is None else off.split()
        self.refused, self.covered = refused, covered
        self.policy = policy or {}
        if off is None and (policy or compiler):
            self.off = []
        self.edits = [edit for each in self.off for edit in EDITS[each]]
        self.edits += [("dev/policyc.c", old, new) for old, new in compiler or []]


def with_posture_off(name, *probes):
    """Two rows: alone it is refused; with the check off a probe has to notice."""
    return [Mutant(name, refused="posture"),
            Mutant(name + "+POSTURE", *probes, off=name + " POSTURE")]


NAMESPACES = [
    *with_posture_off("USER_NS", APART),
    *with_posture_off("PID_NS", SHARED, APART, box("arguments.py")),
    *with_posture_off("NET_NS", SHARED, box("sockets.py")),
    *with_posture_off("IPC_NS", SHARED, BETWEEN.replace("[root-", "[user-")),
    *with_posture_off("UTS_NS", SHARED, box("secrets.py")),
    *with_posture_off("CGROUP_NS", SHARED, box("proc_sys.py")),
    Mutant("HOST_NAME", box("secrets.py")),
    Mutant("LOOPBACK", box("sockets.py")),
    Mutant("NEW_NAMESPACES", wall("own_processes", "no_namespace_can_be_made_in_the_box")),
]

POWER = [
    Mutant("CAPABILITIES", refused="posture"),
    Mutant("CAPABILITIES+POSTURE", PORTER, INIT, POWERS, off="CAPABILITIES POSTURE"),
    *with_posture_off("BOUNDING", box("capabilities.py")),
    Mutant("SECUREBITS", box("securebits.py")),
    Mutant("NO_NEW_PRIVS", refused="posture"),
    Mutant("NO_NEW_PRIVS+POSTURE", off="NO_NEW_PRIVS POSTURE", refused="kernel"),  # no filter then
    Mutant("NO_NEW_PRIVS+CAPABILITIES", box("capabilities.py"), POWERS,
           off="NO_NEW_PRIVS CAPABILITIES SECCOMP_INIT POSTURE"),
    Mutant("GROUPS", wall("own_processes", "the_callers_groups_stay_with_the_caller", None)),
    Mutant("INIT_UID", wall("posture", "init_is_its_own_small_program_with_nothing_to_read"),
           wall("own_processes", "two_boxes_at_once_have_no_uid_in_common", None)),
    Mutant("PRIVATE_UID", wall("own_processes", "two_boxes_at_once_have_no_uid_in_common", None)),
    Mutant("SECCOMP", box("kernel_calls.py"), box("namespaces.py")),
    Mutant("SECCOMP+NEW_NAMESPACES", box("namespaces.py"), off="SECCOMP NEW_NAMESPACES"),
    Mutant("UNCOUNTED", box("hidden_memory.py", "user"), box("memfd_bomb.py", "user")),
    Mutant("SECCOMP_INIT", INIT),
    Mutant("SECCOMP_PORTER", PORTER),
    Mutant("NOTIFY_ANSWER", box("kernel_calls.py"), box("ptrace.py")),
    Mutant("NOTIFY_CAP", driver("forbidden_calls_are_reported_so_often_and_no_more")),
    Mutant("LANDLOCK", box("landlock.py")),
    Mutant("SERVICE", CONFINED),
    Mutant("SERVICE_THREADS", CONFINED),
    Mutant("SERVICE_DUMPABLE", wall("service", "nobody_of_its_uid_can_look_into_the_service", "user", None)),
    Mutant("DOOR", wall("posture", "nothing_of_ours_keeps_a_power_over_the_host")),
]


def without_rules(call, verdict=None):
    """The call's lines with an argument rule are gone; its last line gets another verdict."""
    pairs = [(rf"^.* {call} if .*\n", "")]
    return {"occupant.policy": pairs + ([(rf"^.* {call} +#", f"{verdict} {call} #")] if verdict else [])}


def rules(*args, **options):
    """A mutant that changes what the filter says to some call of the table."""
    return Mutant(*args, **options, table=True)


POLICY = [
    rules("policy: socket rules", box("sockets.py"), policy=without_rules("socket", "allow")),
    rules("policy: socket types", box("socket_types.py"),
           policy={"occupant.policy": [(r"^loud EAFNOSUPPORT socket if a1 .*\n", "")]}),
    rules("policy: clone flags", box("namespaces.py"), policy=without_rules("clone"),
           covered="user.max_*_namespaces is 0"),
    rules("policy: clone flags+NEW_NAMESPACES", box("namespaces.py"), off="NEW_NAMESPACES",
           policy=without_rules("clone")),
    rules("policy: ioctl", box("terminal.py"), policy=without_rules("ioctl")),
    rules("policy: fcntl", box("rules.py"), policy=without_rules("fcntl")),
    rules("policy: personality", box("kernel_calls.py"),
           policy=without_rules("personality", "allow")),
    rules("policy: prctl", box("prctl.py"), policy=without_rules("prctl", "allow")),
    rules("policy: seccomp listener", box("kernel_calls.py"), policy=without_rules("seccomp")),
    rules("policy: real-time scheduling", box("rules.py"),
           policy=without_rules("sched_setscheduler", "allow")),
    rules("policy: madvise", box("rules.py"), policy=without_rules("madvise")),
    rules("policy: socketpair", box("rules.py"), policy=without_rules("socketpair", "allow")),
    rules("policy: ptrace", box("ptrace.py"),
           policy={"occupant.policy": [("^loud EPERM ptrace ", "allow ptrace ")]}),
    rules("compiler: masks compare 64 bits", box("namespaces.py"), box("terminal.py"),
           off="NEW_NAMESPACES", compiler=[("        if (!test->masked) {", "        if (1) {")]),
    rules("compiler: values compare 32 bits", box("rules.py"),
           compiler=[("        if (!test->masked) {", "        if (0) {")]),
    Mutant("compiler: foreign calls allowed", box("foreign_abi.c"), status("denied"),
           compiler=[("    const struct answer foreign = { KILL, 0 };",
                      "    const struct answer foreign = { ALLOW, 0 };")]),
]

INHERITED = [
    *with_posture_off("FDS", wall("posture",
                      "the_occupant_holds_only_its_streams_and_its_channel")),
    *with_posture_off("INIT_FDS", INIT),
    Mutant("PORTER_FDS", PORTER),
    Mutant("BROKER_FDS", wall("own_processes", "what_the_caller_has_open_stays_with_the_caller")),
    Mutant("ENVIRONMENT", box("secrets.py"),
           flow("run_inputs", "the_environment_is_built_from_nothing",
                "root-python-import os; print(sorted(os.environ))")),
    Mutant("INIT_ENVIRONMENT", wall("own_processes", "init_and_broker_have_no_environment")),
    Mutant("INIT_DUMPABLE+LANDLOCK", box("secrets.py", "user"), off="INIT_DUMPABLE LANDLOCK"),
    Mutant("INIT_DUMPABLE", wall("own_processes", "init_cannot_be_read_by_its_own_uid", "user")),
    Mutant("BROKER_DUMPABLE", box("secrets.py", "user"),
           covered="no process of a box can name the broker: its pid namespace is another"),
    Mutant("BROKER_DUMPABLE+PID_NS", box("secrets.py", "user"),
           off="BROKER_DUMPABLE PID_NS POSTURE"),
    Mutant("SIGNALS", ODD_STATE),
    Mutant("UMASK", ODD_STATE),
    Mutant("SETSID", wall("own_processes", "the_occupant_leads_a_session_of_its_own")),
    Mutant("OOM_SCORE", RLIMITS),
]

FILES = [
    Mutant("PROPAGATION", wall("own_processes", "no_mount_of_the_box_hangs_on_the_hosts", None)),
    *with_posture_off("READ_ONLY_ROOT", box("mounts.py")),
    Mutant("OVERLAY", BETWEEN),
    Mutant("USR_LOCAL", box("usr_local.py")),
    *with_posture_off("NOSUID", box("capabilities.py"), box("mounts.py")),
    *with_posture_off("NODEV", box("mounts.py")),
    Mutant("DEVICES", box("devices.py")),
    Mutant("TERMINALS", box("pty.py")),
    Mutant("SYSTEM_FILES", box("system_files.py")),
    *with_posture_off("PROC_SUBSET", box("proc_sys.py")),
    Mutant("HIDEPID", box("arguments.py"), box("secrets.py")),
    Mutant("PIVOT", wall("own_processes", "the_old_root_is_not_in_the_boxs_mounts")),
    Mutant("OLD_ROOT", refused="kernel"),  # who enters the box comes to the old root, and stops
    Mutant("DISK_BYTES", box("tmpfs_fill.py"), status("disk")),
    Mutant("DISK_INODES", box("inode_bomb.py")),
]

LIMITS = [
    Mutant("JOIN", box("memory_bomb.py"), wall("posture", "the_limits_are_in_the_kernel")),
    Mutant("MEMORY", box("memory_bomb.py")),
    Mutant("PIDS", box("fork_bomb.py"), box("thread_bomb.py")),
    Mutant("PIDS+LIMIT_NPROC", box("fork_bomb.py"), off="PIDS LIMIT_NPROC"),
    Mutant("CPUS", box("cpu_share.py")),
    Mutant("SOCKET_BUFFERS", box("socket_buffers.py")),
    Mutant("OOM_KILLS_ALL", box("oom_respawner.py")),
    Mutant("WALL_TIMER", status("js timeout")),
    Mutant("CPU_TIMER", status("cpu")),
    Mutant("BROKER_DUE", flow("guard", "a_stopped_engine_does_not_stop_its_limits")),
    *with_posture_off("LIMIT_CORE", RLIMITS, ODD_STATE),
    Mutant("LIMIT_CPU", RLIMITS),
    *with_posture_off("LIMIT_NOFILE", box("descriptors.py"), RLIMITS),
    Mutant("LIMIT_NPROC", RLIMITS, box("fork_bomb.py", "user")),
    Mutant("LIMIT_FSIZE", RLIMITS),
    Mutant("LIMIT_DATA", wall(
        "own_processes", "without_a_memory_cgroup_the_data_limit_is_the_memory_limit", None)),
    Mutant("LIMIT_STACK", RLIMITS),
    *with_posture_off("LIMIT_MEMLOCK", RLIMITS),
    Mutant("LIMIT_MSGQUEUE", RLIMITS),
    Mutant("LIMIT_RTPRIO", RLIMITS, covered="the host's own hard limit is 0, and the filter knows "
           "no real-time scheduling (policy: real-time scheduling)"),
    Mutant("LIMIT_NICE", RLIMITS, covered="the host's own hard limit is 0, and less needs a "
           "capability"),
    Mutant("LIMIT_SIGPENDING", RLIMITS),
]

OUT = [
    Mutant("OUTPUT_CAP", flow("run_output", "stderr_is_kept_apart_with_its_own_cap")),
    Mutant("OUTPUT_STOP", status("output")),
    Mutant("SEED_EVERYWHERE", flow("seed", "without_a_seed_nothing_is_loaded")),
    Mutant("SEED_LATE", flow("seed", "a_seeded_run_is_the_same_without_an_engine_and_not_warm_on_one")),
    Mutant("SEED_OF_CELLS", flow("seed", "a_cell_cannot_have_another_seed")),
    Mutant("ARTIFACT_BYTES", wall("artifact_walls", "the_caps_on_bytes_and_count_are_the_requests")),
    Mutant("ARTIFACT_FILES",
           wall("artifact_walls", "a_thousand_files_are_counted_and_the_list_is_capped")),
    Mutant("PORTER_RESOLVE",
           wall("own_processes", "the_porter_opens_everything_beneath_and_follows_no_link")),
    Mutant("PORTER_TYPES", REGULAR),
    Mutant("PORTER_TYPES+PORTER_RESOLVE", REGULAR, CONTENTS, off="PORTER_TYPES PORTER_RESOLVE"),
    Mutant("REGULAR_LIST", REGULAR, covered="the porter shows regular files only"),
    Mutant("REGULAR_OPEN", REGULAR, covered="the engine asks for regular files only"),
    Mutant("REGULAR_LIST+OPEN", REGULAR, off="REGULAR_LIST REGULAR_OPEN",
           covered="the porter reads at a position, which only a regular file has"),
    Mutant("DRIVER_LINE", driver("a_line_over_the_cap_makes_us_deaf")),
    Mutant("DRIVER_TOTAL", driver("all_lines_together_have_a_cap")),
    Mutant("DRIVER_RESULTS", driver("no_more_results_than_the_cap")),
    Mutant("DRIVER_TEXT", driver("the_text_of_an_error_has_a_cap")),
    Mutant("DRIVER_ID", driver("ids_and_updates_have_a_form_and_a_maximum")),
    Mutant("DRIVER_FORM", driver("a_bundle_that_is_not_as_agreed_is_dropped", "-data0")),
    Mutant("CONTROL_CHARACTERS", flow("cli", "control_characters_cannot_drive_the_terminal")),
]

READY = [
    Mutant("ZYGOTE_RANDOM", warm("isolation", "random_states_are_a_runs_own", "root-on demand"),
           flow("warm_python", "every_generator_of_random_numbers_is_fresh", "pool")),
    Mutant("ZYGOTE_SECCOMP",
           warm("posture", "the_zygote_has_one_power_in_its_own_user_namespace", "plain-root")),
    Mutant("ZYGOTE_CAPABILITIES",
           warm("posture", "the_zygote_has_one_power_in_its_own_user_namespace", "plain-root")),
    Mutant("ZYGOTE_NET_NS",
           warm("posture", "the_zygote_is_apart_from_host_and_broker", "plain-root")),
    Mutant("ZYGOTE_FDS",
           warm("posture", "the_zygote_holds_the_brokers_socket_and_nothing_else", "plain-root")),
    Mutant("ZYGOTE_BOX_FDS",
           warm("posture", "the_zygote_holds_the_brokers_socket_and_nothing_else", "plain-root")),
    Mutant("ZYGOTE_PID_NS", warm("mutants", "a_zygote_keeps_no_namespace_of_a_box")),
    Mutant("FROZEN_SEALS", warm("mutants", "the_frozen_memory_of_a_zygote_is_sealed")),
    Mutant("TEMPLATE_PLANTS",
           flow("serve", "a_run_has_the_result_of_every_other_door", "root-javascript")),
    Mutant("SHELF_PEAK", warm("mutants", "the_memory_peak_is_a_runs_own", None)),
    Mutant("SHELF_COUNTERS",
           warm("mutants", "a_limit_that_is_hit_after_the_end_is_not_the_next_runs", None)),
    Mutant("BOX_ONCE", warm("mutants", "a_box_is_used_once")),
    Mutant("FINAL_OOM", warm("mutants", "a_child_that_ran_out_of_memory_is_told_once"),
           covered="the verdict counts OOM kills too, and a group's counters are differences"),
    Mutant("FINAL_OOM+SHELF_COUNTERS", warm("mutants", "a_child_that_ran_out_of_memory_is_told_once"),
           off="FINAL_OOM SHELF_COUNTERS OOM_KILLS_ALL"),
    Mutant("FINAL_DISK", flow("serve", "artifacts_come_whole_and_only_when_asked_for")),
    Mutant("SOCKET_MODE", flow("serve", "the_socket_is_for_its_user_alone")),
    Mutant("SOCKET_PEER", flow("serve", "another_user_is_turned_away_even_where_the_file_is_open"),
           flow("serve", "another_user_is_turned_away_even_where_the_file_is_open", "user")),
]


def tenancy(test, who="root"):
    return f"tests/http/test_tenancy.py::test_{test}[{who}]"


TOKENS = [
    Mutant("TOKEN_SECRET", tenancy("a_secret_is_only_the_whole_secret")),
    Mutant("TOKEN_OWNER", tenancy("runs_of_another_token_do_not_exist"),
           tenancy("sessions_of_another_token_do_not_exist")),
    Mutant("TOKEN_EXPIRY", tenancy("an_expired_token_is_refused")),
    Mutant("TOKEN_RUNS", tenancy("runs_at_once_hold_for_fifty_clients")),
    Mutant("TOKEN_CPU", tenancy("cpu_seconds_of_a_day_hold_for_fifty_clients")),
    Mutant("TOKEN_LIMITS", tenancy("what_a_token_may_not_ask_for_is_403")),
]

def tool(file, test, who="root"):
    return f"tests/tools/test_{file}.py::test_{test}" + (f"[{who}]" if who else "")


GATE = tool("bridge_python", "the_gate_holds_policy_caps_and_output_schema", None)

TOOLS = [
    Mutant("TOOL_POLICY", GATE),
    Mutant("TOOL_ARGUMENTS", tool("bridge_hostile", "a_forged_call_is_the_box_own_and_passes_the_same_gate", None)),
    Mutant("TOOL_CALLS", GATE),
    Mutant("TOOL_AT_ONCE",
           tool("bridge_python", "tasks_wait_in_parallel_and_a_tool_runs_as_often_at_once_as_it_may", None)),
    Mutant("TOOL_TOKEN", tool("owned", "a_token_has_the_tools_that_it_names", None)),
    Mutant("TOOL_ADDRESS",
           tool("http_tools", "private_addresses_are_refused_unless_the_file_says_so", "root-127.0.0.1"),
           tool("http_tools", "a_name_is_judged_by_the_address_that_is_connected_to")),
    Mutant("TOOL_FILE_MODE", tool("commands", "a_file_that_others_may_write_is_refused"),
           tool("commands", "a_bad_secrets_file_is_a_fault_that_repeats_nothing_of_it", "root-open")),
    Mutant("TOOL_FILE_OWNER", tool("commands", "a_file_of_another_user_is_refused")),
]

HOSTILE = "tests/wall/test_hostile_images.py::test_a_hostile_tree_gives_a_box_that_holds"

IMAGES = [
    Mutant("READ_ONLY_ROOT of an image", box("mounts.py", boxed="image"), off="IMAGE_READ_ONLY POSTURE"),
    Mutant("NOSUID of an image", box("mounts.py", boxed="image"), off="NOSUID POSTURE"),
    Mutant("NODEV of an image", box("mounts.py", boxed="image"), off="NODEV POSTURE"),
    Mutant("NOSUID of a folder", box("mounts.py", boxed="dir"), off="FOLDER_NOSUID"),
    Mutant("LANDLOCK of an image", box("landlock.py", boxed="image"), off="LANDLOCK"),
    Mutant("IMAGE_PLACES", HOSTILE + "[root-host-folders for files]"),
    Mutant("IMAGE_ORDER", HOSTILE + "[root-host-files for folders]"),
    Mutant("IMAGE_ZYGOTE", wall("image_zygote", "no_file_of_an_image_is_run_outside_a_box")),
    Mutant("FOLDER_PATH", box("mounts.py", boxed="dir")),
    Mutant("FOLDER_HIDES", flow("dir", "secrets_are_hidden_and_git_is_read_only")),
]

LAST = [Mutant("LIFT", box("mmapfork.sh"))]  # its box takes so long to die that it disturbs others

MUTANTS = NAMESPACES + POWER + POLICY + INHERITED + FILES + LIMITS + OUT + READY + TOKENS + TOOLS + IMAGES + LAST
LEFT_SEGMENTS = ["0x6275", "0x6c65", "0x6375"]  # keys that the probes use
QUICK = "LANDLOCK READ_ONLY_ROOT HOST_NAME CONTROL_CHARACTERS SECCOMP_INIT".split()
