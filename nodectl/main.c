/* nodectl: the administrator's program. All of it is in ctl.c and the commands; here is only what
 * belongs to the process. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "nodectl/ctl.h"

/* Nothing was printed yet and nothing is kept: what was asked of the cluster it will carry out. */
static void on_interrupt(int number)
{
    (void)number;
    _exit(130);
}

int main(int argc, char *argv[])
{
    struct ctl_process process = {
        .argc = argc,
        .argv = argv,
        .environment = environ,
        .in = stdin,
        .out = stdout,
        .err = stderr,
        .out_is_terminal = isatty(STDOUT_FILENO) == 1,
        .err_is_terminal = isatty(STDERR_FILENO) == 1,
    };

    setlocale(LC_CTYPE, ""); /* widths of characters in tables */
    signal(SIGINT, on_interrupt);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of writing */
    return ctl_main(&process);
}
