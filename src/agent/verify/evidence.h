/* What the kept cells showed, made ready to be looked up: units (a line, a table's row, an entry
 * of a dict, a JSON object), the numbers in them, and which words part one unit from its like.
 * What the code only says of itself is no evidence: a line that is printed as it stands in the
 * code, a value that was assigned as a literal. Pure; built in time linear in the evidence, but for
 * sorting its numbers. */
#ifndef AGENT_VERIFY_EVIDENCE_H
#define AGENT_VERIFY_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/verify/check_tally.h"
#include "agent/verify/verify.h"

#define AGENT_EVIDENCE_BYTES_MAX (12u << 20) /* of all sources together; the rest is not seen */

struct agent_evidence {
    struct agent_evidence_unit {
        struct str text;
        uint32_t source; /* one text: all its units are views of it */
        uint64_t group; /* units of one table, or lines of one shape from one source */
        bool named;     /* it has a word that could name it */
        bool printed;   /* a cell showed it, as text */
    } *units;
    size_t unit_count, unit_room;
    struct agent_evidence_value {
        double value;
        uint32_t unit;
    } *values; /* sorted */
    size_t value_count, value_room;
    struct agent_tally words;    /* all words of all units, seed 0 */
    struct agent_tally rows;     /* words by group, of units that hold a number */
    struct agent_tally groups;   /* units that hold a number, by group */
    struct agent_tally dates;    /* year * 10000 + month * 100 + day, and with year 0 */
    struct agent_tally literals; /* lines that the code holds as they stand */
    struct agent_tally shown;    /* values, by their bits */
    struct agent_tally coded;    /* values that stand in the code, and were not shown before */
    char **owned;                /* texts that were made here */
    size_t owned_count;
    size_t bytes;
    uint32_t source;
    bool printing; /* what is added now was printed */
    bool cut; /* there was more than the caps: what is not found may yet be there */
};

void agent_evidence_open(struct agent_evidence *evidence, const struct agent_claim *claim);
void agent_evidence_close(struct agent_evidence *evidence);
#define own_evidence attr_cleanup(agent_evidence_close) struct agent_evidence

/* The first value that is not under `low`, as an index; value_count: none. */
size_t agent_evidence_from(const struct agent_evidence *evidence, double low);
/* Does the word part units of this group? In some of them, in half of them at most. */
bool agent_evidence_parts(const struct agent_evidence *evidence, uint64_t group, struct str word);
bool agent_evidence_unit_has(const struct agent_evidence *evidence, uint32_t unit, struct str word);
bool agent_evidence_has_word(const struct agent_evidence *evidence, struct str word);
bool agent_evidence_has_date(const struct agent_evidence *evidence, int year, int month, int day);

/* evidence_add.c: one source each. */
void agent_evidence_add_lines(struct agent_evidence *evidence, struct str text);
void agent_evidence_add_csv(struct agent_evidence *evidence, struct str text);
void agent_evidence_add_json(struct agent_evidence *evidence, const json_t *value);
void agent_evidence_add_html(struct agent_evidence *evidence, struct str text);
void agent_evidence_add_unit(struct agent_evidence *evidence, struct str text, uint64_t group);
/* evidence_literal.c: the lines that this code prints or writes as they stand. */
void agent_evidence_add_literals(struct agent_tally *literals, struct str code);

#endif
