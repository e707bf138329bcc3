//go:build ignore
// The Go tool is not to compile this file; the lab does.

/*
 * peer: one end of an RDMA connection through libibverbs and librdmacm, led by hand.
 *
 * It reads one command a line and answers each with one line, "ok ..." or "err ...".
 * What a test is about is thus said by the test; this program only has the verbs. It
 * has one connection at a time and waits for nothing longer than its argument says, in
 * milliseconds.
 *
 *	options srq=N depth=N inline=N   of the queue pairs to come
 *	listen ADDR PORT
 *	request                      wait for a connection request: ok pd=HEX
 *	accept PD                    answer it with private data (HEX or "-"), wait for the connection
 *	reject PD
 *	resolve ADDR PORT            make a queue pair for connect
 *	connect PD                   ok pd=HEX, or "rejected pd=HEX"
 *	mr I SIZE ACCESS             register buffer I with ibv_access_flags: ok lkey rkey addr
 *	dereg I
 *	fill I OFF LEN SEED          write a pattern
 *	check I OFF LEN SEED         compare with it
 *	recv ID I OFF LEN
 *	send ID I OFF LEN FLAGS RKEY         flags: s solicited, i inline, f fence, v invalidate RKEY, - none
 *	write ID I OFF LEN FLAGS RKEY ADDR
 *	read ID I OFF LEN FLAGS RKEY ADDR
 *	wait N                       take N completions: ok ID:OPCODE:STATUS:LEN:INVALIDATED ...
 *	arm                          ask for an event of a solicited receive
 *	event MS                     ok 1 if it came in time, ok 0 if not
 *	disconnect                   end the connection
 *	disconnected                 wait for its end
 *	destroy                      give the connection and its queue pair back
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum { BUFFERS = 16, ARGS = 10, MAX_PD = 512 };

static int wait_ms;

static struct {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr[BUFFERS];
	uint32_t depth, max_inline;
	int with_srq;
} peer = {.depth = 128};

static int fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("err ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	return -1;
}

static int failed(const char *what)
{
	return fail("%s: %s", what, strerror(errno));
}

static int ok(void)
{
	printf("ok\n");
	return 0;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* readable waits until a descriptor can be read, at most ms. */
static int readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* expect waits for one kind of event and acknowledges it. */
static int expect(enum rdma_cm_event_type want)
{
	struct rdma_cm_event *e;
	enum rdma_cm_event_type got;
	int status;

	if (!readable(peer.events->fd, wait_ms))
		return fail("no %s", rdma_event_str(want));
	if (rdma_get_cm_event(peer.events, &e))
		return failed("rdma_get_cm_event");
	got = e->event;
	status = e->status;
	rdma_ack_cm_event(e);
	if (got != want)
		return fail("%s (%d) instead of %s", rdma_event_str(got), status, rdma_event_str(want));
	return 0;
}

static void print_hex(const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", b[i]);
}

/* parse_hex reads private data into b and returns its length. */
static int parse_hex(const char *s, uint8_t *b)
{
	int n = 0;

	if (strcmp(s, "-") == 0)
		return 0;
	for (; n < MAX_PD && sscanf(s + 2 * n, "%2hhx", b + n) == 1; n++)
		;
	return n;
}

/* objects makes what outlives a connection: the PD, the CQ and the SRQ. */
static int objects(struct ibv_context *device)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = peer.depth, .max_sge = 1}};

	if (peer.pd)
		return 0;
	if (!(peer.pd = ibv_alloc_pd(device)))
		return failed("ibv_alloc_pd");
	if (!(peer.channel = ibv_create_comp_channel(device)))
		return failed("ibv_create_comp_channel");
	if (!(peer.cq = ibv_create_cq(device, 4 * peer.depth, NULL, peer.channel, 0)))
		return failed("ibv_create_cq");
	if (peer.with_srq && !(peer.srq = ibv_create_srq(peer.pd, &srq)))
		return failed("ibv_create_srq");
	return 0;
}

static int create_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = peer.depth, .max_recv_wr = peer.depth, .max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = peer.max_inline},
	};

	if (objects(peer.id->verbs))
		return -1;
	attr.send_cq = attr.recv_cq = peer.cq;
	attr.srq = peer.srq;
	if (rdma_create_qp(peer.id, peer.pd, &attr))
		return failed("rdma_create_qp");
	return 0;
}

static int address(const char *host, const char *port, struct addrinfo **ai)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	int rc = getaddrinfo(host, port, &hints, ai);

	return rc ? fail("%s: %s", host, gai_strerror(rc)) : 0;
}

