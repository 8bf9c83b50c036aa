/* Tokens as a table, and as JSON. The secret is in neither: nobody has it. */
#ifndef CLI_TOKEN_TOKEN_SHOW_H
#define CLI_TOKEN_TOKEN_SHOW_H

#include "store/tokens.h"
#include "store/usage.h"

/* used_at 0: not known. */
json_t *cli_token_json(const struct tokens_token *token, int64_t used_at);
void cli_token_show(const struct tokens *tokens, const struct usage *usage, int64_t now);

#endif
