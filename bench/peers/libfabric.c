/* One-sided operations of libfabric over TCP between two processes: prints GB/s.
 *
 *	libfabric put|get OCTETS SECONDS DEPTH
 *
 * put is fi_write that completes when the data has been delivered.
 */
#include "common.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define KEY 77

static struct fi_info *info;
static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_mr *mr;

static void check(ssize_t r, const char *what)
{
	if (r)
		die(what, fi_strerror(-r));
}

static void init(void *buf, size_t size)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .size = 1024 };
	struct fi_info *hints = fi_allocinfo();
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	hints->caps = FI_RMA | FI_MSG;
	hints->mode = ~0;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
	check(fi_getinfo(FI_VERSION(1, 11), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
	check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	check(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	check(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	check(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	check(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_enable(ep), "fi_enable");
	check(fi_mr_reg(domain, buf, size, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
	      "fi_mr_reg");
	if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		check(fi_mr_bind(mr, &ep->fid, 0), "fi_mr_bind");
		check(fi_mr_enable(mr), "fi_mr_enable");
	}
}

/* reap drives the provider and returns how many operations have completed. */
static int reap(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry done[16];
	ssize_t n = fi_cq_read(cq, done, 16);

	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0) {
		fi_cq_readerr(cq, &err, 0);
		die("completion", fi_strerror(err.err));
	}
	return n;
}

/* What the server tells. */
struct hello {
	char name[64];
	size_t name_len;
	uint64_t key, buffer;
};

static void server(const struct options *o, int fd)
{
	struct hello h = { .name_len = sizeof h.name };
	void *buf = buffer(o->size);

	init(buf, o->size);
	check(fi_getname(&ep->fid, h.name, &h.name_len), "fi_getname");
	h.key = fi_mr_key(mr);
	h.buffer = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)buf : 0;
	send_all(fd, &h, sizeof h);
	for (unsigned turn = 0; !finished(fd, turn); turn++)
		reap();
}

static void post(const struct options *o, const struct hello *h, fi_addr_t to, void *buf, int *under_way)
{
	struct iovec local = { buf, o->size };
	struct fi_rma_iov remote = { h->buffer, o->size, h->key };
	void *desc = fi_mr_desc(mr);
	struct fi_msg_rma msg = {
		.msg_iov = &local, .desc = &desc, .iov_count = 1, .addr = to, .rma_iov = &remote, .rma_iov_count = 1,
	};
	ssize_t r;

	do {
		r = o->put ? fi_writemsg(ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION)
			   : fi_readmsg(ep, &msg, FI_COMPLETION);
		if (r == -FI_EAGAIN)
			*under_way -= reap();
	} while (r == -FI_EAGAIN);
	check(r, "post");
	++*under_way;
}

static double stream(const struct options *o, const struct hello *h, fi_addr_t to, void *buf, double seconds)
{
	double start = now(), end = start + seconds;
	int under_way = 0;
	size_t n = 0;

	for (; now() < end; n++) {
		while (under_way >= o->depth)
			under_way -= reap();
		post(o, h, to, buf, &under_way);
	}
	while (under_way)
		under_way -= reap();
	return n * o->size / (now() - start);
}

static double client(const struct options *o, int fd)
{
	void *buf = buffer(o->size);
	struct hello h;
	fi_addr_t to;

	init(buf, o->size);
	recv_all(fd, &h, sizeof h);
	if (fi_av_insert(av, h.name, 1, &to, 0, NULL) != 1)
		die("fi_av_insert", "failed");
	stream(o, &h, to, buf, WARM_SECONDS);
	return stream(o, &h, to, buf, o->seconds);
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);

	return run(&o, server, client);
}
