/* What the files of transplanting share (box/fork/transplant.h). Everything lies in one
 * mapping, struct transplant, which is made for a transplant and unmapped after it. */
#ifndef BOX_FORK_TRANSPLANT_INT_H
#define BOX_FORK_TRANSPLANT_INT_H

#include "box/proto/proto.h"
#include "box/fork/transplant.h"

#if INJECT_HERE

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#define TRANSPLANT_PAGE UINT64_C(4096)
#define TRANSPLANT_VMAS_MAX 20000
#define TRANSPLANT_TEXT_MAX ((size_t)(4u << 20)) /* of /proc/PID/maps */
#define TRANSPLANT_FILES_MAX 1024
#define TRANSPLANT_PATH_MAX 4096
#define TRANSPLANT_PATHS_MAX ((size_t)(1u << 20)) /* of all open files together */
#define TRANSPLANT_SIGNALS 64

#define TRANSPLANT_ENTRIES 1024 /* of a page map, at once: of several mappings, as a rule */
#define TRANSPLANT_BATCH 256    /* pages that are read and written at once */

/* The part of the fresh process's memory that is ours, where neither has any: a page of
 * code, pages for arguments, a list of calls with their names, and room for the kernel's
 * own mappings. */
#define TRANSPLANT_DESK_LOOP UINT64_C(64) /* in the page of code */
#define TRANSPLANT_DESK_DATA TRANSPLANT_PAGE
#define TRANSPLANT_DESK_LIST (4 * TRANSPLANT_PAGE)
#define TRANSPLANT_DESK_NAMES (8 * TRANSPLANT_PAGE)
#define TRANSPLANT_DESK_HOLD (24 * TRANSPLANT_PAGE)
#define TRANSPLANT_DESK_LEN (64 * TRANSPLANT_PAGE)

#define TRANSPLANT_LINES 256
#define TRANSPLANT_NAMES ((size_t)(16 * TRANSPLANT_PAGE))
#define TRANSPLANT_LAST_FILE ((uint64_t)-2)
/* What a call of a list is for: a mapping, by its index, which may fail, or one of these. */
#define TRANSPLANT_MUST (-1)
#define TRANSPLANT_WHATEVER (-2)

enum transplant_kind {
    TRANSPLANT_ANON,
    TRANSPLANT_STACK,   /* anonymous, and grows down */
    TRANSPLANT_FILE,    /* or shared, or both */
    TRANSPLANT_SPECIAL, /* the kernel's: vdso and its data */
};

struct transplant_vma {
    uint64_t start, end, offset, inode;
    uint32_t device[2];
    uint32_t name, name_len; /* in the text of its map */
    uint8_t prot, shared, kind;
    uint8_t opened; /* mapped writable, for now */
    uint8_t failed; /* its file cannot be opened in the other box */
};

struct transplant_map {
    size_t count;
    struct transplant_vma vma[TRANSPLANT_VMAS_MAX];
    char text[TRANSPLANT_TEXT_MAX];
};

/* One of the two processes. */
struct transplant_side {
    struct inject at;
    int proc;
    const int *channel; /* the numbers that it has there */
    int pagemap;              /* -1: not for us, every page counts */
    int mem;                  /* -1: not for us, it is read through ptrace's rights */
    uint32_t fd_size;         /* no descriptor has this number, or a higher one */
    uint64_t start_brk, brk;
    uint64_t ignored, caught; /* signals */
    struct {
        uint64_t pointer;
        uint32_t size, signature, flags, pad;
    } rseq;                   /* as ptrace gives it */
    uint64_t window;          /* the address that the first of these entries is for */
    size_t entry_count;
    uint64_t entry[TRANSPLANT_ENTRIES];
    struct transplant_map map;
};

struct transplant_action { /* as the kernel has it */
    uint64_t handler, flags, restorer, mask;
};

struct transplant_file {
    int fd, flags, close_on_exec;
    int64_t place;
    uint32_t path; /* in paths */
};

/* As the loop on the desk reads it. */
struct transplant_line {
    uint64_t nr, arg[6];
    int64_t result;
};

struct transplant {
    struct transplant_side from, to;
    int64_t deadline_ns;
    bool changed;  /* the fresh process: there is no way back */
    uint64_t desk; /* 0: not yet */
    bool moved;    /* the kernel's mappings are on the desk */
    uint64_t shared_left; /* bytes of shared memory that may still be copied */
    struct transplant_report report;

