/* Prints the completion script of a shell: build/completion SHELL. A developer's program:
 * `make completions` writes the files of completions/, which are built into cupel. */
#include <string.h>

#include "dev/completion/completion.h"

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < completion_shell_count; i++)
        if (strcmp(completion_shells[i].name, argv[1]) == 0) {
            completion_shells[i].print(&cli_all_commands, stdout);
            return 0;
        }
    fputs("usage: completion bash|zsh|fish\n", stderr);
    return 2;
}
