/* A server of this machine as a program of Windows: hands its command line to `testing/servers/launcher.py`, prints what the
   server prints, and ends with it. Its own end is that of the server. The copy's name is the server's. */
#include <winsock2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void quote(char *to, const char *text)
{
    to += strlen(to);
    *to++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            *to++ = '\\';
        *to++ = *text;
    }
    strcpy(to, "\"");
}

static int fail(const char *what)
{
    fprintf(stderr, "launched: %s\n", what);
    return 71;
}

/* Copies what was written since. */
static void pass_on(FILE *log)
{
    char text[4096];
    size_t length;
    /* Not at the end any more. */
    fseek(log, 0, SEEK_CUR);
    while ((length = fread(text, 1, sizeof text, log)) > 0)
        fwrite(text, 1, length, stdout);
    fflush(stdout);
}

int main(int count, char **words)
{
    static char order[65536];
    char folder[MAX_PATH], log_file[MAX_PATH], program[MAX_PATH];
    const char *address = getenv("LEASEHOLD_LAUNCHER");
    WSADATA started;
    struct sockaddr_in place = {.sin_family = AF_INET};

    if (!address || !strchr(address, ':'))
        return fail("LEASEHOLD_LAUNCHER names no launcher");
    GetModuleFileNameA(NULL, program, sizeof program);
    char *name = strrchr(program, '\\') + 1;
    *strrchr(name, '.') = 0;
    GetTempPathA(sizeof folder, folder);
    GetTempFileNameA(folder, "out", 0, log_file);

    strcpy(order, "{\"variables\": {}, \"log\": ");
    quote(order, log_file);
    strcat(order, ", \"words\": [");
    quote(order, name);
    for (int i = 1; i < count; i++) {
        if (strlen(order) + 2 * strlen(words[i]) + 16 > sizeof order)
            return fail("too many words");
        strcat(order, ", ");
        quote(order, words[i]);
    }
    strcat(order, "]}\n");

    WSAStartup(MAKEWORD(2, 2), &started);
    SOCKET launcher = socket(AF_INET, SOCK_STREAM, 0);
    place.sin_addr.s_addr = inet_addr("127.0.0.1");
    place.sin_port = htons((u_short) atoi(strchr(address, ':') + 1));
    if (connect(launcher, (struct sockaddr *) &place, sizeof place) != 0)
        return fail("the launcher does not answer");
    if (send(launcher, order, (int) strlen(order), 0) < 0)
        return fail("the launcher takes no order");

    FILE *log = fopen(log_file, "rb");
    static char answer[64];
    char *status = NULL;
    /* The first answer is the process. Then each tells if it runs, or its status. */
    for (int answers = 0; !status; answers++) {
        size_t length = 0;
        while (length + 1 < sizeof answer && recv(launcher, answer + length, 1, 0) == 1 && answer[length] != '\n')
            length++;
        answer[length] = 0;
        if (length == 0 || (answers == 0 && !atoi(answer)))
            return fail(answer);
        pass_on(log);
        if (answers > 0 && strcmp(answer, "runs") != 0)
            status = answer;
        else if (answers > 0)
            Sleep(20);
        send(launcher, "look\n", 5, 0);
    }
    fclose(log);
    DeleteFileA(log_file);
    return atoi(status);
}