    /* of the parked process */
    const struct park_files *noted;
    uint64_t tid_slot, robust_head;
    struct transplant_action action[TRANSPLANT_SIGNALS + 1];
    struct {
        uint64_t base;
        uint32_t flags, pad;
        uint64_t len;
    } altstack;
    long umask;
    char cwd[TRANSPLANT_PATH_MAX];
    size_t file_count;
    struct transplant_file file[TRANSPLANT_FILES_MAX];
    size_t paths_len;
    char paths[TRANSPLANT_PATHS_MAX];
    uint64_t heap_word; /* where its libc keeps the end of the heap; 0: may stay */

    /* calls that wait to be made, and the file that they have opened last */
    size_t line_count, names_len;
    struct transplant_line line[TRANSPLANT_LINES];
    int32_t line_for[TRANSPLANT_LINES];
    char names[TRANSPLANT_NAMES];
    const struct transplant_vma *open;
    int64_t last_file; /* its descriptor there */

    struct iovec run[TRANSPLANT_BATCH];
    unsigned char bytes[2][TRANSPLANT_BATCH * TRANSPLANT_PAGE];
    size_t xstate_len;
    unsigned char xstate[1u << 16];
};

/* A call that must succeed: REFUSED with errno otherwise. */
enum inject_end transplant_call(struct inject *at, struct inject_order order, long *out);
/* The same in the fresh process, counted. */
enum inject_end transplant_do(struct transplant *t, struct inject_order order, long *out);
/* An open file of /proc/PID, or -1. */
int transplant_open_proc(const struct transplant_side *side, const char *name);
/* Note something that is not carried: a bit of BOX_LOST, a number (-1: none) and a name of any
 * bytes. */
void transplant_lose(struct transplant *t, uint32_t what, int fd, const char *name, size_t len);
/* Whether a name begins with one of these, which ends in "". */
bool transplant_begins(const char *name, size_t len, const char *const *heads);
const char *transplant_name(const struct transplant_side *side, const struct transplant_vma *vma);

/* transplant_read.c: what /proc and the tracer know. 0, or -1 with errno. */
int transplant_read_map(struct transplant_side *side);
int transplant_read_side(struct transplant_side *side);
/* Note that the two differ in limits or priority, which are not carried. */
void transplant_compare_settings(struct transplant *t);
int transplant_read(const struct transplant_side *side, uint64_t from, void *bytes, size_t len);

/* transplant_state.c: what is neither memory nor file. */
enum inject_end transplant_note_state(struct transplant *t, uint64_t room);
enum inject_end transplant_quiet_rseq(struct transplant *t);
enum inject_end transplant_give_state(struct transplant *t);

/* transplant_files.c */
enum inject_end transplant_note_files(struct transplant *t, uint64_t room);
enum inject_end transplant_give_files(struct transplant *t);

/* transplant_heap.c: the end of the heap, which the kernel and libc both know. */
enum inject_end transplant_set_heap(struct transplant *t);
enum inject_end transplant_tell_heap(struct transplant *t);

/* transplant_batch.c: calls that are made together, later. */
int transplant_write_loop(struct transplant *t, uint64_t desk);
enum inject_end transplant_queue(struct transplant *t, struct inject_order order,
                                 int32_t for_what);
/* A name for such a call: its address there. */
enum inject_end transplant_queue_name(struct transplant *t, const char *name, size_t len,
                                      uint64_t *out);
enum inject_end transplant_flush(struct transplant *t);

/* transplant_memory.c: mappings. */
enum inject_end transplant_set_desk(struct transplant *t);
enum inject_end transplant_give_memory(struct transplant *t);

/* transplant_pages.c: the content of one range, which is mapped in both. `all`: every
 * page and not only the process's own; `kept`: the fresh process may have own ones. */
struct transplant_range {
    uint64_t start, end;
    uint8_t prot; /* of both */
    bool all, kept;
    bool opened; /* but it can be written already */
    bool blank;  /* the fresh process has only zeroes there */
};
/* Whether the parked process has pages of its own there, as far as we may know it. */
bool transplant_has_own(struct transplant *t, uint64_t start, uint64_t end);
enum inject_end transplant_copy(struct transplant *t, const struct transplant_range *range);

#endif
#endif