static int do_options(char **arg)
{
	for (int i = 1; arg[i]; i++) {
		if (sscanf(arg[i], "srq=%d", &peer.with_srq) != 1 && sscanf(arg[i], "depth=%u", &peer.depth) != 1 &&
		    sscanf(arg[i], "inline=%u", &peer.max_inline) != 1)
			return fail("option %s", arg[i]);
	}
	return ok();
}

static int do_listen(char **arg)
{
	struct addrinfo *ai;
	int rc;

	if (rdma_create_id(peer.events, &peer.listener, NULL, RDMA_PS_TCP))
		return failed("rdma_create_id");
	if (address(arg[1], arg[2], &ai))
		return -1;
	rc = rdma_bind_addr(peer.listener, ai->ai_addr);
	freeaddrinfo(ai);
	if (rc)
		return failed("rdma_bind_addr");
	if (rdma_listen(peer.listener, 128))
		return failed("rdma_listen");
	return ok();
}

static int do_request(char **arg)
{
	struct rdma_cm_event *e;

	(void)arg;
	if (!readable(peer.events->fd, wait_ms))
		return fail("no connection request");
	if (rdma_get_cm_event(peer.events, &e))
		return failed("rdma_get_cm_event");
	if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		fail("%s (%d) instead of a request", rdma_event_str(e->event), e->status);
		rdma_ack_cm_event(e);
		return -1;
	}
	peer.id = e->id;
	if (create_qp()) {
		rdma_ack_cm_event(e);
		return -1;
	}
	printf("ok pd=");
	print_hex(e->param.conn.private_data, e->param.conn.private_data_len);
	printf(" ird=%d ord=%d\n", e->param.conn.responder_resources, e->param.conn.initiator_depth);
	rdma_ack_cm_event(e);
	return 0;
}

static struct rdma_conn_param parameters(const char *hex, uint8_t *pd)
{
	return (struct rdma_conn_param){
		.private_data = pd,
		.private_data_len = parse_hex(hex, pd),
		.responder_resources = 16,
		.initiator_depth = 16,
	};
}

static int do_accept(char **arg)
{
	uint8_t pd[MAX_PD];
	struct rdma_conn_param param = parameters(arg[1], pd);

	if (rdma_accept(peer.id, &param))
		return failed("rdma_accept");
	return expect(RDMA_CM_EVENT_ESTABLISHED) ? -1 : ok();
}

static int do_reject(char **arg)
{
	uint8_t pd[MAX_PD];
	int len = parse_hex(arg[1], pd);

	if (rdma_reject(peer.id, pd, len))
		return failed("rdma_reject");
	return ok();
}

static int do_resolve(char **arg)
{
	struct addrinfo *ai;
	int rc;

	if (rdma_create_id(peer.events, &peer.id, NULL, RDMA_PS_TCP))
		return failed("rdma_create_id");
	if (address(arg[1], arg[2], &ai))
		return -1;
	rc = rdma_resolve_addr(peer.id, NULL, ai->ai_addr, wait_ms);
	freeaddrinfo(ai);
	if (rc)
		return failed("rdma_resolve_addr");
	if (expect(RDMA_CM_EVENT_ADDR_RESOLVED))
		return -1;
	if (rdma_resolve_route(peer.id, wait_ms))
		return failed("rdma_resolve_route");
	if (expect(RDMA_CM_EVENT_ROUTE_RESOLVED) || create_qp())
		return -1;
	return ok();
}

static int do_connect(char **arg)
{
	uint8_t pd[MAX_PD];
	struct rdma_conn_param param = parameters(arg[1], pd);
	struct rdma_cm_event *e;
	int rc = 0;

	if (rdma_connect(peer.id, &param))
		return failed("rdma_connect");
	if (!readable(peer.events->fd, wait_ms))
		return fail("no answer");
	if (rdma_get_cm_event(peer.events, &e))
		return failed("rdma_get_cm_event");
	if (e->event == RDMA_CM_EVENT_ESTABLISHED || e->event == RDMA_CM_EVENT_REJECTED) {
		printf(e->event == RDMA_CM_EVENT_ESTABLISHED ? "ok pd=" : "rejected pd=");
		print_hex(e->param.conn.private_data, e->param.conn.private_data_len);
		printf(" ird=%d ord=%d status=%d\n", e->param.conn.responder_resources, e->param.conn.initiator_depth, e->status);
	} else {
		rc = fail("%s (%d)", rdma_event_str(e->event), e->status);
	}
	rdma_ack_cm_event(e);
	return rc;
}

