/* Linked into the sanitized broker and init. They have no environment that could say this: no leak
 * check, because its ptrace is not for a process behind a filter, and no second thread. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0:abort_on_error=1:handle_segv=0:handle_sigbus=0:handle_sigill=0:"
           "handle_sigfpe=0:handle_abort=0:use_sigaltstack=0:detect_stack_use_after_return=0";
}
