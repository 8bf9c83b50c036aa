/* What an answer claims: its numbers one by one, with the sentence and the row they stand in.
 * Pure; every byte is hostile; linear in the answer. */
#ifndef AGENT_VERIFY_CHECK_CLAIM_H
#define AGENT_VERIFY_CHECK_CLAIM_H

#include "agent/verify/check_scan.h"
#include "agent/verify/check_tally.h"
#include "agent/verify/evidence.h"
#include "base/buf.h"

#define AGENT_CLAIM_ANSWER_MAX (128u << 10) /* bytes that are read */
#define AGENT_CLAIM_NUMBERS_MAX 4000

struct agent_claim_number {
    struct agent_scan_number scan;
    struct str sentence;  /* or the row of a table */
    size_t before, after; /* where the number begins and ends in it */
    bool row;             /* of a table: all its cells belong together */
    bool is_year;
    bool falls;           /* "down 5", "a loss of 5" */
    enum agent_claim_hedge { AGENT_EXACT, AGENT_ABOUT, AGENT_OVER, AGENT_UNDER } hedge;
    bool given;           /* by the question: it need not be found */
    double fraction;      /* "3/4" as a value, 0: none; stands at its first number */
    int year, month, day; /* of a date; month 0: none */
};

struct agent_claim_reader {
    struct str answer;
    size_t at;           /* the next line */
    struct str line, sentence;
    size_t line_at, sentence_at, number_at;
    struct agent_tally given; /* numbers of the question, as bits of a double */
    size_t items;        /* of the answer's list or table: its count is no claim */
    size_t rows;         /* of the table so far */
    size_t numbers;
    bool fenced, row, cut;
};

void agent_claim_read(struct agent_claim_reader *reader, const char *question, const char *answer);
/* The next number that claims something. */
bool agent_claim_next(struct agent_claim_reader *reader, struct agent_claim_number *out);
void agent_claim_done(struct agent_claim_reader *reader);

/* The words of that class which say which row of `group` is meant by what stands around the number.
 * False: none of them parts these rows. */
struct agent_claim_label {
    struct str words[16];
    size_t count;
};
bool agent_claim_label(const struct agent_evidence *evidence, uint64_t group,
                       enum agent_scan_class class, const struct agent_claim_number *number,
                       struct agent_claim_label *out);

/* What did not hold, in words. */
struct agent_claim_faults {
    struct buf detail, repair;
    size_t count;
};
#define AGENT_CLAIM_FAULTS_INIT \
    ((struct agent_claim_faults){ BUF_INIT(8u << 10), BUF_INIT(8u << 10), 0 })
void agent_claim_faults_done(struct agent_claim_faults *faults);
/* The CHECK: fail with faults, pass where something held, skip where there was nothing to look
 * for, no_verdict where not all could be seen. */
void agent_claim_add(json_t *checks, const char *name, bool partly, size_t held,
                     struct agent_claim_faults *faults);

/* check_most.c: the answer's only number, where the question asks for the most or the least. */
void agent_check_most(const struct agent_claim *claim, const struct agent_evidence *evidence,
                      const struct agent_claim_number *number, struct agent_claim_faults *faults);

/* check_names.c */
void agent_check_names(const struct agent_claim *claim, const struct agent_evidence *evidence,
                       json_t *checks);

#endif
