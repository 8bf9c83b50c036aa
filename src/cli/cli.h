/* The commands. Each gets the arguments after its own name and returns the exit
 * code of the program. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

int cli_cmd_run(int argc, char **argv);
int cli_cmd_languages(int argc, char **argv);
int cli_cmd_images(int argc, char **argv);
int cli_cmd_doctor(int argc, char **argv);
int cli_cmd_version(int argc, char **argv);
int cli_cmd_help(int argc, char **argv);

#endif
