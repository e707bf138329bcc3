//go:build ignore
// The Go tool is not to compile this file; the lab does.

/*
 * echoserver PORT: a server of stream sockets that sends back what it receives, on any number
 * of connections, until their ends. It uses the sockets of the system with the calls
 * that librspreload of Debian 12 replaces (not accept4, select or epoll), so that under
 * it the connections are rsockets.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 64 };

static char octets[64 << 10];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* echo sends what has come back, and returns 0 at the end of the connection. */
static int echo(int s)
{
	ssize_t n = recv(s, octets, sizeof octets, 0);

	for (ssize_t sent = 0, m; sent < n; sent += m) {
		m = send(s, octets + sent, n - sent, 0);
		must(m > 0, "send");
	}
	must(n >= 0, "recv");
	return n > 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(argc > 1 ? atoi(argv[1]) : 0) };
	struct pollfd p[1 + MOST];
	int n = 1;

	p[0].fd = socket(AF_INET, SOCK_STREAM, 0);
	must(p[0].fd >= 0, "socket");
	must(!bind(p[0].fd, (struct sockaddr *)&a, sizeof a), "bind");
	must(!listen(p[0].fd, MOST), "listen");
	p[0].events = POLLIN;
	for (;;) {
		must(poll(p, n, -1) > 0, "poll");
		for (int i = n - 1; i > 0; i--) {
			if (!p[i].revents || echo(p[i].fd))
				continue;
			close(p[i].fd);
			p[i] = p[--n];
		}
		if (!p[0].revents)
			continue;
		must(n <= MOST, "more connections than there is room for");
		p[n].fd = accept(p[0].fd, NULL, NULL);
		must(p[n].fd >= 0, "accept");
		p[n].events = POLLIN;
		p[n++].revents = 0;
	}
}
