/* Disabling one control at a time, for tests of the tests: each mutation below must
 * be noticed by some probe (tests/mutation). It is decided at compile time only: a
 * build without CUPEL_MUTATION, and that is every build but those of the mutation
 * tests, has the constant 0 for every mutate(), and so neither the names nor the
 * branches. There is no variable, flag or file that changes this.
 *
 * -DCUPEL_MUTATION=MUTATE_LANDLOCK disables one control; up to four, parted by
 * commas, disable walls that cover for each other. */
#ifndef BOX_WALL_MUTATE_H
#define BOX_WALL_MUTATE_H

/* id, and what is lacking then */
#define MUTATIONS(X)                                                                          \
    X(POSTURE)           /* init and occupant start whatever they read back of themselves */  \
    /* namespaces */                                                                          \
    X(USER_NS)           /* the box lives in the broker's user namespace */                   \
    X(PID_NS)            /* ... in the broker's pid namespace, and sees its /proc */          \
    X(NET_NS)            /* ... in the host's network */                                      \
    X(IPC_NS)                                                                                 \
    X(UTS_NS)                                                                                 \
    X(CGROUP_NS)                                                                              \
    X(NEW_NAMESPACES)    /* user.max_*_namespaces stay as they are */                         \
    X(HOST_NAME)         /* the box keeps the host's name */                                  \
    X(LOOPBACK)          /* no loopback */                                                    \
    /* power */                                                                               \
    X(CAPABILITIES)      /* effective, permitted and inheritable sets are kept */             \
    X(BOUNDING)          /* the bounding set is kept */                                       \
    X(SECUREBITS)                                                                             \
    X(NO_NEW_PRIVS)                                                                           \
    X(GROUPS)            /* supplementary groups are kept */                                  \
    X(INIT_UID)          /* init has the occupant's uid */                                    \
    X(PRIVATE_UID)       /* all instances share one range of uids */                          \
    X(SECCOMP)           /* the occupant's filter allows everything */                        \
    X(SECCOMP_INIT)                                                                           \
    X(SECCOMP_PORTER)                                                                         \
    X(UNCOUNTED)         /* memory that is not mapped can be had without a cgroup */          \
    X(NOTIFY_ANSWER)     /* the supervisor lets reported calls through */                     \
    X(NOTIFY_CAP)        /* it answers without end */                                         \
    X(LANDLOCK)                                                                               \
    X(DOOR)              /* the door keeps root */                                            \
    /* inherited state */                                                                     \
    X(FDS)               /* the occupant keeps what the broker has open */                    \
    X(INIT_FDS)                                                                               \
    X(PORTER_FDS)                                                                             \
    X(BROKER_FDS)        /* the broker keeps what the caller has open */                      \
    X(ENVIRONMENT)       /* the occupant gets the caller's environment too */                 \
    X(INIT_ENVIRONMENT)  /* init and the broker get the caller's environment */               \
    X(INIT_DUMPABLE)                                                                          \
    X(BROKER_DUMPABLE)                                                                        \
    X(SIGNALS)           /* dispositions and mask are inherited */                            \
    X(UMASK)                                                                                  \
    X(SETSID)                                                                                 \
    X(OOM_SCORE)                                                                              \
    /* file system */                                                                         \
    X(PROPAGATION)       /* mounts keep the propagation they come with */                     \
    X(READ_ONLY_ROOT)                                                                         \
    X(OVERLAY)           /* programs are the host's own inodes */                             \
    X(USR_LOCAL)         /* the host's /usr/local is seen */                                  \
    X(NOSUID)                                                                                 \
    X(NODEV)                                                                                  \
    X(DEVICES)           /* a device of the host too many */                                  \
    X(PROC_SUBSET)                                                                            \
    X(HIDEPID)                                                                                \
    X(PIVOT)             /* chroot in place of pivot_root */                                  \
    X(OLD_ROOT)          /* the old root stays mounted */                                     \
    X(DISK_BYTES)                                                                             \
    X(DISK_INODES)                                                                            \
    /* limits */                                                                              \
    X(JOIN)              /* the occupant stays out of the box's cgroups */                    \
    X(MEMORY)                                                                                 \
    X(PIDS)                                                                                   \
    X(CPUS)                                                                                   \
    X(SOCKET_BUFFERS)                                                                         \
    X(OOM_KILLS_ALL)     /* the kernel kills one process and the rest goes on */              \
    X(LIFT)              /* a box is killed within its limits */                              \
    X(WALL_TIMER)                                                                             \
    X(CPU_TIMER)                                                                              \
    X(BROKER_DUE)        /* the broker ends no box by itself when its time is over */         \
    X(LIMIT_CORE)        /* the RLIMIT_ of the same name */                                   \
    X(LIMIT_CPU)                                                                              \
    X(LIMIT_NOFILE)                                                                           \
    X(LIMIT_NPROC)                                                                            \
    X(LIMIT_FSIZE)                                                                            \
    X(LIMIT_DATA)                                                                             \
    X(LIMIT_STACK)                                                                            \
    X(LIMIT_MEMLOCK)                                                                          \
    X(LIMIT_MSGQUEUE)                                                                         \
    X(LIMIT_RTPRIO)                                                                           \
    X(LIMIT_NICE)                                                                             \
    X(LIMIT_SIGPENDING)                                                                       \
    /* what comes out */                                                                      \
    X(OUTPUT_CAP)        /* the result holds all that was printed */                          \
    X(OUTPUT_STOP)       /* output over the cap does not end the run */                       \
    X(ARTIFACT_BYTES)                                                                         \
    X(ARTIFACT_FILES)                                                                         \
    X(PORTER_RESOLVE)    /* the porter opens paths as anyone does */                          \
    X(PORTER_TYPES)      /* ... and follows links to tell what is a file */                   \
    X(REGULAR_LIST)      /* the engine asks for things that are no files */                   \
    X(REGULAR_OPEN)      /* ... and the porter reads them */                                  \
    X(DRIVER_LINE)       /* a line of the driver has no cap */                                \
    X(DRIVER_TOTAL)                                                                           \
    X(DRIVER_RESULTS)                                                                         \
    X(DRIVER_TEXT)                                                                            \
    X(DRIVER_FORM)       /* members of a bundle may be anything */                            \
    X(CONTROL_CHARACTERS) /* output drives the caller's terminal */                           \
    /* what is kept ready */                                                                  \
    X(ZYGOTE_RANDOM)     /* every fork has the same random states */                          \
    X(ZYGOTE_SECCOMP)    /* the zygote has no filter */                                       \
    X(ZYGOTE_CAPABILITIES) /* ... and every power in W */                                     \
    X(ZYGOTE_NET_NS)     /* it is in the broker's network */                                  \
    X(ZYGOTE_FDS)        /* it keeps what the broker gave it for the start */                 \
    X(ZYGOTE_BOX_FDS)    /* it keeps the descriptors of boxes that it forked into */          \
    X(ZYGOTE_PID_NS)     /* it keeps the pid namespace of the last of them */                 \
    X(IMAGE_SEALS)       /* its image is a file that can be written to */                     \
    X(TEMPLATE_PLANTS)   /* a box gets any root that was laid out, whatever lies in it */     \
    X(SHELF_PEAK)        /* a group used again has the last run's memory peak */              \
    X(SHELF_COUNTERS)    /* ... and its hits of limits */                                     \
    X(BOX_ONCE)          /* a box is used again, where it was left clean */                   \
    X(FINAL_OOM)         /* a result is final at DONE though there was an OOM kill */         \
    X(FINAL_DISK)        /* ... though something was written */                               \
    X(SOCKET_MODE)       /* anybody may open the engine's socket */                           \
    X(SOCKET_PEER)       /* whoever could open it is served */

#ifdef CUPEL_MUTATION
enum mutate_id {
    MUTATE_NONE,
#define X(id) MUTATE_##id,
    MUTATIONS(X)
#undef X
};
#define mutate_in(id, a, b, c, d, ...) ((id) == (a) || (id) == (b) || (id) == (c) || (id) == (d))
#define mutate_among(id, ...) mutate_in(id, __VA_ARGS__)
#define mutate(id)                                                                            \
    mutate_among(MUTATE_##id, CUPEL_MUTATION, MUTATE_NONE, MUTATE_NONE, MUTATE_NONE, MUTATE_NONE)
#else
#define mutate(id) 0
#endif

#endif
