/* Tools for people: tables, signatures, faults. All texts are a tool's author's or a server's: they
 * are made safe for a terminal. */
#ifndef CLI_TOOLS_TOOLS_SHOW_H
#define CLI_TOOLS_TOOLS_SHOW_H

#include <jansson.h>

#include "base/buf.h"

/* "allow", "ask", "deny" or "rules", of a definition. */
const char *cli_tools_policy(const json_t *definition);

void cli_tools_print_table(const json_t *definitions);
void cli_tools_print_one(const json_t *definition);
/* To standard output, one line or more for each. */
void cli_tools_print_faults(const json_t *faults);
/* A value on standard output: a text as it is, anything else as JSON. */
void cli_tools_print_value(const json_t *value);

#endif
