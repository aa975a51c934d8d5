/* The command line: picks a subcommand. Uses nothing but the public header. */
#include "drey/drey.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("drey %s\n", drey_version());
        return 0;
    }
    fprintf(stderr, "drey: usage: drey run|plan|inspect|tokenize|perplexity|bench ...\n");
    return 2;
}