static struct ibv_mr *buffer(const char *arg)
{
	unsigned i = atoi(arg);

	return i < BUFFERS ? peer.mr[i] : NULL;
}

static int do_mr(char **arg)
{
	unsigned i = atoi(arg[1]);
	size_t size = strtoull(arg[2], NULL, 0);
	struct ibv_mr *mr;
	void *b;

	if (i >= BUFFERS || peer.mr[i])
		return fail("buffer %u", i);
	if (!(b = calloc(1, size)))
		return failed("calloc");
	if (!(mr = ibv_reg_mr(peer.pd, b, size, atoi(arg[3])))) {
		free(b);
		return failed("ibv_reg_mr");
	}
	peer.mr[i] = mr;
	printf("ok %u %u %llu\n", mr->lkey, mr->rkey, (unsigned long long)(uintptr_t)b);
	return 0;
}

static int do_dereg(char **arg)
{
	struct ibv_mr *mr = buffer(arg[1]);
	void *b;

	if (!mr)
		return fail("no buffer %s", arg[1]);
	b = mr->addr;
	if (ibv_dereg_mr(mr))
		return failed("ibv_dereg_mr");
	free(b);
	peer.mr[atoi(arg[1])] = NULL;
	return ok();
}

static uint8_t pattern(size_t i, unsigned seed)
{
	return seed * 167 + i * 13 + (i >> 8) * 7 + (i >> 16);
}

/* area finds LEN octets from OFF of buffer I, NULL if they are not all there. */
static uint8_t *area(char **arg, size_t *len)
{
	struct ibv_mr *mr = buffer(arg[0]);
	size_t off = strtoull(arg[1], NULL, 0);

	*len = strtoull(arg[2], NULL, 0);
	if (!mr || off > mr->length || *len > mr->length - off)
		return NULL;
	return (uint8_t *)mr->addr + off;
}

static int do_fill(char **arg)
{
	size_t len;
	uint8_t *b = area(arg + 1, &len);

	if (!b)
		return fail("no such area");
	for (size_t i = 0; i < len; i++)
		b[i] = pattern(i, atoi(arg[4]));
	return ok();
}

static int do_check(char **arg)
{
	size_t len;
	uint8_t *b = area(arg + 1, &len);

	if (!b)
		return fail("no such area");
	for (size_t i = 0; i < len; i++) {
		if (b[i] != pattern(i, atoi(arg[4])))
			return fail("octet %zu is %02x, want %02x", i, b[i], pattern(i, atoi(arg[4])));
	}
	return ok();
}

/* element makes the scatter/gather element of "I OFF LEN", which may lie outside the buffer. */
static int element(char **arg, struct ibv_sge *sge)
{
	struct ibv_mr *mr = buffer(arg[0]);

	if (!mr)
		return fail("no buffer %s", arg[0]);
	sge->addr = (uintptr_t)mr->addr + strtoull(arg[1], NULL, 0);
	sge->length = strtoul(arg[2], NULL, 0);
	sge->lkey = mr->lkey;
	return 0;
}

static int do_recv(char **arg)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = strtoull(arg[1], NULL, 0), .sg_list = &sge, .num_sge = 1}, *bad;
	int rc;

	if (element(arg + 2, &sge))
		return -1;
	rc = peer.srq ? ibv_post_srq_recv(peer.srq, &wr, &bad) : ibv_post_recv(peer.id->qp, &wr, &bad);
	return rc ? fail("post recv: %s", strerror(rc)) : ok();
}

/* post posts one request of the send queue; key and addr may be NULL. */
static int post(enum ibv_wr_opcode opcode, char **arg, const char *key, const char *addr)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = strtoull(arg[1], NULL, 0), .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	int rc;

	if (element(arg + 2, &sge))
		return -1;
	wr.num_sge = sge.length > 0;
	for (const char *f = arg[5]; *f; f++) {
		switch (*f) {
		case 's': wr.send_flags |= IBV_SEND_SOLICITED; break;
		case 'i': wr.send_flags |= IBV_SEND_INLINE; break;
		case 'f': wr.send_flags |= IBV_SEND_FENCE; break;
		case 'v':
			wr.opcode = IBV_WR_SEND_WITH_INV;
			wr.invalidate_rkey = strtoul(key, NULL, 0);
			wr.wr.rdma.rkey = wr.invalidate_rkey; /* where libsiw looks for it */
			break;
		}
	}
	if (addr) {
		wr.wr.rdma.rkey = strtoul(key, NULL, 0);
		wr.wr.rdma.remote_addr = strtoull(addr, NULL, 0);
	}
	rc = ibv_post_send(peer.id->qp, &wr, &bad);
	return rc ? fail("post send: %s", strerror(rc)) : ok();
}

