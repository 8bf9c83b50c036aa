/* Declarations that the files of box/fork share (box/fork/transplant.h). All data of one
 * transplant is in struct transplant, a mapping that transplant() makes and removes. */
#ifndef BOX_FORK_TRANSPLANT_INT_H
#define BOX_FORK_TRANSPLANT_INT_H

#include "box/fork/transplant.h"
#include "box/park/park_int.h"
#include "box/proto/proto.h"

#if INJECT_HERE

#include <stdbool.h>
#include <stddef.h>

#define TRANSPLANT_PAGE UINT64_C(4096)
#define TRANSPLANT_VMAS_MAX 20000
#define TRANSPLANT_TEXT_MAX ((size_t)(4u << 20)) /* of /proc/PID/maps */
#define TRANSPLANT_FILES_MAX 1024
#define TRANSPLANT_PATH_MAX 4096
#define TRANSPLANT_PATHS_MAX ((size_t)(1u << 20)) /* for the names of all open files */
#define TRANSPLANT_SIGNALS 64
#define TRANSPLANT_ENTRIES 1024 /* of /proc/PID/pagemap, for each read */
#define TRANSPLANT_BATCH 256    /* pages for each read of memory */

/* The desk is a part of the fresh process's address space that neither process uses. It has one
 * page of code, pages for arguments, and room for the kernel's own mappings. */
#define TRANSPLANT_DESK_DATA TRANSPLANT_PAGE
#define TRANSPLANT_DESK_HOLD (4 * TRANSPLANT_PAGE)
#define TRANSPLANT_DESK_LEN (64 * TRANSPLANT_PAGE)

enum transplant_kind {
    TRANSPLANT_ANON,
    TRANSPLANT_STACK,   /* anonymous, and grows down */
    TRANSPLANT_FILE,    /* from a file, or shared */
    TRANSPLANT_SPECIAL, /* made by the kernel: the vDSO and its data */
};

struct transplant_vma {
    uint64_t start, end, offset, inode;
    uint32_t device[2];
    uint32_t name, name_len; /* in the text of the map */
    uint8_t prot, shared, kind;
};

struct transplant_map {
    size_t count;
    struct transplant_vma vma[TRANSPLANT_VMAS_MAX];
    char text[TRANSPLANT_TEXT_MAX];
};

/* The argument of PR_SET_MM_MAP, for the kernel. */
struct transplant_limits {
    uint64_t start_code, end_code, start_data, end_data, start_brk, brk, start_stack;
    uint64_t arg_start, arg_end, env_start, env_end, auxv;
    uint32_t auxv_size, exe_fd;
};

/* One of the two processes. */
struct transplant_side {
    struct inject at;
    const struct park_session *session;
    int pagemap, mem;
    uint64_t ignored, caught; /* signals */
    uint64_t umask;
    struct transplant_limits limits;
    struct {
        uint64_t pointer;
        uint32_t size, signature, flags, pad;
    } rseq; /* as ptrace reports it */
    uint64_t window; /* the address of the first of these entries */
    size_t entry_count;
    uint64_t entry[TRANSPLANT_ENTRIES];
    struct transplant_map map;
};

struct transplant_action { /* as the kernel defines it */
    uint64_t handler, flags, restorer, mask;
};

struct transplant_file {
    struct park_file at;
    uint32_t path; /* in paths */
};

struct transplant {
    struct transplant_side from, to;
    int64_t deadline_ns;
    bool changed;  /* the fresh process cannot continue as it was */
    uint64_t desk; /* 0: not made yet */
    bool moved;    /* the kernel's mappings are on the desk */
    uint64_t shared_left; /* bytes of shared memory that may still be copied */
    struct transplant_report report;

    /* of the parked process */
    uint64_t tid_address;
    struct transplant_action action[TRANSPLANT_SIGNALS + 1];
    struct {
        uint64_t base;
        uint32_t flags, pad;
        uint64_t len;
    } altstack;
    char cwd[TRANSPLANT_PATH_MAX];
    size_t file_count;
    struct transplant_file file[TRANSPLANT_FILES_MAX];
    size_t paths_len;
    char paths[TRANSPLANT_PATHS_MAX];
    size_t xstate_len;
    unsigned char xstate[1u << 16];

    /* the image file that the fresh process has open for mapping */
    const struct transplant_vma *open;
    long open_fd;

    unsigned char bytes[2][TRANSPLANT_BATCH * TRANSPLANT_PAGE];
};

/* Make one system call in the fresh process. An error of the kernel is REFUSED with errno. */
enum inject_end transplant_do(struct transplant *t, struct inject_order order, long *out);
/* The same, but an error of the kernel is OK; *out is -1 then. */
enum inject_end transplant_try(struct transplant *t, struct inject_order order, long *out);
/* Whether a name begins with one of `heads`, a list that ends with "". */
bool transplant_begins(const char *name, size_t len, const char *const *heads);
const char *transplant_name(const struct transplant_side *side, const struct transplant_vma *vma);

/* transplant_proc.c: what /proc and ptrace say of a process. Each returns 0, or -1 with errno. */
int transplant_read_map(struct transplant_side *side);
int transplant_read_side(struct transplant_side *side);
int transplant_open_memory(struct transplant_side *side, int mode);
/* Note that the processes differ in limits or priority. */
void transplant_compare_settings(struct transplant *t);

/* transplant_state.c: registers, signals, thread data, heap limits. */
enum inject_end transplant_note_state(struct transplant *t);
enum inject_end transplant_stop_rseq(struct transplant *t);
enum inject_end transplant_give_state(struct transplant *t);

/* transplant_files.c */
int transplant_note_files(struct transplant *t, const struct park_files *noted);
enum inject_end transplant_give_files(struct transplant *t);

/* transplant_memory.c: mappings. */
enum inject_end transplant_make_desk(struct transplant *t);
enum inject_end transplant_give_memory(struct transplant *t);

/* transplant_pages.c: the content of one range that both processes have mapped. */
struct transplant_range {
    uint64_t start, end;
    uint8_t prot; /* in the fresh process */
    bool all;     /* copy every page, and not only the private ones */
    bool kept;    /* the fresh process may have private pages there */
    bool blank;   /* the fresh process has only zeroes there */
};
enum inject_end transplant_copy(struct transplant *t, const struct transplant_range *range);

#endif
#endif
