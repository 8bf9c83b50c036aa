/* Fields of a request in the words of the command line and of the prompt. */
#include "cli/term/words.h"

#include "base/attr.h"
#include "base/own.h"
#include "check.h"

TEST(cli_words_names_a_limit_as_it_is_set)
{
    static const struct {
        const char *text, *flags, *prompt;
    } cases[] = {
        { "", "", "" },
        { "limits", "limits", "limits" },
        { "limits.", "limits.", "limits." },
        { "limits.nothing", "limits.nothing", "limits.nothing" },
        { "set limits.timeout_s above 2", "set -t above 2", ":set timeout above 2" },
        { "than limits.timeout_s", "than -t", "than :set timeout" },
        { "limits.memory_bytes, limits.pids", "-m, --pids", "-m, --pids" },
        { "limits.cpus and limits.cpu_s", "--cpus and --limit cpu_s", "--cpus and --limit cpu_s" },
        { "'quota.limits.pids' is 1", "'quota.limits.pids' is 1", "'quota.limits.pids' is 1" },
        { "over limits.artifact_bytes", "over --limit artifact_bytes",
          "over --limit artifact_bytes" },
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        own_buf flags = BUF_INIT(500), prompt = BUF_INIT(500);
        cli_words(str_of(cases[i].text), /* at_prompt= */ false, &flags);
        cli_words(str_of(cases[i].text), /* at_prompt= */ true, &prompt);
        CHECK_TEXT(buf_str(&flags).at, cases[i].flags);
        CHECK_TEXT(buf_str(&prompt).at, cases[i].prompt);
    }
}