static int do_send(char **arg)
{
	return post(IBV_WR_SEND, arg, arg[6], NULL);
}

static int do_write(char **arg)
{
	return post(IBV_WR_RDMA_WRITE, arg, arg[6], arg[7]);
}

static int do_read(char **arg)
{
	return post(IBV_WR_RDMA_READ, arg, arg[6], arg[7]);
}

static int do_wait(char **arg)
{
	int want = atoi(arg[1]), have = 0;
	long until = now_ms() + wait_ms;
	struct timespec pause = {.tv_nsec = 200000};
	struct ibv_wc *wc = calloc(want + 1, sizeof *wc);

	if (!wc)
		return failed("calloc");
	while (have < want) {
		int got = ibv_poll_cq(peer.cq, want - have, wc + have);

		if (got < 0 || now_ms() > until) {
			free(wc);
			return fail("%d completions of %d", have, want);
		}
		have += got;
		if (got == 0)
			nanosleep(&pause, NULL);
	}
	printf("ok");
	for (int i = 0; i < have; i++) {
		unsigned invalidated = wc[i].wc_flags & IBV_WC_WITH_INV ? wc[i].invalidated_rkey : 0;

		printf(" %llu:%d:%d:%u:%u", (unsigned long long)wc[i].wr_id, wc[i].opcode, wc[i].status, wc[i].byte_len, invalidated);
	}
	printf("\n");
	free(wc);
	return 0;
}

static int do_arm(char **arg)
{
	(void)arg;
	return ibv_req_notify_cq(peer.cq, 1) ? failed("ibv_req_notify_cq") : ok();
}

static int do_event(char **arg)
{
	struct ibv_cq *cq;
	void *context;

	if (!readable(peer.channel->fd, atoi(arg[1]))) {
		printf("ok 0\n");
		return 0;
	}
	if (ibv_get_cq_event(peer.channel, &cq, &context))
		return failed("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	printf("ok 1\n");
	return 0;
}

static int do_disconnect(char **arg)
{
	(void)arg;
	return rdma_disconnect(peer.id) ? failed("rdma_disconnect") : ok();
}

static int do_disconnected(char **arg)
{
	(void)arg;
	return expect(RDMA_CM_EVENT_DISCONNECTED) ? -1 : ok();
}

static int do_destroy(char **arg)
{
	(void)arg;
	if (!peer.id)
		return fail("no connection");
	if (peer.id->qp)
		rdma_destroy_qp(peer.id);
	rdma_destroy_id(peer.id);
	peer.id = NULL;
	return ok();
}

static const struct {
	const char *name;
	int args;
	int (*run)(char **arg);
} commands[] = {
	{"options", 0, do_options}, {"listen", 2, do_listen}, {"request", 0, do_request}, {"accept", 1, do_accept},
	{"reject", 1, do_reject}, {"resolve", 2, do_resolve}, {"connect", 1, do_connect}, {"mr", 3, do_mr},
	{"dereg", 1, do_dereg}, {"fill", 4, do_fill}, {"check", 4, do_check}, {"recv", 4, do_recv},
	{"send", 6, do_send}, {"write", 7, do_write}, {"read", 7, do_read}, {"wait", 1, do_wait},
	{"arm", 0, do_arm}, {"event", 1, do_event}, {"disconnect", 0, do_disconnect},
	{"disconnected", 0, do_disconnected}, {"destroy", 0, do_destroy},
};

static void command(char *line)
{
	char *arg[ARGS + 1] = {0};
	int n = 0;

	for (char *s = strtok(line, " \n"); s && n < ARGS; s = strtok(NULL, " \n"))
		arg[n++] = s;
	if (n == 0)
		return;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (strcmp(commands[i].name, arg[0]) == 0) {
			if (n - 1 < commands[i].args)
				fail("%s wants %d arguments", arg[0], commands[i].args);
			else
				commands[i].run(arg);
			return;
		}
	}
	fail("no command %s", arg[0]);
}

int main(int argc, char **argv)
{
	static char line[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2 || (wait_ms = atoi(argv[1])) <= 0) {
		fail("usage: peer MILLISECONDS");
		return 1;
	}
	if (!(peer.events = rdma_create_event_channel())) {
		failed("rdma_create_event_channel");
		return 1;
	}
	while (fgets(line, sizeof line, stdin))
		command(line);
	return 0;
}
