/* A server that would listen to the whole network listens to this machine alone, and says when it does. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int bind(int socket, const struct sockaddr *address, socklen_t length) {
    struct sockaddr_in here;
    if (address && address->sa_family == AF_INET && length >= sizeof here) {
        here = *(const struct sockaddr_in *)address;
        if (here.sin_addr.s_addr == htonl(INADDR_ANY)) {
            here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            return (int)syscall(SYS_bind, socket, &here, sizeof here);
        }
    }
    return (int)syscall(SYS_bind, socket, address, length);
}

/* Only a server that has its port says so: no other server can answer there then. */
int listen(int socket, int backlog) {
    struct sockaddr_in here;
    socklen_t length = sizeof here;
    int failed = (int)syscall(SYS_listen, socket, backlog);
    if (!failed && !getsockname(socket, (struct sockaddr *)&here, &length) && here.sin_family == AF_INET)
        dprintf(STDERR_FILENO, "listening on %s:%d.\n", inet_ntoa(here.sin_addr), ntohs(here.sin_port));
    return failed;
}
